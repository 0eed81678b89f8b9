"""A session before and after its handshake; our ids begin at 100."""

from itertools import count

import pytest

from app.core.session import Session
from app.protocol.jsonrpc import Request, Result
from tests.core.sessions import GREETED, GREETING, LIMITS, ask


@pytest.fixture
def new() -> Session:
    return Session(LIMITS, count(100))


@pytest.fixture
def session(new: Session) -> Session:
    ask(new, Request(0, "initialize", GREETING), 1)
    new.deliver(Result(100, GREETED), 0.0)
    return new
