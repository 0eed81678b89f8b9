"""Nobody hears what is not committed, and everybody hears it in its order."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps

from app.core.replay import REMEMBERED_STREAMS, Event, EventLog, Forgotten, Lost, Mark
from app.core.revival import Told
from app.gateway.journal import Journal
from app.gateway.stream import Outlet
from app.protocol.jsonrpc import RequestId
from app.stores.port import Ended, Fact, Opened, Saved, Sleeper, Used, Way
from app.stores.sealed import Key

OPENED = Opened("me", "stage", "cafe0123", 1.0)
TOLD = Told()


class Store:
    """A disk that takes its time: until `commit`."""

    def __init__(self) -> None:
        self.sleepers: dict[bytes, Sleeper] = {}
        self.written: list[list[Fact]] = []
        self._done: list[Callable[[], None]] = []
        self.is_failing = False
        self.was_late = asyncio.Event()

    def start(self) -> None: ...

    def keep(self, _key: Key, facts: list[Fact], done: Callable[[], None]) -> None:
        self.written.append(facts)
        self._done.append(done)

    def commit(self) -> None:
        self._done.pop(0)()

    def forget(self, name: bytes) -> None: ...

    async def take_up(self, _key: Key) -> Saved | None:
        return None

    def is_late(self) -> None:
        self.was_late.set()

    async def close(self) -> None: ...


class Heard(Outlet):
    def __init__(self) -> None:
        self.said: list[object] = []

    def answer(self, body: bytes) -> None:
        self.said.append(body)

    def begin(self, prime: str | None) -> None:
        self.said.append(("begin", prime))

    def event(self, ident: str | None, data: bytes) -> None:
        self.said.append((ident, data))

    def end(self) -> None:
        self.said.append("end")


class Scene:
    def __init__(self, *, is_kept: bool = True, bytes_max: int = 1000) -> None:
        self.store, self.log, self.heard = Store(), EventLog(1000, 3), Heard()
        self.journal = Journal(
            self.store, Key("a session"), OPENED, bytes_max, 0.05, self.log, self.owed, is_kept=False
        )
        if is_kept:
            self.journal.remember(TOLD)
        self.outlet = self.journal.outlet(self.heard)

    def owed(self, stream: int) -> tuple[RequestId, ...] | None:
        return None if stream == 9 else (stream,)

    def say(self, data: bytes, answers: RequestId | None = None) -> None:
        number = self.log.append(1, data, answers)
        self.outlet.event(str(number), data)


def on_loop(work: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    @wraps(work)
    def test() -> None:
        asyncio.run(work())

    return test


@on_loop
async def test_an_event_is_heard_when_it_is_committed_and_not_before() -> None:
    scene = Scene()
    scene.say(b"one")
    assert scene.heard.said == []
    scene.store.commit()
    assert scene.heard.said == [("1", b"one")]
    assert scene.store.written == [[OPENED, TOLD, Way(1, 1, (1,)), Event(1, 1, b"one")]]


@on_loop
async def test_what_comes_while_a_commit_is_on_its_way_goes_into_the_next_and_waits_for_that() -> None:
    scene = Scene()
    scene.say(b"one")
    scene.say(b"two")
    scene.outlet.end()
    scene.store.commit()
    assert scene.heard.said == [("1", b"one")]
    assert scene.store.written[1:] == [[Event(2, 1, b"two")]]
    scene.store.commit()
    assert scene.heard.said == [("1", b"one"), ("2", b"two"), "end"]


@on_loop
async def test_where_nothing_is_on_its_way_everything_is_heard_at_once() -> None:
    scene = Scene()
    scene.journal.then(lambda: None)
    scene.store.commit()
    scene.outlet.begin(None)
    scene.outlet.answer(b"{}")
    assert scene.heard.said == [("begin", None), b"{}"]
    assert len(scene.store.written) == 1


@on_loop
async def test_the_answer_to_initialize_waits_for_its_session_to_be_kept() -> None:
    scene = Scene()
    scene.outlet.answer(b"{}")
    assert scene.heard.said == []
    scene.store.commit()
    assert scene.heard.said == [b"{}"]


@on_loop
async def test_before_it_was_greeted_nothing_of_it_is_kept_and_then_all_of_it_is() -> None:
    scene = Scene(is_kept=False)
    scene.say(b"one", 7)
    scene.log.mark(9)
    assert scene.heard.said == [("1", b"one")]
    assert scene.store.written == []
    scene.journal.remember(TOLD)
    await asyncio.sleep(0)
    facts = [OPENED, Way(1, 1, (1,)), Mark(1, 1), Way(9, 2, None), Mark(2, 9), Event(1, 1, b"one", 7), TOLD]
    assert scene.store.written == [facts]


@on_loop
async def test_what_nobody_hears_is_committed_too() -> None:
    scene = Scene()
    scene.log.append(1, b"one")
    await asyncio.sleep(0)
    assert Event(1, 1, b"one") in scene.store.written[0]


@on_loop
async def test_of_what_is_evicted_before_it_was_committed_only_the_number_is_kept() -> None:
    scene = Scene()
    scene.journal.then(lambda: None)
    for number in range(1, 7):
        scene.log.append(1, b"%d" % number, "last" if number == 3 else None)
    scene.store.commit()
    assert scene.store.written[1] == [
        Way(1, 1, (1,)),
        Lost(3, 1, "last"),
        Event(4, 1, b"4"),
        Mark(2, 1),
        Event(5, 1, b"5"),
        Event(6, 1, b"6"),
    ]


@on_loop
async def test_who_falls_too_far_behind_the_disk_is_closed_and_what_may_be_missed_is_left_out_before() -> None:
    scene = Scene(bytes_max=100)
    scene.say(b"x" * 60)
    assert scene.outlet.skips()
    scene.say(b"x" * 60)
    scene.say(b"x")
    assert scene.heard.said == ["end"]
    scene.say(b"x")
    assert scene.heard.said == ["end"]


@on_loop
async def test_a_disk_that_hangs_is_waited_for_once_and_what_it_missed_is_committed_when_it_answers() -> None:
    scene = Scene()
    scene.say(b"one")
    scene.say(b"two")
    await asyncio.wait_for(scene.store.was_late.wait(), 5)
    assert scene.heard.said == [("1", b"one"), ("2", b"two")]
    scene.say(b"three")
    assert scene.heard.said[2:] == [("3", b"three")]
    assert len(scene.store.written) == 1
    scene.store.commit()
    assert scene.store.written[1:] == [[Event(2, 1, b"two"), Event(3, 1, b"three")]]
    scene.say(b"four")
    assert len(scene.heard.said) == 3


@on_loop
async def test_of_a_stream_that_was_forgotten_before_it_was_committed_nothing_is_kept() -> None:
    scene = Scene()
    scene.log.append(1, b"committed", "one")
    scene.journal.then(lambda: None)
    for stream in range(2, REMEMBERED_STREAMS + 4):
        scene.log.append(stream, b"", stream)
    scene.store.commit()
    streams = [fact.stream for fact in scene.store.written[1] if isinstance(fact, Way | Event | Mark | Lost)]
    assert {1, 2}.isdisjoint(streams)
    assert [fact for fact in scene.store.written[1] if isinstance(fact, Forgotten)] == [Forgotten(1)]
    assert len(scene.journal._ways) == REMEMBERED_STREAMS + 1


@on_loop
async def test_who_has_ended_and_waits_for_a_disk_that_hangs_keeps_nothing_of_what_was_said() -> None:
    scene = Scene()
    scene.say(b"on its way")
    scene.say(b"said meanwhile")
    scene.journal.end()
    scene.outlet.end()
    scene.store.commit()
    assert scene.store.written[1:] == [[Ended()]]
    assert not scene.journal._log.history()
    scene.store.commit()
    assert scene.heard.said == [("1", b"on its way"), ("2", b"said meanwhile"), "end"]


@on_loop
async def test_a_session_that_ends_is_not_kept_and_one_that_is_left_is() -> None:
    over, left = Scene(), Scene()
    over.journal.end()
    left.journal.leave()
    left.journal.end()
    await asyncio.sleep(0)
    assert over.store.written == [[Ended()]]
    assert [[type(fact) for fact in facts] for facts in left.store.written] == [[Used], [Opened, Told]]
