"""Text as the words that are compared: of names their parts, of Chinese its characters and their pairs.

Nothing but letters and digits is in a word, so no word can be syntax of anything.
"""

import re
from collections.abc import Iterator
from unicodedata import normalize

_CHINESE = "\u3400-\u4dbf\u4e00-\u9fff"
_RUNS = re.compile(rf"[{_CHINESE}]+|[^\W_{_CHINESE}]+")
_HAN = re.compile(rf"[{_CHINESE}]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MAX_WORD = 64

_ENGLISH = frozenset(
    "a about all also am an and any are as at be been but by can could did do does for from had has have he her here "
    "him his how i if in into is it its just let like ll make may me might mine my need needs no not of on one or our "
    "out please re s she should so some t than that the their them then there these they this those to up us ve want "
    "wants was we were what when where which who whom whose why will with would you your yours".split()
)
_CHINESE_WORDS = re.compile(
    "一下|一个|一些|一份|一张|一条|一段|什么|怎么|怎样|如何|哪些|哪个|哪里|哪儿|可以|能不能|能否|可不可以|是否|有没有|"
    "是不是|帮我|帮忙|请问|麻烦|我们|你们|他们|我想|想要|需要|这个|那个|这些|那些|这里|那里|这份|这张|这段|这句|现在|"
    "告诉我|给我|为我|替我|看看|[的了吗呢吧啊呀嘛把被让我你您他她它]"
)


def is_chinese(word: str) -> bool:
    return _HAN.fullmatch(word) is not None


def written(text: str) -> str:
    """In one spelling: full-width letters are letters."""
    return normalize("NFKC", text)


def words(text: str) -> Iterator[str]:
    """Those to be found by: `getUserById2` is `get user by id 2` and itself, `天气预报` is 天 天气 气 气预 ..."""
    for run in _RUNS.findall(written(text)):
        yield from _pairs(run) if is_chinese(run) else _parts(run)


def asked(text: str) -> Iterator[str]:
    """Those of a question that say what it is about."""
    for run in _RUNS.findall(written(text)):
        if is_chinese(run):
            for rest in meaningful(run):
                yield from _pairs(rest)
        else:
            yield from (part for part in _parts(run) if part not in _ENGLISH)


def meaningful(run: str) -> list[str]:
    """A run of Chinese without the words that every question has."""
    return [rest for rest in _CHINESE_WORDS.split(run) if rest]


def runs(text: str) -> list[str]:
    """The Chinese in a text, as it stands."""
    return _HAN.findall(written(text))


def _parts(run: str) -> Iterator[str]:
    """And the whole, because JavaScript and GitHub are also written as one."""
    parts = _PARTS.findall(run) if run.isascii() else [run]
    yield from (part.casefold()[:_MAX_WORD] for part in parts)
    if len(parts) > 1:
        yield run.casefold()[:_MAX_WORD]


def _pairs(run: str) -> Iterator[str]:
    for i, character in enumerate(run):
        yield character
        if i + 1 < len(run):
            yield run[i : i + 2]
