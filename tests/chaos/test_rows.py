"""Every kind of fault that is known has a test, and every test that is named exists."""

import ast
from functools import cache

import pytest

from tests.chaos.rows import rows
from tests.support.gateway import ROOT

WANTED = [
    *("F01 F02 F04 F05 F06 F08 F09 F10 F11 F12 F14 F15 F16 F19 F20 F21 F22 F24 F25 F26 F27 F28 F29 F30").split(),
    *("F33 F34 F35 F36 F38 F39 F40 F41 F42 F44 F45 F46 F47 F49 F50 F51 F53 F54 F56 F57 F58").split(),
    *("F59 F60 F61 F63 F64 F65 F66").split(),
    *("F67 F68 F69 F70 F71 F72 F74").split(),
    *("F75 F76 F78 F79 F80 F82 F83 F85 F88 F94 F95 F96").split(),
    *("R01 R02 R03 R04 R06 R08 R09 R11 R12 R13 R14 R16 R17 R18 R20 R21 R22 R23 R24 R26 R27 R28 R29 R30 R31").split(),
    *("R32 R34 R35 R37 R38 R39 R41 R42 R43 R44 R45 R46 R48 R49 R50 R51 R52 R53 R54 R55 R57 R58 R59 R60").split(),
    *("N01 N02 N03 N04 N05 N06 N07 N08").split(),
    *(f"T{number:02}" for number in range(1, 34)),
    *("R61 R62 R63 R64 R65 R66 R67 R71 R74 R77 R79").split(),
]
ROWS = rows()


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


@pytest.mark.parametrize("row", WANTED)
def test_a_kind_of_fault_has_a_test_that_exists(row: str) -> None:
    assert ROWS[row].tests
    missing = [name for path, name in ROWS[row].tests if name not in names_in(path)]
    assert missing == []


def test_no_kind_of_fault_is_listed_that_nobody_wants() -> None:
    assert set(ROWS) == set(WANTED)
