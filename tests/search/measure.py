"""How well questions find their tools: `python -m tests.search.measure`.

Tokens are counted as a quarter of the bytes, which is rough.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from msgspec import Raw

from app.core.ranking import Document, described
from app.search.fts import Fts, Weights

LABELLED = Path(__file__).parent / "labelled"
CUTS = (1, 5, 10)
MANY = 1000
SIZES = (100, 300, 700)

Json = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """`tools` are public names, each of which does what is asked for."""

    text: str
    language: str
    is_held_out: bool
    tools: frozenset[str]


def public(server: str, tool: str) -> str:
    return f"{server}__{tool}"


def listed() -> Iterator[tuple[str, Json]]:
    """Every tool with its server."""
    for path in sorted((LABELLED / "servers").glob("*.json")):
        for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]:
            yield path.stem, tool


def documents() -> list[Document]:
    return [described(public(at, tool["name"]), at, Raw(json.dumps(tool).encode())) for at, tool in listed()]


def questions() -> list[Question]:
    rows = json.loads((LABELLED / "questions.json").read_text(encoding="utf-8"))
    return [
        Question(row["text"], row["language"], row["heldOut"], frozenset(public(*tool) for tool in row["tools"]))
        for row in rows
    ]


def places(ranker: Fts, asked: Iterable[Question]) -> list[int]:
    """At which place, from 1, each question finds the first of its tools; 0 where not among the first hundred."""
    found = []
    for question in asked:
        ranked = ranker.rank(question.text, 100)
        found.append(next((at for at, name in enumerate(ranked, 1) if name in question.tools), 0))
    return found


def recall(found: list[int], cut: int) -> float:
    """Of these questions the part that finds a right tool among the first so many."""
    return sum(0 < place <= cut for place in found) / len(found)


GROUPS: dict[str, Callable[[Question], bool]] = {
    "all": lambda _: True,
    "Chinese": lambda q: q.language == "zh",
    "English": lambda q: q.language == "en",
    "tuned on": lambda q: not q.is_held_out,
    "held out": lambda q: q.is_held_out,
    "held out, Chinese": lambda q: q.is_held_out and q.language == "zh",
    "held out, English": lambda q: q.is_held_out and q.language == "en",
}


def show_recall(ranker: Fts, asked: list[Question]) -> None:
    print(f"{'':20}{'questions':>10}" + "".join(f"{f'recall at {cut}':>14}" for cut in CUTS))
    found = dict(zip(asked, places(ranker, asked), strict=True))
    for name, is_in in GROUPS.items():
        group = [place for question, place in found.items() if is_in(question)]
        print(f"{name:20}{len(group):10}" + "".join(f"{recall(group, cut):14.2f}" for cut in CUTS))


def show_without_glossary(known: list[Document], asked: list[Question]) -> None:
    ranker = Fts(known, Weights(sense=0.0, translation=0.0))
    print("without the glossary:")
    show_recall(ranker, asked)
    ranker.close()


def show_sizes(known: list[Document], asked: list[Question]) -> None:
    """With fewer servers beside those that do what is asked for; which ones is drawn, the same ones in every run."""
    drawing = Random(6)
    print(f"{'tools':>8}" + "".join(f"{f'recall at {cut}':>14}" for cut in CUTS) + f"{'held out at 5':>16}")
    for size in SIZES:
        found = {question: _place_among(known, size, question, drawing) for question in asked}
        held_out = [place for question, place in found.items() if question.is_held_out]
        at = "".join(f"{recall(list(found.values()), cut):14.2f}" for cut in CUTS)
        print(f"{size:8}{at}{recall(held_out, 5):16.2f}")


def _place_among(known: list[Document], size: int, question: Question, drawing: Random) -> int:
    wanted = {document.server for document in known if document.name in question.tools}
    others = sorted({document.server for document in known} - wanted)
    drawing.shuffle(others)
    some = [document for server in (*sorted(wanted), *others) for document in known if document.server == server]
    ranker = Fts(some[: max(size, sum(document.server in wanted for document in known))])
    [place] = places(ranker, [question])
    ranker.close()
    return place


def show_missed(ranker: Fts, asked: list[Question]) -> None:
    """Of those that we may learn from."""
    for question in asked:
        [place] = places(ranker, [question])
        if not question.is_held_out and not 0 < place <= 5:
            print(place, question.text, sorted(question.tools), "instead of", ranker.rank(question.text, 5))


def show_cost(known: list[Document], asked: list[Question]) -> None:
    many = [
        Document(f"{at}_{d.name}", d.title, d.description, d.server, d.parameters)
        for at, d in enumerate(islice(cycle(known), MANY))
    ]
    began = process_time()
    ranker = Fts(many)
    took = process_time() - began
    [[size]] = ranker._index.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
    print(f"index of {MANY} tools: {took * 1e3:.0f} ms of CPU, {size / 1e6:.1f} MB")
    times = []
    for question in asked:
        began = process_time()
        ranker.rank(question.text, 5)
        times.append(process_time() - began)
    times.sort()
    print(f"a question: CPU median {times[len(times) // 2] * 1e3:.1f} ms, slowest {times[-1] * 1e3:.1f} ms")
    ranker.close()


def show_tokens(ranker: Fts, asked: list[Question]) -> None:
    """The whole list, against two tools and what one search brings."""
    tools = {public(server, tool["name"]): tool for server, tool in listed()}
    whole = _tokens(list(tools.values()))
    results = [_tokens([tools[name] for name in ranker.rank(question.text, 5)]) for question in asked]
    mean = sum(results) / len(results)
    two = _tokens([FIND, CALL])
    print(f"tokens: {whole} for {len(tools)} tools; {two} for two, and {mean:.0f} for a result of 5 tools (mean)")
    print(f"saved: {1 - (two + mean) / whole:.1%}")


FIND: Json = {
    "name": "find_tools",
    "description": "Find the tools that can do what you want. Say it in words, in any language.",
    "inputSchema": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 5}},
        "required": ["query"],
    },
}
CALL: Json = {
    "name": "call_tool",
    "description": "Call a tool that find_tools has found, with the arguments that its inputSchema asks for.",
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name"],
    },
}


def _tokens(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) // 4


def main() -> None:
    known, asked = documents(), questions()
    show_cost(known, asked)
    ranker = Fts(known)
    print(f"{len(known)} tools of {len({document.server for document in known})} servers")
    show_recall(ranker, asked)
    show_without_glossary(known, asked)
    show_sizes(known, asked)
    show_tokens(ranker, asked)
    if "--missed" in sys.argv:
        show_missed(ranker, asked)
    ranker.close()


if __name__ == "__main__":
    main()
