"""The long run by hand: `python -m tests.chaos.soak --seconds 3600 [--seed N] [--store sqlite:///PATH]`.

It ends with one line of JSON; its exit status is 1 where something was wrong.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos.soaking.run import Soak, shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", default="memory", help="of the gateway that is struck itself")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="viaduct-soak-") as folder:
        summary = Soak(options.seconds, options.seed, Path(folder), options.store).run()
    print(shown(summary), flush=True)
    return 1 if summary["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
