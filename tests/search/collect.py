"""Asks real servers of the registries what tools they have: `python -m tests.search.collect [NAME...]`.

Each is installed into a folder of its own (without install scripts), started with an environment that has nothing of
ours in it, asked for `tools/list`, all pages, and stopped. What it said is written to `labelled/servers/NAME.json`.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import PIPE, STDOUT, CalledProcessError, run
from typing import Any

import msgspec

HERE = Path(__file__).parent
SERVERS = HERE / "labelled" / "servers"
KEPT = ("name", "title", "description", "inputSchema")
PATIENCE_SECONDS = 90

Json = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """One row of `sources.json`. In `args`, `{tmp}` is a folder for it to use; `env` has only the look of a secret."""

    name: str
    package: str
    version: str
    registry: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    """What its own requirements forget, or do not hold back."""

    @property
    def binary(self) -> str:
        return self.command or self.package.rsplit("/", 1)[-1]


def sources() -> list[Source]:
    return msgspec.json.decode((HERE / "sources.json").read_bytes(), type=list[Source])


def install(source: Source, folder: Path) -> Path:
    """The folder of its commands."""
    if source.registry == "npm":
        binaries = folder / "node_modules" / ".bin"
        spec = f"{source.package}@{source.version}"
        steps = [["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", spec]]
    else:
        binaries = folder / "bin"
        python = str(binaries / "python")
        uv = shutil.which("uv")
        pip = [uv, "pip", "install", "-q", "--python", python] if uv else [python, "-m", "pip", "install", "-q"]
        packages = [f"{source.package}=={source.version}", *source.beside]
        steps = [[sys.executable, "-m", "venv", str(folder)], [*pip, *packages]]
    if not (binaries / source.binary).exists():
        for step in steps:
            run(step, check=True, stdout=PIPE, stderr=STDOUT, timeout=600)
    return binaries


@asynccontextmanager
async def started(source: Source, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    binaries = await asyncio.to_thread(install, source, folder)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    child = await asyncio.create_subprocess_exec(
        binaries / source.binary,
        *(arg.format(tmp=scratch) for arg in source.args),
        env={"PATH": f"{binaries}:{os.environ['PATH']}", "HOME": str(scratch), "LANG": "C.UTF-8"} | source.env,
        cwd=scratch,
        stdin=PIPE,
        stdout=PIPE,
        stderr=(folder / "stderr").open("wb"),
        limit=1 << 26,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


async def ask(child: asyncio.subprocess.Process, ident: int, method: str, params: Json) -> Json:
    """Whatever else it says meanwhile is passed over, also what is no JSON."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(_line({"id": ident, "method": method, "params": params}))
    while line := await child.stdout.readline():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == ident and "method" not in message:
            result: Json = message["result"]
            return result
    raise EOFError("it ended before it answered")


async def tools(child: asyncio.subprocess.Process) -> list[Json]:
    idents = count(1)
    us = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "collect", "version": "1"}}
    await ask(child, next(idents), "initialize", us)
    assert child.stdin is not None
    child.stdin.write(_line({"method": "notifications/initialized"}))
    found: list[Json] = []
    page: Json = {"nextCursor": None}
    while "nextCursor" in page:
        params = {"cursor": page["nextCursor"]} if page["nextCursor"] else {}
        page = await ask(child, next(idents), "tools/list", params)
        found += page["tools"]
        if not page.get("nextCursor"):
            break
    return found


async def collect(source: Source, work: Path) -> str:
    folder = work / source.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        async with started(source, folder) as child, asyncio.timeout(PATIENCE_SECONDS):
            found = await tools(child)
    except CalledProcessError as refused:
        return f"not installed: {refused.output.decode()[-200:]!r}"
    except (OSError, EOFError, KeyError, TimeoutError) as failed:
        return f"{failed!r}, see {folder / 'stderr'}"
    kept = [{key: tool[key] for key in KEPT if key in tool} for tool in found]
    said = {"package": source.package, "version": source.version, "registry": source.registry, "tools": kept}
    path = SERVERS / f"{source.name}.json"
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":")).replace(str(folder.resolve()), "/home/user")
    path.write_text(text + "\n", encoding="utf-8")
    return f"{len(kept)} tools"


def _line(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


async def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--work", type=Path, required=True, help="a folder for the packages")
    reading.add_argument("names", nargs="*", help="servers of sources.json; without any, all of them")
    wanted = reading.parse_args()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    few = asyncio.Semaphore(2)

    async def one(source: Source) -> None:
        async with few:
            print(f"{source.name}: {await collect(source, wanted.work)}", flush=True)

    await asyncio.gather(*(one(s) for s in sources() if not wanted.names or s.name in wanted.names))


if __name__ == "__main__":
    asyncio.run(main())
