"""Who sends a request: the token of its head, and whom that admits to the place it is sent to."""

from typing import Protocol

from app.auth.principal import ANONYMOUS, Principal
from app.auth.verdicts import BadToken, CannotVerify
from app.edge.heads import Head
from app.edge.oauth import Resource
from app.edge.refusals import auth_unavailable, unauthorized


class Authentication(Protocol):
    """Whom a token admits: what is known already, and what can be found out."""

    def find(self, token: str) -> Principal | None: ...

    def is_askable(self, token: str) -> bool:
        """Whether `ask` may know more than `find`."""

    async def ask(self, token: str) -> Principal:
        """
        Raises:
            BadToken: it admits nobody.
            CannotVerify: that cannot be found out now.
        """

    def start(self) -> None: ...

    def retire(self) -> None:
        """Another one is asked from now on."""

    def stop(self) -> None: ...


class Bearer:
    """`authentication` is None where the operator asked for none."""

    def __init__(self, authentication: Authentication | None) -> None:
        self._authentication = authentication

    def find(self, head: Head, resource: Resource | None) -> Principal | None:
        """None where it takes time to tell.

        Raises:
            Refusal: nobody.
        """
        if self._authentication is None:
            return ANONYMOUS
        token = _token(head)
        principal = self._authentication.find(token)
        if principal is not None:
            return _here(principal, resource)
        if not self._authentication.is_askable(token):
            raise unauthorized("unknown")
        return None

    async def ask(self, head: Head, resource: Resource | None) -> Principal:
        """However long it takes.

        Raises:
            Refusal: nobody, or nobody can say.
        """
        principal = self.find(head, resource)
        authentication = self._authentication
        if principal is not None or authentication is None:
            return principal or ANONYMOUS
        try:
            return _here(await authentication.ask(_token(head)), resource)
        except BadToken as bad:
            raise unauthorized(bad.cause) from None
        except CannotVerify as cannot:
            if authentication is not self._authentication:
                return await self.ask(head, resource)  # Another one is to say by now.
            raise auth_unavailable(str(cannot), cannot.retry_after) from None

    def succeed(self, authentication: Authentication | None) -> None:
        """That one is asked from now on."""
        former, self._authentication = self._authentication, authentication
        if authentication is former:
            return
        if former is not None:
            former.retire()
        self.start()

    def start(self) -> None:
        if self._authentication is not None:
            self._authentication.start()

    def stop(self) -> None:
        if self._authentication is not None:
            self._authentication.stop()


def _token(head: Head) -> str:
    value = head.get(b"authorization")
    if value is None:
        raise unauthorized()
    scheme, _, token = value.partition(b" ")
    if scheme.lower() != b"bearer":
        raise unauthorized()
    token = token.strip()
    if not token:
        raise unauthorized("unknown")
    return token.decode("latin-1")


def _here(principal: Principal, resource: Resource | None) -> Principal:
    """A token for one of our URLs is none for another."""
    if principal.resources is None:
        return principal
    if resource is None or resource.names.isdisjoint(principal.resources):
        raise unauthorized("wrong_audience")
    return principal
