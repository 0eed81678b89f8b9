"""`viaduct check` on servers that are well, and on some that are not."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.viaduct import WEATHER, viaduct

ROOT = Path(__file__).resolve().parents[2]

PAGED = """
import json, sys
pages = {None: ["a", "b"], "2": ["c"]}
for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            capabilities = {"tools": {}, "prompts": {}}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "paged"}}
        case "tools/list":
            cursor = params.get("cursor")
            result = {"tools": [{"name": name} for name in pages[cursor]], **({} if cursor else {"nextCursor": "2"})}
        case "prompts/list":
            result = {"prompts": [{"name": "p"}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
ASKING = """
import json, sys
def ask(ident, method):
    print(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method}), flush=True)
    answer = json.loads(sys.stdin.readline())
    while "method" in answer:
        early.append(answer)
        answer = json.loads(sys.stdin.readline())
    assert answer["id"] == ident
    return answer["error"]["code"] if "error" in answer else answer["result"]
early = []
answers = [ask("p", "ping"), ask(7, "roots/list"), ask(1, "sampling/createMessage")]
while True:
    message = early.pop(0) if early else json.loads(sys.stdin.readline() or "null")
    if message is None:
        break
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "asking"}}
    elif message["method"] == "tools/list":
        answers.append(ask("again", "ping"))
        result = {"tools": [{"name": json.dumps(answers)}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
DYING = "import sys; print('no key found', file=sys.stderr); sys.exit(3)"
SILENT = "import sys; print('still thinking', file=sys.stderr, flush=True); sys.stdin.read()"


def python(code: str, **settings: object) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-c", code], **settings}


def config(folder: Path, **servers: object) -> str:
    path = folder / "viaduct.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def checked(folder: Path, **servers: object) -> tuple[int, dict[str, Any]]:
    done = viaduct("check", config(folder, **servers), "--json")
    assert "Traceback" not in done.stderr
    return done.returncode, {report["server"]: report for report in json.loads(done.stdout)["servers"]}


def test_servers_that_are_well_say_what_they_offer(tmp_path: Path) -> None:
    code, reports = checked(tmp_path, weather={"command": WEATHER[0], "args": WEATHER[1:]}, paged=python(PAGED))
    assert code == 0
    assert reports["paged"]["offers"] == {"tools": ["a", "b", "c"], "prompts": ["p"]}
    assert reports["paged"]["version"] == "2025-06-18"
    weather = reports["weather"]
    assert weather["offers"]["tools"] == ["com.example.weather/current", "com.example.weather/forecast"]
    assert weather["info"]["name"] == "weather-server"
    assert weather["ok"] is True
    assert 0 < weather["seconds"] < 20


def test_each_failure_has_its_cause_and_the_others_are_checked_all_the_same(tmp_path: Path) -> None:
    code, reports = checked(
        tmp_path,
        dying=python(DYING),
        silent=python(SILENT, startTimeout=0.5),
        missing={"command": "no-such-command-anywhere"},
        paged=python(PAGED),
    )
    assert code == 1
    assert {name: report["ok"] for name, report in reports.items()} == {
        "dying": False, "silent": False, "missing": False, "paged": True
    }  # fmt: skip
    assert (reports["dying"]["reason"], reports["dying"]["stderr"]) == ("exited_before_ready", ["no key found"])
    assert (reports["dying"]["exit_code"], reports["dying"]["signal"]) == (3, None)
    assert "exit code 3" in reports["dying"]["error"]
    assert (reports["silent"]["reason"], reports["silent"]["stderr"]) == ("start_timed_out", ["still thinking"])
    assert reports["missing"]["reason"] == "command_not_found"


def test_a_table_says_the_same_to_people(tmp_path: Path) -> None:
    done = viaduct("check", config(tmp_path, dying=python(DYING), paged=python(PAGED)))
    assert done.returncode == 1
    dying, paged = done.stdout.split("ok ", 1)
    assert "dying" in dying
    assert "exit code 3" in dying
    assert "no key found" in dying
    assert "3 tools, 1 prompts" in paged


def test_of_a_list_without_an_end_it_is_said_that_there_is_more(tmp_path: Path) -> None:
    endless = PAGED.replace('**({} if cursor else {"nextCursor": "2"})', '"nextCursor": "2"')
    code, reports = checked(tmp_path, endless=python(endless), paged=python(PAGED))
    assert (code, len(reports["endless"]["offers"]["tools"])) == (0, 101)
    assert (reports["endless"]["cut"], reports["paged"]["cut"]) == (["tools"], [])
    assert "there are more tools" in viaduct("check", config(tmp_path, endless=python(endless))).stdout


def test_it_says_what_protects_from_each_server(tmp_path: Path) -> None:
    limited = python(PAGED, limits={"openFiles": 64})
    code, reports = checked(tmp_path, limited=limited, free=python(PAGED))
    assert code == 0
    free = ["own session", "death signal", "no new privileges"]
    assert (reports["free"]["protections"], reports["limited"]["protections"]) == (free, [*free, "open files 64"])
    told = viaduct("check", config(tmp_path, limited=limited)).stdout
    assert "protections: own session, death signal, no new privileges, open files 64" in told


def test_a_server_that_asks_is_answered(tmp_path: Path) -> None:
    code, reports = checked(tmp_path, asking=python(ASKING, startTimeout=10))
    assert reports["asking"]["offers"] == {"tools": ["[{}, -32601, -32601, {}]"]}
    assert code == 0


@pytest.mark.parametrize("listed", ["None", '"tools"', "[]", "7"])
def test_a_server_whose_answer_is_no_object_fails_and_the_others_are_checked_all_the_same(
    tmp_path: Path, listed: str
) -> None:
    odd = PAGED.replace('"result": result', f'"result": {listed} if "tools/list" in line else result')
    code, reports = checked(
        tmp_path, odd=python(odd.replace("{null", "{None").replace(": null", ": None")), paged=python(PAGED)
    )
    assert code == 1
    assert (reports["odd"]["reason"], reports["paged"]["ok"]) == ("spoke_nonsense", True)


def test_what_a_server_calls_its_tools_does_not_command_the_terminal(tmp_path: Path) -> None:
    done = viaduct("check", config(tmp_path, loud=python(PAGED.replace('"c"', r'"\x1b[2Jgone\n"'))))
    assert "\x1b" not in done.stdout
    assert r"\x1b[2Jgone\n" in done.stdout


def test_a_stateless_server_says_what_it_offers(tmp_path: Path) -> None:
    stateless = {"command": sys.executable, "args": ["-m", "tests.conformance.fixtures.modern"], "cwd": str(ROOT)}
    code, reports = checked(tmp_path, stateless=stateless)
    assert code == 0
    assert (reports["stateless"]["version"], reports["stateless"]["info"]["name"]) == (
        "2026-07-28",
        "conformance-fixture",
    )
    assert "test_simple_text" in reports["stateless"]["offers"]["tools"]
