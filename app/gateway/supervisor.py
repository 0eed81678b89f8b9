"""All children of all servers: whose turn it is to start, which are kept warm, and how each of them is."""

import random
from collections.abc import Callable, Iterable

from app.core.fairness import shares_of
from app.core.supervision import ServerView
from app.gateway.room import Room
from app.gateway.settings import SiteName, SupervisorSettings, UpstreamSettings
from app.gateway.tasks import Tasks
from app.gateway.turns import Turns
from app.gateway.ward import Post, Ward
from app.gateway.warm import Warm
from app.protocol.faults import Unavailable
from app.upstreams import protections
from app.upstreams.command import resolve


class Supervisor:
    """`chance` gives a number from 0 up to 1, anew each time."""

    def __init__(
        self,
        settings: SupervisorSettings,
        tasks: Tasks,
        chance: Callable[[], float] = random.random,
        *,
        is_of_one: bool = False,
    ) -> None:
        self.settings = settings
        self.tasks = tasks
        self.chance = chance
        self.room = Room(settings.room)
        self._turns = Turns(shares_of(settings.starts_max, is_only_server=is_of_one))
        self._posts: dict[SiteName, Post] = {}
        self._warm: dict[SiteName, Warm] = {}

    def admit(self, upstream: UpstreamSettings) -> None:
        """
        Raises:
            Unavailable: the server has failed, and it is too early to try again.
        """
        self._post(upstream).admit()

    def admit_child(self, upstream: UpstreamSettings, *, is_there: bool = False) -> None:
        """A child for somebody new; one that is there already, or kept warm, takes no further place.

        Raises:
            Overloaded: there is no room for one more.
        """
        store = self._post(upstream).store
        self.room.admit(needs_place=not is_there and (store is None or store.is_empty))

    def ward(self, upstream: UpstreamSettings, owner: str | None = None) -> Ward:
        """A child that somebody wants: that principal, or whoever uses the server."""
        return Ward(self._post(upstream), upstream, owner)

    def restarts(self, upstream: UpstreamSettings) -> None:
        """The next child of it is in place of one that died."""
        upstream.tally.child_restarts += 1
        self._post(upstream).wanted_in_place()

    def could_start(self, upstream: UpstreamSettings) -> bool:
        """Whether whoever came now would not come too early, and there is a program to start."""
        post = self._post(upstream)
        if post.supervision.restarts.refused_for(post.now) is not None:
            return False
        try:
            resolve(upstream.command)
        except Unavailable:
            return False
        return True

    def views(self, upstreams: Iterable[UpstreamSettings]) -> list[ServerView]:
        """How each of these servers is now, and each child of it."""
        return [self._post(upstream).view() for upstream in upstreams]

    def tell_protections(self, upstreams: Iterable[UpstreamSettings]) -> None:
        """A line for each that says what protects us from its children."""
        for upstream in upstreams:
            protections.tell(upstream.name, upstream.command)

    def keep_warm(self, upstreams: Iterable[UpstreamSettings]) -> None:
        """From now on, as many children of each as it wants are there for whoever comes."""
        for upstream in upstreams:
            if upstream.warm:
                warm = Warm(self._post(upstream), self.settings.restarts)
                self._warm[upstream.site] = warm
                warm.fill()

    def succeed(self, left: Iterable[UpstreamSettings], fresh: Iterable[UpstreamSettings], count: int) -> None:
        """Some servers are left, and no child of theirs waits for anybody; others are new. Now there are so many."""
        self._turns.share(shares_of(self.settings.starts_max, is_only_server=count == 1))
        for upstream in left:
            warm = self._warm.pop(upstream.site, None)
            if warm is not None:
                warm.close()
        fresh = list(fresh)
        self.tell_protections(fresh)
        self.keep_warm(fresh)

    def forget(self, upstream: UpstreamSettings) -> None:
        """Nobody wants a child of it again."""
        self._posts.pop(upstream.site, None)

    def close(self) -> None:
        for warm in self._warm.values():
            warm.close()

    def _post(self, upstream: UpstreamSettings) -> Post:
        post = self._posts.get(upstream.site)
        if post is None:
            post = Post(upstream, self.settings.restarts, self.tasks, self._turns, self.room, self.chance)
            self._posts[upstream.site] = post
        return post
