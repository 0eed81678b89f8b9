"""What a handshake child asks a stateless client: what it may not ask, and under which key the rest is asked.

A question is asked under its key in every round until it is answered, withdrawn or lapses; a key that was shown once
is never given to another question.
"""

from collections.abc import Container, Mapping
from itertools import count

from msgspec import Raw

from app.protocol import methods, stateless
from app.protocol.faults import BadParams, GatewayFault, UnknownMethod
from app.protocol.jsonrpc import Failure, Request, RequestId, Result, failure
from app.protocol.stateless import Question

_KEY_CHARACTERS = 64
_SAMPLE = "sampling/createMessage"


class Questions:
    """Those that are open."""

    __slots__ = ("_open", "_shown")

    def __init__(self) -> None:
        self._open: dict[str, Request] = {}
        self._shown: set[str] = set()
        """All keys that the client has seen."""

    def __len__(self) -> int:
        return len(self._open)

    def take(self, question: Request) -> None:
        """A second one under an open id is dropped, for one answer is all that can be told apart."""
        if all(other.id != question.id for other in self._open.values()):
            self._open[self._key(question)] = question

    def show(self) -> dict[str, Question]:
        """All of them, for the client; from now on it may answer them."""
        self._shown.update(self._open)
        return {key: asked(question.method, question.params) for key, question in self._open.items()}

    def answer(self, answers: Mapping[str, Raw]) -> list[Result]:
        """What the client's answers are to the server; to what it was not asked, it can answer nothing.

        Raises:
            BadParams: an answer is no object, as every result is; all questions are open still.
        """
        keys = [key for key in self._open if key in self._shown and key in answers]
        for key in keys:
            if not stateless.is_object(answers[key]):
                raise BadParams(f"inputResponses[{key!r}] must be an object, the result that was asked for")
        return [Result(self._open.pop(key).id, answers[key]) for key in keys]

    def withdraw(self, ident: RequestId | None) -> None:
        self._open = {key: question for key, question in self._open.items() if question.id != ident}

    def refuse(self, method: str, capabilities: Mapping[str, Raw]) -> list[Failure]:
        """The client that comes back may take less than the one that asked."""
        refused: list[Failure] = []
        for key, question in list(self._open.items()):
            fault = undeclared(question, method, capabilities)
            if fault is not None:
                del self._open[key]
                refused.append(failure(question.id, fault))
        return refused

    def lapse(self, fault: GatewayFault) -> list[Failure]:
        """None will be answered any more."""
        lapsed, self._open = self._open, {}
        return [failure(question.id, fault) for question in lapsed.values()]

    def _key(self, question: Request) -> str:
        return key_of(question.method, question.params, self._open.keys() | self._shown)


def asked(method: str, params: Raw | None) -> Question:
    """As this revision knows it (changelog: "Minor changes", no `elicitationId`)."""
    if method == methods.ELICIT and params is not None:
        params = methods.without(params, "elicitationId")
    return Question(method, params)


def key_of(method: str, params: Raw | None, taken: Container[str]) -> str:
    """A name that tells people what is asked: a form's first field, else the method, and a number if need be."""
    name = methods.first_field(params)
    if not name.isprintable() or not 0 < len(name) <= _KEY_CHARACTERS:
        name = method.partition("/")[0]
    if name not in taken:
        return name
    return next(key for key in (f"{name}_{n}" for n in count(2)) if key not in taken)


def undeclared(question: Request, method: str, capabilities: Mapping[str, Raw]) -> GatewayFault | None:
    """Why this may not be asked of the client that sent a request of that `method` (mrtr: "Server Requirements")."""
    needed = methods.NEEDED_CAPABILITY.get(question.method)
    if needed is None or method not in stateless.ASKING:
        return UnknownMethod(f"{question.method!r} cannot be asked of this client", reason="cannot_ask")
    if needed not in capabilities:
        return UnknownMethod(f"the client did not declare {needed!r}", reason="capability_not_declared")
    if question.method == methods.ELICIT and not elicits(methods.elicitation_mode(question.params), capabilities):
        return BadParams("the client did not declare this mode of elicitation", reason="capability_not_declared")
    if question.method == _SAMPLE and not _samples(question.params, capabilities):
        return BadParams("the client did not declare tools in sampling", reason="capability_not_declared")
    return None


def elicits(mode: str, capabilities: Mapping[str, Raw]) -> bool:
    """An empty object means forms (client/elicitation: "Capabilities")."""
    if "elicitation" not in capabilities:
        return False
    modes = methods.members(capabilities["elicitation"])
    return mode in modes or (mode == "form" and "url" not in modes)


def _samples(params: Raw | None, capabilities: Mapping[str, Raw]) -> bool:
    """client/sampling: "Tools in Sampling"."""
    wants_tools = not methods.members(params).isdisjoint({"tools", "toolChoice"})
    return not wants_tools or "tools" in methods.members(capabilities["sampling"])
