"""Reads a job from standard input, does its steps in one session, and prints one line of JSON for each.

A job is {transport: "http" | "sse", mode, url, token, roots?, silent?, steps: [{as, do, with}]}; `do` names a
scenario, `as` the line. A silent client declares no capabilities. Mode is how a client that knows both eras chooses.
"""

import functools
import json
import sys
import traceback
import warnings
from typing import Any

import anyio
import scenarios
from session import Json, Sdk, Session


def drive(sdk: Sdk) -> None:
    warnings.simplefilter("ignore")
    anyio.run(_drive, sdk, json.load(sys.stdin))


async def _drive(sdk: Sdk, job: Json) -> None:
    steps = job.pop("steps")
    open_session = functools.partial(Session.open, sdk, job | {"silent": True})
    async with Session.open(sdk, job) as session:
        for step in steps:
            print(json.dumps({"as": step["as"]} | await _outcome(step, session, open_session)), flush=True)


async def _outcome(step: Json, session: Session, open_session: scenarios.Open) -> Json:
    scenario: Any = getattr(scenarios, step["do"])
    try:
        return {"found": await scenario(session, step.get("with", {}), open_session)}
    except Exception:  # noqa: BLE001  # whatever the SDK raises is the finding
        return {"failed": traceback.format_exc()}
