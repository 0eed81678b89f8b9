import json
from pathlib import Path

import pytest

from app.config import load
from app.config.errors import ConfigError
from app.config.reading import read


def written(folder: Path, text: str | bytes, name: str = "viaduct.json") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ('// first\n{"a": /* in \n between */ 1}', {"a": 1}),
        ('{"a": [1, 2, ], "b": {"c": 3, // why\n}, }', {"a": [1, 2], "b": {"c": 3}}),
        ('{"url": "https://x/*no*/ // no", "b": ",]"}', {"url": "https://x/*no*/ // no", "b": ",]"}),
        (r'{"a": "quote \" // still text,}"}', {"a": 'quote " // still text,}'}),
        ("\ufeff{}", {}),
        ('{"a": "天气"}', {"a": "天气"}),
    ],
)
def test_json_is_read_as_people_write_it(tmp_path: Path, text: str, tree: object) -> None:
    assert read(written(tmp_path, text)) == tree


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "is not JSON at line 3, column 3"),
        ('{ // a comment\n "a": ! }', "is not JSON at line 2, column 7"),
        ('{"a": [1,,]}', "is not JSON"),
        ('{"a": [,]}', "is not JSON"),
        ('{"a": 1} /* never closed', "is not JSON"),
        ('{"a": 1, "a": 2}', "the key 'a' appears twice"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ("[]", "must hold an object"),
        ("", "is not JSON at line 1, column 1"),
        ("[" * 200_000, "is nested too deep"),
        ('{"a": ' + "9" * 5000 + "}", "holds a number that is too long"),
        (b'{"a": "\xff"}', "is not UTF-8 (byte 7)"),
        ("{}".encode("utf-16"), "is UTF-16; save it as UTF-8"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as wrong:
        read(path)
    assert complaint in str(wrong.value)
    assert str(path) in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_yaml_is_read_by_the_files_extension(tmp_path: Path) -> None:
    text = "x: &shared {a: 1}\nviaduct:\n  <<: *shared\n  expires: 2027-01-01T00:00:00Z\n"
    tree = read(written(tmp_path, text, "viaduct.yaml"))
    assert tree == {"x": {"a": 1}, "viaduct": {"a": 1, "expires": "2027-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2\n", "the key 'a' appears twice (line 2)"),
        ("a:\n  - b\n c: 1\n", "not YAML at line 3"),
        ("1: one\n", "the key at line 1 must be a string"),
        ("a: !!python/object/apply:os.getcwd []\n", "not YAML at line 1"),
        *(
            (f"a: !!{kind} x\n", "it holds a value that is not of the type it is said to be")
            for kind in ("float", "bool", "timestamp", "int")
        ),
        ("a: " + "9" * 5000 + "\n", "it holds a value that is not of the type it is said to be"),
        ("a: &loop {b: [*loop]}\n", "an alias refers to what it is a part of"),
        ("a: \x01\n", "holds a character that YAML does not allow"),
        ("- a\n", "must hold an object"),
    ],
)
def test_what_is_no_yaml_for_us_is_told_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        read(written(tmp_path, text, "viaduct.yml"))
    assert complaint in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the config file .*absent\.json: no such file"):
        read(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("mode", "env", "warned"),
    [
        (0o600, {"API_KEY": "a-secret-value"}, []),
        (0o640, {"API_KEY": "a-secret-value"}, []),
        (0o644, {"API_KEY": "a-secret-value"}, ["everybody can read the config file"]),
        (0o644, {"TZ": "UTC"}, []),
        (0o664, {}, ["others can change the config file"]),
        (0o646, {"API_KEY": "a-secret-value"}, ["others can change the config file", "everybody can read"]),
    ],
)
def test_a_file_that_is_too_open_is_warned_about(
    tmp_path: Path, mode: int, env: dict[str, str], warned: list[str]
) -> None:
    path = tmp_path / "viaduct.json"
    path.write_text(json.dumps({"mcpServers": {"git": {"command": "uvx", "env": env}}}))
    path.chmod(mode)
    notes = load(path, {}).notes
    assert all(note.is_warning for note in notes)
    assert len(notes) == len(warned)
    assert all(note.event.startswith(said) for note, said in zip(notes, warned, strict=True))
