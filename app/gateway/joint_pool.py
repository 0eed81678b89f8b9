"""What stateless requests to several servers at once are served from: those about one thing go to the server whose it
is, and the others are answered for all of them."""

from collections.abc import Callable
from functools import partial

from msgspec import Raw
from msgspec.structs import replace

from app.core import finding
from app.core.inventory import SHELF_OF
from app.core.joint_names import JointNames
from app.core.links import relinked
from app.core.routing import routed, unknown
from app.gateway.asked import Asked, Host
from app.gateway.joint import Joint
from app.gateway.joint_child import JointChild
from app.gateway.joints import Joints
from app.gateway.live_exchange import LiveExchange
from app.gateway.settings import PoolSettings, UpstreamSettings
from app.protocol import discovery, methods, stateless
from app.protocol.faults import GatewayFault, Unavailable
from app.protocol.jsonrpc import Message, Notification, Result, failure, payload, read
from app.protocol.stateless import Admitted

_OF_ALL = frozenset({stateless.DISCOVER, stateless.LISTEN, *SHELF_OF})


class JointPool:
    """`begin` starts an exchange of our own, and returns what ends it; `lease` leases a child of one server."""

    def __init__(
        self,
        joints: Joints,
        settings: PoolSettings,
        begin: "Callable[[Asked, _Ear], Callable[[], None]]",
        lease: Callable[[LiveExchange], None],
    ) -> None:
        self.settings = settings
        self._joints = joints
        self._begin = begin
        self._lease = lease

    def resize(self, settings: PoolSettings) -> None:
        """From now on these numbers hold."""
        self.settings = settings

    def names(self, upstream: UpstreamSettings) -> JointNames:
        return self._joints.of(upstream).names

    def aimed(self, asked: Asked) -> Asked:
        """The request as its server gets it, where it is known whose it is; as it is where not."""
        try:
            return asked if self._is_of_all(asked) else self._routed(asked)
        except GatewayFault:
            return asked

    def lease(self, live: LiveExchange) -> None:
        """Until it is known whose it is, it is with all of them."""
        joint = self._joint(live.asked)
        child = JointChild(joint, live.asked.sees, lambda uri, said: self._subscribe(live.asked, joint, uri, said))
        live.lease = _JointLease(self, is_of_all=self._is_of_all(live.asked))
        live.granted(child, is_alone=False)

    def renew(self, live: LiveExchange) -> None:
        """
        Raises:
            BadParams, UnknownMethod: it is sent to nothing that there is.
            Overloaded, Unavailable: its server cannot take it.
        """
        live.asked = self._routed(live.asked)
        self._lease(live)

    def _joint(self, asked: Asked) -> Joint:
        return self._joints.of(asked.upstream)

    def _is_of_all(self, asked: Asked) -> bool:
        if asked.request.method in _OF_ALL:
            return True
        if not self._joint(asked).rules.finds:
            return False
        return finding.search(asked.request, 1) is not None

    def _routed(self, asked: Asked) -> Asked:
        joint, settings = self._joint(asked), asked.upstream.joint
        assert settings is not None  # noqa: S101 - it is of several
        catalog, finds = joint.known.catalog, joint.rules.finds
        call = finding.unwrapped(asked.request) if finds else asked.request
        route = routed(call, catalog)
        assert isinstance(route.request, Admitted)  # noqa: S101 - as the one that it was made of
        return replace(
            asked,
            upstream=self._joints.member(settings, route.server),
            request=route.request,
            outward=partial(relinked, public=partial(catalog.public_uri, route.server)),
            is_mirrored=asked.is_mirrored and call is asked.request,
        )

    def _subscribe(
        self, asked: Asked, joint: Joint, uri: str, said: Callable[[Message | None], None]
    ) -> Callable[[], None]:
        settings = asked.upstream.joint
        assert settings is not None  # noqa: S101 - it is of several
        catalog = joint.known.catalog
        owner = catalog.owner_of(uri)
        if owner is None:
            raise unknown("resources", uri)
        server, own = owner
        fields = {
            "_meta": asked.request.meta.written,
            "notifications": payload({"resourceSubscriptions": [own]}),
        }
        meta = asked.request.meta
        listen = Admitted(1, stateless.LISTEN, payload(fields), fields=fields, meta=meta, target="")
        ours = Asked(asked.owner, self._joints.member(settings, server), listen, asked.headers)
        return self._begin(ours, _Ear(own, said, partial(catalog.public_uri, server)))


class _JointLease:
    def __init__(self, pool: JointPool, *, is_of_all: bool) -> None:
        self._pool = pool
        self._is_of_all = is_of_all

    def fits(self, _child: Host) -> bool:
        return self._is_of_all

    def renew(self, live: LiveExchange) -> None:
        self._pool.renew(live)

    def release(self, *, is_clean: bool) -> None:
        """Nobody else has such a child."""


class _Ear:
    """As the outlet of an exchange of our own that listens to one resource, which its server calls `own`."""

    def __init__(self, own: str, said: Callable[[Message | None], None], public: Callable[[str], str]) -> None:
        self._own = own
        self._said = said
        self._public = public
        self._is_answered = False
        self._is_heard = False
        """Whether the server tells of it."""

    def answer(self, body: bytes) -> None:
        self.event(None, body)

    def begin(self, prime: str | None) -> None:
        """Events follow."""

    def event(self, ident: str | None, data: bytes) -> None:  # noqa: ARG002 - as an outlet's
        message = read(data)
        match message:
            case Notification(method=stateless.ACKNOWLEDGED):
                self._answer(is_heard=self._own in discovery.acknowledged(message).uris)
            case Notification(method=methods.RESOURCE_UPDATED):
                uri = self._public(methods.resource_uri(message.params))
                self._said(methods.with_field(message, "uri", uri))
            case _:
                pass  # Its last word, after which it ends.

    def end(self) -> None:
        """Where that never began, the others go on without it."""
        if self._is_heard:
            self._said(None)
        elif not self._is_answered:
            self._answer(is_heard=False)

    def _answer(self, *, is_heard: bool) -> None:
        self._is_answered, self._is_heard = True, is_heard
        refused = Unavailable("the server does not tell of this resource", reason="not_subscribed")
        self._said(Result(0, Raw(b"{}")) if is_heard else failure(0, refused))

    def has_room(self) -> bool:
        return True

    def skips(self) -> bool:
        return False
