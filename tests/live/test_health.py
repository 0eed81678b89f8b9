"""What the gateway says of itself, to anybody."""

from pathlib import Path

import pytest

from tests.support.gateway import config, serving
from tests.support.http import on_loop, request


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz/", "/readyz/"])
def test_a_gateway_whose_servers_can_be_started_is_well_and_ready(path: str, tmp_path: Path) -> None:
    with serving(config({"here": {"command": "cat"}, "gone": {"command": "no-such-command"}}), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            assert (await request(gateway.port, "GET", path, token=None)).status == 200

        check()


def test_a_gateway_that_can_start_no_server_is_well_and_not_ready_until_it_can(tmp_path: Path) -> None:
    command = tmp_path / "later"
    with serving(config({"later": {"command": str(command)}}), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            assert (await request(gateway.port, "GET", "/healthz", token=None)).status == 200
            refused = await request(gateway.port, "GET", "/readyz", token=None)
            assert (refused.status, refused.headers["content-type"]) == (503, "application/json")
            command.write_text("#!/bin/sh\ncat\n")
            command.chmod(0o755)
            assert (await request(gateway.port, "GET", "/readyz", token=None)).status == 200

        check()
