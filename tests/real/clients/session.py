"""One client in one session, whichever generation of the Python SDK it is of: what it was asked and told is kept."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from mcp import types
from pydantic import BaseModel

BOUND_SECONDS = 15.0

Json = dict[str, Any]
Report = Callable[[float, float | None, str | None], Awaitable[None]]
Next = Callable[[], Awaitable[Json]]
"""The next change that a subscription tells of."""

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


class Sdk(Protocol):
    """What differs between the generations."""

    fault: Any
    """Raised for a JSON-RPC error, which is its attribute `error`."""

    def open(self, target: Json, callbacks: Json) -> AbstractAsyncContextManager[Any]: ...
    def greeting(self, client: Any) -> Json: ...
    def is_stateless(self, client: Any) -> bool: ...
    def listen(self, client: Any, wanted: Json) -> AbstractAsyncContextManager[Next]:
        """Subscribes as the stateless era does."""

    def uri(self, text: str) -> Any: ...
    async def tools(self, client: Any, cursor: str | None) -> BaseModel:
        """A page of them."""

    async def abandon(self, client: Any, request_id: int) -> None:
        """Tells the server of a cancellation, where leaving the call does not do so by itself."""


@dataclass
class Session:
    sdk: Sdk
    target: Json
    client: Any = None
    asked: list[Json] = field(default_factory=list)
    told: list[Json] = field(default_factory=list)
    answers: Json = field(default_factory=dict)
    _news: anyio.Event = field(default_factory=anyio.Event)

    @classmethod
    @asynccontextmanager
    async def open(cls, sdk: Sdk, target: Json) -> AsyncIterator["Session"]:
        session = cls(sdk, target)
        session.answers["roots/list"] = {"roots": target.get("roots", [])}
        async with sdk.open(target, session._callbacks()) as session.client:
            yield session

    @property
    def is_stateless(self) -> bool:
        return self.sdk.is_stateless(self.client)

    async def call(self, tool: Json, report: Report | None = None, meta: Json | None = None) -> Json:
        with anyio.fail_after(BOUND_SECONDS):
            return wire(
                await self.client.call_tool(
                    tool["name"], tool.get("arguments", {}), progress_callback=report, meta=meta
                )
            )

    async def call_at(self, level: str | None, tool: Json) -> Json:
        """Calls the tool with log messages from this level on, or without asking for any."""
        if level is None:
            return await self.call(tool)
        if self.is_stateless:
            return await self.call(tool, meta={LOG_LEVEL: level})
        await self.client.set_logging_level(level)
        return await self.call(tool)

    @asynccontextmanager
    async def listening(self, wanted: Json) -> AsyncIterator[Next]:
        """Subscribes, as its era does, to `resources` and to the lists of `lists`."""
        if self.is_stateless:
            async with self.sdk.listen(self.client, wanted) as following:
                yield following
            return
        since, uris = len(self.told), [self.sdk.uri(uri) for uri in wanted.get("resources", [])]
        for uri in uris:
            await self.client.subscribe_resource(uri)
        yield lambda: self.hears(_is_change, since)
        for uri in uris:
            await self.client.unsubscribe_resource(uri)

    async def hears(self, is_it: Callable[[Json], bool], since: int = 0) -> Json:
        """The first notification from the one numbered `since` on that is as it should be."""
        with anyio.fail_after(BOUND_SECONDS):
            while True:
                news = self._news
                for notification in self.told[since:]:
                    if is_it(notification):
                        return notification
                await news.wait()

    def _callbacks(self) -> Json:
        heard = {"message_handler": self._tell}
        if self.target.get("silent"):
            return heard
        return heard | {
            "elicitation_callback": self._elicited,
            "list_roots_callback": self._asked_for_roots,
            "sampling_callback": self._sampled,
        }

    async def _tell(self, message: Any) -> None:
        notification = getattr(message, "root", message)
        if isinstance(notification, BaseModel) and hasattr(notification, "method"):
            told = wire(notification)
            self.told.append({"method": told["method"], "params": told.get("params")})
            self._news.set()
            self._news = anyio.Event()

    async def _elicited(self, _: Any, params: BaseModel) -> types.ElicitResult:
        return types.ElicitResult.model_validate(self._answer("elicitation/create", wire(params)))

    async def _asked_for_roots(self, _: Any) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(self._answer("roots/list", None))

    async def _sampled(self, _: Any, params: BaseModel) -> types.CreateMessageResult:
        return types.CreateMessageResult.model_validate(self._answer("sampling/createMessage", wire(params)))

    def _answer(self, method: str, params: Json | None) -> Json:
        self.asked.append({"method": method, "params": params})
        answer: Json = self.answers[method]
        return answer


def _is_change(told: Json) -> bool:
    return str(told["method"]).endswith(("/updated", "/list_changed"))


def wire(model: BaseModel) -> Json:
    """As it was on the wire: nothing that was not there."""
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True)
