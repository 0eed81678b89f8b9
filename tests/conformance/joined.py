"""What a gateway is configured with: a fixture alone, or as one of five servers that are served as one."""

from collections.abc import Sequence
from typing import Any

from tests.conformance.served import ROOT
from tests.support.shelves import shelf

LIST_SECONDS = 30.0
"""So long a list waits for all five: the suite looks at each only once."""


def alone(command: Sequence[str]) -> dict[str, Any]:
    return {"mcpServers": {"fixture": _fixture(command)}, "viaduct": {}}


def among_five(command: Sequence[str]) -> dict[str, Any]:
    """The fixture is neither the first nor the last, and all names are as their servers have them."""
    before, after = ({name: _shelf(name) for name in names} for names in (("atlas", "beacon"), ("cellar", "dock")))
    return {
        "mcpServers": {**before, "fixture": _fixture(command), **after},
        "viaduct": {"naming": "none", "catalog": {"listTimeout": LIST_SECONDS}},
    }


def _fixture(command: Sequence[str]) -> dict[str, Any]:
    program, *arguments = command
    return {"command": program, "args": arguments, "cwd": str(ROOT)}


def _shelf(name: str) -> dict[str, Any]:
    return shelf(
        name,
        f"{name}_find",
        f"{name}_keep",
        prompts=[f"{name}_prompt"],
        resources=[f"{name}://one"],
        templates=[f"{name}://things/{{id}}"],
        instructions=f"Ask {name} for things.",
    )
