"""Tokens that only their issuer can read (RFC 7662): it is asked, a few at a time, unless it is known not to answer."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote_plus

from app.auth.claims import Expected, admitted
from app.auth.compact import LENGTH_MAX, Claims, strict_object
from app.auth.outbound import Fetched, FetchFailed, Form, Outbound
from app.auth.principal import Principal
from app.auth.queue import Queue, QueueFull
from app.auth.verdicts import BadToken, CannotVerify

log = logging.getLogger("viaduct.auth")

_ABOUT_US = frozenset({401, 404, 408, 429})
"""Of the statuses that blame who asks: those that have nothing to do with the token."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask and as whom. `pause` is what it is left alone for, in seconds, after `failures` in a row."""

    url: str
    client_id: str
    client_secret: str
    at_once: int = 16
    waiting_max: int = 256
    failures: int = 3
    pause: float = 5.0


class Introspection:
    def __init__(
        self,
        endpoint: Endpoint,
        expected: Expected,
        outbound: Outbound,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._endpoint = endpoint
        self._expected = replace(expected, is_expiry_needed=False)
        self._outbound = outbound
        self._clock = clock
        self._wall_clock = wall_clock
        self._queue = Queue(endpoint.at_once, endpoint.waiting_max)
        self._failures = 0
        self._closed_until = float("-inf")

    async def verify(self, token: str, *, is_known: bool = False) -> Principal:
        """A token that `is_known` was active when it was asked about last.

        Raises:
            BadToken: it is not active, or not for us.
            CannotVerify: the endpoint cannot be asked, or did not answer as one.
        """
        if len(token) > LENGTH_MAX:
            raise BadToken("too_long")
        claims = self._read(await self._asked(token, is_known=is_known))
        if claims["active"] is not True:
            raise BadToken("inactive")
        if str(claims.get("token_type", "bearer")).lower() not in ("bearer", "access_token"):
            raise BadToken("wrong_type")
        return admitted({"iss": self._expected.issuer} | claims, self._expected, self._wall_clock())

    async def _asked(self, token: str, *, is_known: bool) -> Fetched:
        """In turn. Whoever comes while it is known not to answer, or when too many wait, is not kept waiting."""
        if self._clock() < self._closed_until:
            raise self._cannot("it does not answer")
        try:
            await self._queue.enter(is_known=is_known)
        except QueueFull:
            raise self._cannot("too many wait for it") from None
        try:
            answer = await self._outbound.fetch(self._endpoint.url, self._form(token))
        except FetchFailed as error:
            raise self._failed(str(error)) from error
        finally:
            self._queue.leave()
        if answer.status != 200:
            raise self._refused(answer.status)
        return answer

    def _read(self, answer: Fetched) -> Claims:
        """An answer that does not say whether the token is active is the endpoint's failure, and not the token's."""
        try:
            claims = strict_object(answer.body)
        except ValueError as error:
            raise self._failed("its answer is not JSON") from error
        if not isinstance(claims.get("active"), bool):
            raise self._failed("its answer does not say whether the token is active")
        self._failures = 0
        return claims

    def _refused(self, status: int) -> CannotVerify:
        """An endpoint that objects to a token is well, and is asked about others: anybody can make up such tokens."""
        cause = f"status {status}"
        if status in _ABOUT_US or status not in range(400, 500):
            return self._failed(cause)
        log.warning("a token cannot be introspected", extra={"cause": cause})
        return self._cannot(cause)

    def _failed(self, cause: str) -> CannotVerify:
        self._failures += 1
        if self._failures >= self._endpoint.failures:
            self._closed_until = self._clock() + self._endpoint.pause
        log.warning("tokens cannot be introspected", extra={"cause": cause})
        return self._cannot(cause)

    def _cannot(self, cause: str) -> CannotVerify:
        return CannotVerify(f"the introspection endpoint: {cause}", self._endpoint.pause)

    def _form(self, token: str) -> Form:
        """Id and secret are encoded like a form before they are joined (RFC 6749, section 2.3.1)."""
        fields = {"token": token, "token_type_hint": "access_token"}
        return Form(fields, quote_plus(self._endpoint.client_id), quote_plus(self._endpoint.client_secret))
