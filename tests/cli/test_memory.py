"""What was freed is not kept: a process that had large messages once is as small as before."""

import subprocess
import sys

from tests.support.gateway import ROOT

PROGRAM = """
import sys
from pathlib import Path
from app.cli.memory import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "given back":
    give_back()
for size in range(1, 9):
    large = bytearray(size << 20)
    del large
before = resident()
kept = []
for _ in range(8):
    large = bytearray(8 << 20)
    kept.append(bytearray(64 << 10))
    del large
blocks = [bytearray(2 << 20) for _ in range(32)]
kept.append(bytearray(64 << 10))
del blocks
print(resident() - before)
"""


def grown(way: str) -> int:
    """Bytes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, way], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    return int(done.stdout)


def test_memory_of_large_messages_goes_back_to_the_machine() -> None:
    assert grown("given back") < 4 << 20
    assert grown("kept") > 16 << 20, "this C library does not keep it anyway: app.cli.memory is of no use here"
