"""Runs the driver of a client and reads what it found."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.real.installed import Client, Json

DRIVER_SECONDS = 60.0


@dataclass(frozen=True)
class Step:
    name: str
    scenario: str
    argument: Json | None = None


@dataclass(frozen=True)
class Findings:
    """What each step found, by its name."""

    client: Client
    transport: str
    by_step: Json
    errors: str

    def __getitem__(self, name: str) -> Any:
        line = self.by_step.get(name)
        if line is None:
            raise AssertionError(f"the driver never came to {name!r}:\n{self.errors[-4000:]}")
        if "found" not in line:
            raise AssertionError(f"{name!r} failed: {line['failed']}\n{line.get('complaints', '')}")
        return line["found"]


def drive(client: Client, job: Json, *steps: Step, seconds: float = DRIVER_SECONDS) -> Findings:
    """A job says where to connect and how: transport, mode, url, token, and what the client declares.

    A driver that hangs is started once more. The TypeScript client of the second generation was seen to, twice in some
    twenty runs on an overloaded machine and only over SSE; what it hung on is not known yet.
    """
    listed = [{"as": step.name, "do": step.scenario, "with": step.argument or {}} for step in steps]
    order = json.dumps(job | {"steps": listed})
    try:
        done = _run(client, order, seconds)
    except subprocess.TimeoutExpired as late:
        print(f"the driver hung; until then it said:\n{late.stdout!r}\n{late.stderr!r}")
        done = _run(client, order, seconds)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    by_step = {line["as"]: line for line in lines}
    return Findings(client, job["transport"], by_step, f"exit code {done.returncode}\n{done.stderr}")


def _run(client: Client, order: str, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(client.command, input=order, capture_output=True, text=True, timeout=seconds, check=False)


def texts(result: Json) -> str:
    """All that a tool said."""
    assert not result.get("isError"), result
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def questions(finding: Json, method: str) -> list[Json]:
    """The params of what was asked during the call. Other questions may have come then too, about no call."""
    return [question["params"] for question in finding["asked"] if question["method"] == method]
