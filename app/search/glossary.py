"""What tools do and touch, in two languages.

Each row of `glossary.txt` holds words that a question and a tool may use for one thing; where it has a `>`, the
question says what is before it and the tool what is behind. What is joined by `_` is said as one.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from app.search.words import is_chinese, runs


@cache
def _senses() -> dict[str, tuple[str, ...]]:
    """Each word with those that may be said for it, in the order of the rows."""
    rows = files("app.search").joinpath("glossary.txt").read_text(encoding="utf-8")
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in rows.splitlines():
        said, _, meant = row.partition(" > ")
        for word in said.split():
            found[word] |= dict.fromkeys((meant or said).split())
    return {word: tuple(other for other in others if other != word) for word, others in found.items()}


@cache
def _longest() -> int:
    return max(len(word) for word in _senses() if is_chinese(word))


def senses(word: str) -> tuple[str, ...]:
    """What else may be said for an English word, also where it has an ending."""
    known = _senses()
    return next((known[stem] for stem in _stems(word) if stem in known), ())


def known_in(text: str) -> list[str]:
    """The Chinese words of a text that have a row, the longest at each place, each once."""
    found: dict[str, None] = {}
    for run in runs(text):
        at = 0
        while at < len(run):
            word = _word_at(run, at)
            found |= {word: None} if word else {}
            at += len(word) or 1
    return list(found)


def _word_at(run: str, at: int) -> str:
    known = _senses()
    sizes = range(min(_longest(), len(run) - at), 0, -1)
    return next((run[at : at + size] for size in sizes if run[at : at + size] in known), "")


def _stems(word: str) -> Iterator[str]:
    yield word
    for ending, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            stem = word.removesuffix(ending) + instead
            yield stem
            if len(stem) > 3 and stem[-1] == stem[-2]:
                yield stem[:-1]
