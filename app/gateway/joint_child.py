"""Several servers as one, to one stateless request: answered as by a child of the handshake that has all of them."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from msgspec import Raw
from msgspec.structs import replace

from app.core import finding, introductions
from app.core.catalog import Entry, Sight
from app.core.inventory import LISTED, SHELF_OF
from app.gateway.common import Member
from app.gateway.joint import Joint
from app.gateway.patient import PatientTimer
from app.protocol import methods
from app.protocol.faults import GatewayFault, Unavailable, UnknownMethod
from app.protocol.jsonrpc import Message, Notification, Reply, Request, Result, failure, payload

Subscribe = Callable[[str, Callable[[Message | None], None]], Callable[[], None]]
"""Listens to a resource by its public URI, and tells what is said of it: first a reply, whether that began, then
notifications, and None when there will be no more. What it returns ends it. It raises a GatewayFault where nobody has
the resource."""


class JointChild:
    is_modern = False

    def __init__(self, joint: Joint, sees: Sight, subscribe: Subscribe) -> None:
        self.mint: Iterator[int] = count(1)
        self._joint = joint
        self._sees = sees
        self._subscribe = subscribe
        self._member: Member | None = None
        self._catalog = joint.known.catalog
        self._timer: PatientTimer | None = None
        self._is_late = False
        self._subscriptions: list[Callable[[], None]] = []

    @property
    def is_ready(self) -> bool:
        """Whether all is known, or it took too long."""
        return self._is_late or self._joint.known.is_whole

    @property
    def greeted(self) -> Raw | None:
        return introductions.introduced(self._joint.known, self._sees, self._joint.rules.version)

    def server_info(self) -> Raw | None:
        return payload(introductions.server_info(self._joint.rules.version))

    def join(self, member: Member) -> int:
        self._member = member
        self._joint.watch(self._learn)
        if not self.is_ready:
            loop = asyncio.get_running_loop()
            self._timer = PatientTimer(loop, loop.time() + self._joint.rules.patience, self._late)
        return 1

    def leave(self, _party: int) -> None:
        self._member = None
        self._joint.unwatch(self._learn)
        if self._timer is not None:
            self._timer.cancel()
        ends, self._subscriptions = self._subscriptions, []
        for end in ends:
            end()

    def submit(self, _party: int, message: Message) -> None:
        if isinstance(message, Request):
            self._tell(self._answer(message))

    def hold(self, _party: int) -> list[Message]:
        """Nobody asks anything."""
        return []

    def withdraw(self, _ident: int) -> bool:
        return False

    def doubt(self) -> None:
        """There is no process that could be stuck."""

    def _answer(self, request: Request) -> Reply | None:
        try:
            if request.method == methods.SUBSCRIBE:
                uri = methods.resource_uri(request.params)
                end = self._subscribe(uri, partial(self._said, request))
                if self._member is None:  # It ended before it had begun.
                    end()
                else:
                    self._subscriptions.append(end)
                return None
            search = finding.search(request, self._joint.rules.found) if self._joint.rules.finds else None
            if search is not None:
                self._find(request, search)
                return None
            return Result(request.id, self._page(request))
        except GatewayFault as fault:
            return failure(request.id, fault)

    def _find(self, request: Request, search: finding.Search) -> None:
        def then(entries: list[Entry]) -> None:
            self._tell(Result(request.id, finding.found(entries)))

        self._joint.find(self._joint.known.catalog, search.query, search.limit, self._sees, then)

    def _page(self, request: Request) -> Raw:
        joint, catalog, shelf = self._joint, self._joint.known.catalog, SHELF_OF.get(request.method)
        if shelf == "tools" and joint.rules.finds:
            return finding.TOOLS
        if shelf is None:
            raise UnknownMethod(f"unknown method {request.method[:100]!r}")
        return catalog.page(
            shelf, methods.cursor(request.params), joint.rules.page, lambda entry: self._sees(shelf, entry)
        )

    def _said(self, subscribe: Request, message: Message | None) -> None:
        match message:
            case None:
                self._lost()
            case Notification():
                self._tell(message)
            case _:
                self._tell(replace(message, id=subscribe.id))

    def _lost(self) -> None:
        """One of the servers ended what it was listened to for; whoever listens begins anew."""
        if self._member is not None:
            self._member.lost(Unavailable("a server ended the subscription", reason="ended"))

    def _tell(self, message: Message | None) -> None:
        if message is not None and self._member is not None:
            self._member.deliver(message)

    def _learn(self) -> None:
        before, self._catalog = self._catalog, self._joint.known.catalog
        if self._timer is not None:
            if self.is_ready:
                self._now_ready()
            return  # Nobody has seen a list yet, and so none is another.
        changed = {listed.changed for shelf, listed in LISTED.items() if not self._catalog.is_like(before, shelf)}
        if self._joint.rules.finds:
            changed.discard(methods.TOOLS_CHANGED)  # Two of them are seen, whatever there is.
        for method in sorted(changed):
            self._tell(Notification(method))

    def _late(self) -> None:
        self._is_late = True
        self._now_ready()

    def _now_ready(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._member is not None:
            self._member.ready()
