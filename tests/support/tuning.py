"""The real program with other limits than its configuration can say: short ones, so that tests are short."""

from typing import Any

from tests.chaos.planting import program


def tuned(
    eras: dict[str, str] | None = None,
    parks: dict[str, float] | None = None,
    pool: dict[str, Any] | None = None,
    **deadlines: float,
) -> tuple[str, ...]:
    """`eras` and `parks` by server, `pool` and `deadlines` as the fields of `PoolSettings` and `Deadlines`."""
    return program(f"""
        from dataclasses import replace

        import app.asgi

        configured = app.asgi.gateway_settings
        eras, parks, pool, deadlines = {eras or {}!r}, {parks or {}!r}, {pool or {}!r}, {deadlines!r}

        def own(upstream):
            patience = replace(upstream.deadlines, **deadlines)
            patience = replace(patience, park=parks.get(upstream.name, patience.park))
            return replace(upstream, deadlines=patience, era=eras.get(upstream.name, upstream.era))

        def tuned(config):
            settings = configured(config)
            upstreams = tuple(map(own, settings.upstreams))
            return replace(settings, upstreams=upstreams, pool=replace(settings.pool, **pool))

        app.asgi.gateway_settings = tuned
    """)
