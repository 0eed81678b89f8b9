import pytest

from app.config import naming
from app.config.errors import ConfigError

NAMES = {
    "uvx mcp-server-time": "time",
    "uvx mcp-server-time@1.2 --local-timezone UTC": "time",
    "uvx --from git+https://example.com/x mcp-server-git": "git",
    "uvx mcp-server-fetch[extra]==1.0": "fetch",
    "uv run --directory /srv weather.py": "weather",
    "uv tool run mcp-atlassian": "atlassian",
    "pipx run weather-mcp-server": "weather",
    "npx -y @modelcontextprotocol/server-everything": "everything",
    "npx --yes @modelcontextprotocol/server-filesystem@2026.1.1 /data": "filesystem",
    "npx -y -p @acme/tools acme-mcp": "acme",
    "npx @playwright/mcp@latest": "playwright",
    "npx tsx src/weather.ts": "weather",
    "pnpm dlx @scope/notes-mcp": "notes",
    "bunx time-mcp": "time",
    "python -m my_server": "my-server",
    "python3.11 -m mcp_server_time": "time",
    "python -P -m app.demo.weather": "weather",
    "python -u /opt/x/weather_server.py": "weather",
    "python -W error -m pkg.server": "pkg",
    "/opt/x/weather_server.py": "weather",
    "/opt/weather/server.py": "weather",
    "node dist/index.js": "index",
    "node /srv/weather-mcp/dist/index.js": "weather",
    "node --env-file .env build/notes.mjs": "notes",
    "docker run -i --rm -e TOKEN mcp/time:1.2": "time",
    "docker run --network=host -i ghcr.io/github/github-mcp-server": "github",
    "env TZ=UTC uvx mcp-server-time": "time",
    "sh -c 'exec uvx mcp-server-time'": "time",
    "python -c 'print(1)'": "python",
    "uvx": "uvx",
    "./天气": "server",
}


@pytest.mark.parametrize(("command", "name"), NAMES.items())
def test_a_server_is_named_after_what_its_command_runs(command: str, name: str) -> None:
    import shlex

    assert naming.derived(shlex.split(command)) == name


@pytest.mark.parametrize("command", [["x" * 200], ["-"], ["//"], ["."], ["npx", "-y"], ["sh", "-c", "'"], ["sh", "-c"]])
def test_every_derived_name_is_an_allowed_one(command: list[str]) -> None:
    naming.check([naming.derived(command)], "command")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "x" * 65, "天气", "a\n"])
def test_a_name_that_cannot_stand_in_a_url_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be part of a URL"):
        naming.check([name], "mcpServers")


def test_names_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(ConfigError, match="'Time' and 'time' differ only in case"):
        naming.check(["Time", "time"], "mcpServers")
