"""What else may be said for a word."""

from app.search.glossary import known_in, senses


def test_what_is_said_in_one_language_may_mean_the_other() -> None:
    assert "delete" in senses("删除")
    assert "删除" in senses("delete")


def test_an_english_word_is_known_with_its_endings() -> None:
    assert senses("deleting") == senses("deleted") == senses("deletes") == senses("delete")
    assert senses("libraries") == senses("library")
    assert senses("stopping") == senses("stop")


def test_a_word_does_not_stand_for_itself() -> None:
    assert "delete" not in senses("delete")


def test_what_is_unknown_has_no_other_words() -> None:
    assert senses("xyzzy") == ()


def test_an_arrow_points_one_way() -> None:
    assert "image" in senses("png")
    assert "png" not in senses("image")


def test_the_longest_known_word_is_taken_at_each_place() -> None:
    assert known_in("查询电子表格") == ["查询", "电子表格"]


def test_a_word_is_known_once_and_unknown_ones_are_passed_over() -> None:
    assert known_in("邮件鑫鑫邮件") == ["邮件"]
    assert known_in("no Chinese") == []
