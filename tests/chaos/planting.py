"""The real program with a bug in it: what is planted runs before the command does."""

import textwrap


def program(plant: str) -> tuple[str, ...]:
    return ("-c", f"{textwrap.dedent(plant)}\nfrom app.__main__ import main\nmain()")
