"""Text as the words that are compared."""

from hypothesis import given
from hypothesis import strategies as some

from app.search.words import asked, words


def test_a_name_is_its_parts_and_itself() -> None:
    assert list(words("get_user-byName2")) == ["get", "user", "by", "name", "2", "byname2"]
    assert list(words("HTTPServer")) == ["http", "server", "httpserver"]


def test_what_some_write_as_one_word_is_found_as_one_and_as_two() -> None:
    assert list(words("JavaScript on GitHub")) == ["java", "script", "javascript", "on", "git", "hub", "github"]


def test_chinese_is_characters_and_their_pairs() -> None:
    assert list(words("天气预报")) == ["天", "天气", "气", "气预", "预", "预报", "报"]


def test_chinese_beside_letters_stands_for_itself() -> None:
    assert list(words("查Jira工单")) == ["查", "jira", "工", "工单", "单"]


def test_full_width_letters_are_letters() -> None:
    assert list(words("Ｊｉｒａ")) == ["jira"]


def test_letters_of_other_scripts_are_words() -> None:
    assert list(words("Größe файла")) == ["grösse", "файла"]


def test_a_question_is_asked_without_what_every_question_has() -> None:
    assert list(asked("Could you please show me the weather?")) == ["show", "weather"]
    assert list(asked("请问我的邮件在哪里")) == ["邮", "邮件", "件", "件在", "在"]


def test_words_that_begin_like_empty_ones_are_kept() -> None:
    assert "上传" in set(asked("上传文件"))
    assert "中转" in set(asked("中转方案"))


@given(some.text())
def test_no_word_has_anything_but_letters_and_digits(text: str) -> None:
    assert all(word.isalnum() or not word.isascii() for word in words(text))
    assert not set('"*^:(){}+-') & set("".join(words(text)))
