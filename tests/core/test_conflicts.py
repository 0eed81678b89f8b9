"""What an operator reads of names that two servers' things have."""

from app.core.catalog import Conflict
from app.core.conflicts import disagreement


def test_where_no_two_have_one_name_nothing_is_said() -> None:
    assert disagreement({}) == ""
    assert disagreement({"/mcp": ()}) == ""


def test_each_name_is_told_with_whose_it_is_and_where() -> None:
    found = {
        "/mcp": (Conflict("tools", "find", ("books", "films")),),
        "/groups/office": (Conflict("prompts", "review", ("books", "books")),),
    }
    assert disagreement(found) == (
        "with naming none no two may have one name: the tool 'find' of books and films at /mcp, "
        "the prompt 'review' of books, twice at /groups/office; change or deny one of each, or let naming be prefix"
    )


def test_of_many_names_some_are_told() -> None:
    found = {"/mcp": [Conflict("tools", f"tool_{number}", ("a", "b")) for number in range(12)]}
    said = disagreement(found)
    assert "tool_4" in said
    assert "tool_5" not in said
    assert ", and 7 more;" in said
