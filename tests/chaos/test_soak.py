"""The long run: clients at work while something strikes every moment, and a history that must make sense.

It takes VIADUCT_SOAK_SECONDS (120 in CI, else 8) and repeats VIADUCT_SOAK_SEED where that is given. By hand:
`python -m tests.chaos.soak`.
"""

import os
import random
from pathlib import Path

import pytest

from tests.chaos.soaking.run import Soak, shown

SECONDS = float(os.environ.get("VIADUCT_SOAK_SECONDS", "120" if os.environ.get("VIADUCT_CI") else "8"))
SEED = int(os.environ.get("VIADUCT_SOAK_SEED", random.randrange(1 << 30)))
STORES = ["memory", "sqlite:///"]
"""What the gateway that is struck keeps its sessions in: `sqlite:///` for a file in the folder of the test."""


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_whatever_strikes_the_history_makes_sense(tmp_path: Path, store: str) -> None:
    where = store if store == "memory" else f"{store}{tmp_path}/sessions.db"
    summary = Soak(SECONDS / len(STORES), SEED, tmp_path, where).run()
    print(shown(summary))
    assert summary["violations"] == 0, summary["first_violations"]
    assert summary["operations"] > 50, summary
    assert summary["faults"] > 5, summary
