"""Ranks by SQLite's full-text index: BM25 of each word of a question, and less of what else may be said for it.

Each field has an index of its own, so that a long schema does not make its tool's name weigh less.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from typing import TypeAlias

from app.core.ranking import Document
from app.search import glossary
from app.search.words import asked, is_chinese, words

Scores: TypeAlias = Mapping[int, float]

MAX_QUERY = 500
_MAX_THINGS = 32
_MAX_LOOKUPS = 200
"""Words of a question and for it: they bound what a question costs, whatever it is."""
_END = re.compile(r"[.!?](?=\s)|[。！？\n]")
_MIN_LEAD = 20
_MAX_LEAD = 300


@dataclass(frozen=True, slots=True)
class Fields:
    """How much a word counts where it is found. `lead` is how a description begins, `rest` how it goes on."""

    name: float = 0.5
    lead: float = 1.0
    rest: float = 0.1
    server: float = 1.0
    parameters: float = 0.15


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a word counts against one that was said and is found."""

    fields: Fields = Fields()
    sense: float = 0.8
    """What may be said for an English one."""
    translation: float = 0.5
    """What may be said for a Chinese one."""
    character: float = 0.3
    """A single Chinese character."""


class NoFullText(Exception):
    """This Python's SQLite was built without what ranking needs."""


class Fts:
    """A `Ranker` over documents that stay as they are. It may be made in one thread and used in another."""

    def __init__(self, documents: Iterable[Document], weights: Weights = Weights()) -> None:
        """
        Raises:
            NoFullText: there is no FTS5 here.
        """
        self._weights = weights
        self._names: list[str] = []
        self._index = _opened()
        self._index.execute("BEGIN")
        for document in documents:
            self._add(document)
        self._index.execute("COMMIT")
        self._scored = " UNION ALL ".join(
            f"SELECT rowid, bm25({field}) * -{weight!r} FROM {field} WHERE {field} MATCH ?1"  # noqa: S608 names of ours
            for field, weight in zip(_FIELDS, astuple(weights.fields), strict=True)
            if weight
        )

    def rank(self, query: str, limit: int) -> list[str]:
        """As the port says; of equally near ones the first by name comes first."""
        looked_up: dict[str, Scores] = {}
        things = [self._nearness(thing, looked_up) for thing in self._things(query[:MAX_QUERY])]
        near = _together([thing for thing in things if thing])
        best = sorted((-round(score, 9), self._names[row]) for row, score in near.items())
        return [name for _, name in best[: max(limit, 0)]]

    def close(self) -> None:
        self._index.close()

    def _add(self, document: Document) -> None:
        row = len(self._names)
        self._names.append(document.name)
        for field, text in zip(_FIELDS, _texts(document), strict=True):
            if said := " ".join(words(text)):
                self._index.execute(f"INSERT INTO {field} (rowid, said) VALUES (?, ?)", (row, said))  # noqa: S608

    def _things(self, query: str) -> Iterator[dict[str, float]]:
        """What the question is about, each as the words for it with their weights."""
        weights = self._weights
        for word in list(dict.fromkeys(asked(query)))[:_MAX_THINGS]:
            if is_chinese(word):
                yield {word: weights.character if len(word) == 1 else 1.0}
            else:
                yield {word: 1.0} | dict.fromkeys(glossary.senses(word), weights.sense)
        for word in glossary.known_in(query)[:_MAX_THINGS]:
            yield dict.fromkeys(glossary.senses(word), weights.translation)

    def _nearness(self, thing: Mapping[str, float], looked_up: dict[str, Scores]) -> Scores:
        """Of the words for one thing the best counts: a tool that says it in three ways is no nearer."""
        best: dict[int, float] = {}
        for word, weight in thing.items():
            if word not in looked_up and len(looked_up) < _MAX_LOOKUPS:
                looked_up[word] = self._found(word)
            for row, score in looked_up.get(word, {}).items():
                best[row] = max(best.get(row, 0.0), score * weight)
        return best

    def _found(self, word: str) -> Scores:
        found: defaultdict[int, float] = defaultdict(float)
        for row, score in self._index.execute(self._scored, (_phrase(word),)):
            found[row] += score
        return found


_FIELDS = tuple(field.name for field in fields(Fields))


def _together(things: list[Scores]) -> Scores:
    """The sum, and less of it for who has something to say on few of the things that were asked for."""
    total: defaultdict[int, float] = defaultdict(float)
    touched: defaultdict[int, float] = defaultdict(float)
    for thing in things:
        most = max(thing.values())
        for row, score in thing.items():
            total[row] += score
            touched[row] += (score * most) ** 0.5
    whole = sum(max(thing.values()) for thing in things)
    return {row: score * touched[row] / whole for row, score in total.items()}


def _texts(document: Document) -> tuple[str, ...]:
    """In the order of the fields. The server's name is one of them, so a public name goes without it."""
    own = document.name.removeprefix(document.server)
    lead, rest = _parted(document.description.strip())
    return (f"{own} {document.title}", lead, rest, document.server, document.parameters)


def _parted(description: str) -> tuple[str, str]:
    """Behind its first sentence, if that is one."""
    end = _END.search(description, _MIN_LEAD, _MAX_LEAD)
    at = end.end() if end else _MAX_LEAD
    return description[:at], description[at:]


def _opened() -> sqlite3.Connection:
    index = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        for field in _FIELDS:
            index.execute(f"CREATE VIRTUAL TABLE {field} USING fts5(said, content='', tokenize='porter unicode61')")
    except sqlite3.OperationalError as missing:
        index.close()
        raise NoFullText(f"the SQLite of this Python, {sqlite3.sqlite_version}, has no FTS5: {missing}") from missing
    return index


def _phrase(word: str) -> str:
    """In quotes nothing is syntax, and `words` lets no quotes through."""
    return '"' + " ".join(words(word)) + '"'
