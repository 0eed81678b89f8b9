"""The numbers of a gateway, read as Prometheus reads them."""

import urllib.request
from typing import TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from tests.support.gateway import TOKEN, Gateway
from tests.support.http import request

Shown: TypeAlias = dict[str, dict[frozenset[tuple[str, str]], float]]
"""By name and labels."""


def shown(text: str) -> Shown:
    told: Shown = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = told.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            assert labels not in values, f"{sample.name} {sample.labels} is there twice"
            values[labels] = sample.value
    return told


async def text_of(gateway: Gateway, token: str | None = TOKEN) -> str:
    reply = await request(gateway.port, "GET", "/metrics", token=token)
    body = (await reply.body()).decode()
    assert reply.status == 200, body
    return body


async def numbers(gateway: Gateway) -> Shown:
    return shown(await text_of(gateway))


async def number(gateway: Gateway, name: str, **labels: str) -> float:
    """The sum of all that have these labels; nought where there are none."""
    values = (await numbers(gateway)).get(name, {})
    return sum(value for told, value in values.items() if told >= frozenset(labels.items()))


def at_rest(gateway: Gateway) -> Shown:
    """For who has no loop."""
    request = urllib.request.Request(f"{gateway.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return shown(reply.read().decode())
