"""All children of all servers: whose turn it is to start, which are kept warm, and how each of them is."""

import random
from collections.abc import Callable, Iterable

from app.core.fairness import shares_of
from app.core.supervision import ServerView
from app.gateway.room import Room
from app.gateway.settings import SupervisorSettings, UpstreamSettings
from app.gateway.tasks import Tasks
from app.gateway.turns import Turns
from app.gateway.ward import Post, Ward
from app.gateway.warm import Warm
from app.upstreams import protections


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
        self._posts: dict[str, Post] = {}
        self._warm: list[Warm] = []

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

    def is_refused(self, upstream: UpstreamSettings) -> bool:
        """Whether it has failed, and whoever comes now comes too early."""
        post = self._post(upstream)
        return post.supervision.restarts.refused_for(post.now) is not None

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
                self._warm.append(warm)
                warm.fill()

    def close(self) -> None:
        for warm in self._warm:
            warm.close()

    def _post(self, upstream: UpstreamSettings) -> Post:
        post = self._posts.get(upstream.name)
        if post is None:
            post = Post(upstream, self.settings.restarts, self.tasks, self._turns, self.room, self.chance)
            self._posts[upstream.name] = post
        return post
