"""The environment that holds `mcp` 1.x, made in the cache where it is absent or of another version."""

import subprocess
import sys
from pathlib import Path

from tests.conformance.suite import SuiteMissing, alone

REQUIREMENT = "mcp==1.30.0"
INSTALL_SECONDS = 300


def python(cache: Path) -> Path:
    """The interpreter that runs `fixtures/legacy.py`."""
    folder = cache / "mcp1"
    stamp = folder / "installed"
    with alone(cache):
        if not stamp.exists() or stamp.read_text() != REQUIREMENT:
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            _run([str(_python(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT])
            stamp.write_text(REQUIREMENT)
    return _python(folder)


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SuiteMissing(f"no environment with {REQUIREMENT}: {done.stderr.strip()[-500:]}")
