"""The part of the composition root that puts another configuration in the place of the one that runs."""

import logging

from app import admitting, asgi
from app.auth.authentication import Authentication
from app.config import Config, tell
from app.config.fixed import check_fixed
from app.core.succession import Succession
from app.edge.app import Viaduct
from app.edge.bearer import Authentication as Asked
from app.telemetry import logs

log = logging.getLogger("viaduct.config")


def adopt(app: Viaduct, former: Config, following: Config) -> Succession:
    """From now on `following` is what runs: all of it, at once. From within the loop.

    Raises:
        ConfigError: it has something that cannot change, and nothing has happened.
    """
    check_fixed(former.viaduct, following.viaduct)
    settings, policy = asgi.gateway_settings(following), asgi.policy(following)
    guards, prefix = asgi.guards(following), asgi.prefix(following)
    left = tuple(upstream.name for upstream in app.gateway.left)
    authentication = _authentication(app.authentication, former, following, left)
    logs.set_level(following.viaduct.log_level)
    tell(following, former)
    change = app.gateway.adopt(settings, following.viaduct.drain)
    if app.gateway.access.witness is not None:
        app.gateway.access.witness.shown = asgi.showing(following)
    numbers, oauth = asgi.metrics(app.gateway, app.tally, following), asgi.oauth(following)
    app.adopt(asgi.edge_settings(following, app.tally), guards, authentication, prefix, numbers, oauth)
    if former.viaduct.policy != following.viaduct.policy:
        app.gateway.judge_anew(policy)
    return change


def _authentication(running: Asked | None, former: Config, following: Config, left: tuple[str, ...]) -> Asked | None:
    """The one that runs, where nothing would be different."""
    if following.no_auth:
        return None
    if running is not None and _rules(former) == _rules(following):
        return running
    return asgi.authentication(following, running if isinstance(running, Authentication) else None, left)


def _rules(config: Config) -> tuple[object, ...]:
    """All that says who is let in. URLs and claims matter to tokens of issuers only."""
    settings = config.viaduct
    named: tuple[object, ...] = ()
    if settings.auth.has_issuers:
        named = tuple(config.servers), tuple(settings.groups), admitting.claims_read(config)
    return settings.auth, settings.outbound, settings.public_url, named
