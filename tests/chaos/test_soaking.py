"""The long run sees what it is there to see: wrong histories, and bugs that are planted."""

from pathlib import Path

import pytest

from tests.chaos.planting import program
from tests.chaos.soaking.history import History
from tests.chaos.soaking.run import Soak

PLANT = """
    import asyncio, logging
    from app.gateway import link
    from app.gateway.gateway import Gateway
    from app.gateway.link import Link
    write, open_, kept = Link.write, Gateway._seated, []
    def twice(self, message):
        write(self, message)
        params = bytes(getattr(message, "params", None) or b"")
        if b'"incr"' in params and self._child is not None:
            self._child.write(link.line(message))
            logging.getLogger("viaduct").warning("told", extra={"params": params})
    def forgets(self, *rest):
        kept.append(asyncio.create_task(asyncio.Event().wait()))
        return open_(self, *rest)
    Link.write, Gateway._seated = twice, forgets
"""

WRONG = {
    "executed twice": ({"n": ""}, "n\nn\n", "n was executed 2 times"),
    "executed twice although it was lost": ({"n": "unknown"}, "n\nn\n", "n was executed 2 times"),
    "answered and not executed": ({"n": "result"}, "", "n was told to be 'result', and was executed 0 times"),
    "told not to be executed, and it was": ({"n": "no"}, "n\n", "n was told to be 'no', and was executed 1 times"),
    "executed and never asked for": ({}, "n\n", "n was executed, and nobody asked for it"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_history_that_cannot_be_is_wrong(tmp_path: Path, kind: str) -> None:
    told, executed, sentence = WRONG[kind]
    file = tmp_path / "executed"
    file.write_text(executed)
    assert History(told=told).judged(file) == [sentence]


def test_a_history_of_which_nobody_knows_everything_may_be_right(tmp_path: Path) -> None:
    file = tmp_path / "executed"
    file.write_text("answered\nlost\nleft\n")
    told = {"answered": "result", "lost": "unknown", "left": "", "refused": "no", "left before": "", "gone": "unknown"}
    assert History(told=told).judged(file) == []


@pytest.mark.slow
def test_planted_bugs_are_seen(tmp_path: Path) -> None:
    violations = Soak(4, 1, tmp_path, program=program(PLANT)).run()["first_violations"]
    for sentence in ("executed 2 times", "viaduct_tasks were left behind", "logged a payload"):
        assert [said for said in violations if sentence in said], (sentence, violations)
