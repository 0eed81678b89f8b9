"""Another policy while clients are connected: what is open is judged by it, too."""

from collections.abc import Iterable

from app.auth.policy import Policy
from app.gateway.access import Access
from app.gateway.live import LiveSession
from app.gateway.live_exchange import LiveExchange
from app.protocol import stateless


def judge_anew(
    policy: Policy | None, access: Access, sessions: Iterable[LiveSession], exchanges: Iterable[LiveExchange]
) -> None:
    """A session whose principal may use nothing of its server ends; a subscription does, and its client asks again."""
    access.policy = policy
    for live in list(sessions):
        if live.principal is None:
            continue
        if access.enter(live.principal, live.servers).is_allowed:
            live.permit = access.permit(live.principal, live.upstream)
        else:
            live.close("policy_changed")
    for exchange in list(exchanges):
        if exchange.asked.request.method == stateless.LISTEN:
            exchange.close()
