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

        def tuned(config):
            settings = configured(config)
            upstreams = tuple(
                replace(
                    upstream,
                    deadlines=replace(
                        upstream.deadlines,
                        **({deadlines!r} | {{"park": {parks or {}!r}.get(upstream.name, upstream.deadlines.park)}}),
                    ),
                    era={eras or {}!r}.get(upstream.name, upstream.era),
                )
                for upstream in settings.upstreams
            )
            return replace(settings, upstreams=upstreams, pool=replace(settings.pool, **{pool or {}!r}))

        app.asgi.gateway_settings = tuned
    """)
