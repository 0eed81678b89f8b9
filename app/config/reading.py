"""From the bytes of a config file to a plain tree: JSON as people write it, or YAML by the file's extension."""

import json
import re
from pathlib import Path

from app.config.errors import ConfigError

Tree = dict[str, object]

_COMMENT = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])', re.DOTALL)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read(path: Path) -> Tree:
    text = _text(path)
    tree = _yaml(text, path) if path.suffix.lower() in {".yaml", ".yml"} else _json(text, path)
    if not isinstance(tree, dict):
        raise ConfigError(f'{path} must hold an object such as {{"mcpServers": {{...}}}}')
    return tree


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the config file {path}: {_cause(error)}") from error
    if raw.startswith(_UTF16):
        raise ConfigError(f"{path} is UTF-16; save it as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error


def _cause(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _json(text: str, path: Path) -> object:
    try:
        return json.loads(
            _without_trailing_commas(_without_comments(text)), object_pairs_hook=_unique, parse_constant=_no_number
        )
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path} is not JSON at line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deep") from error
    except ValueError as error:
        raise ConfigError(f"{path} holds a number that is too long") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _without_comments(text: str) -> str:
    """Comments become blanks of the same shape, so that the parser's line and column stay those of the file."""
    return _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def _without_trailing_commas(text: str) -> str:
    def blank(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        before = text[: found.start()].rstrip()[-1:]
        return "," if before in "[{,:" else " "

    return _TRAILING_COMMA.sub(blank, text)


def _unique(pairs: list[tuple[str, object]]) -> Tree:
    tree: Tree = {}
    for key, value in pairs:
        if key in tree:
            raise ConfigError(f"the key {key!r} appears twice; keep one")
        tree[key] = value
    return tree


def _no_number(name: str) -> object:
    raise ConfigError(f"{name} is no number of JSON; write a finite one")


def _yaml(text: str, path: Path) -> object:
    from app.config.yaml_reading import parse

    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
