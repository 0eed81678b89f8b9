"""`${VAR}`, `${VAR:-default}` and VS Code's `${env:VAR}` in every string of the tree; `~` where a path is meant.

`$${` stands for a literal `${`.
"""

import re
from collections.abc import Callable, Mapping

from app.config.errors import ConfigError

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


_OF_VS_CODE = frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "cwd", "file"})


def expand(tree: object, environ: Mapping[str, str], where: str) -> object:
    """The same tree with every string expanded; `where` names it in errors."""
    match tree:
        case str():
            return _expand_text(tree, environ, where)
        case dict():
            return {key: expand(value, environ, f"{where}.{key}" if where else key) for key, value in tree.items()}
        case list():
            return [expand(item, environ, f"{where}.{index}") for index, item in enumerate(tree)]
        case _:
            return tree


def home(text: str, environ: Mapping[str, str]) -> str:
    """`~` or `~/...` by HOME; anything else as it is."""
    if text != "~" and not text.startswith("~/"):
        return text
    base = environ.get("HOME", "")
    return base.rstrip("/") + text[1:] if base else text


def _expand_text(text: str, environ: Mapping[str, str], where: str) -> str:
    return _REFERENCE.sub(_replacement(environ, where), text)


def _replacement(environ: Mapping[str, str], where: str) -> Callable[[re.Match[str]], str]:
    def replace(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        if not found[0].endswith("}"):
            raise ConfigError(f"{where}: ${{ without a closing }}; write $${{ for a literal one")
        variable = _VARIABLE.fullmatch(found[1])
        if variable is None or "${" in found[1] or found[1] in _OF_VS_CODE:
            raise ConfigError(_unknown_form(found[1], where))
        name, default = variable.groups()
        value = environ.get(name)
        if default is not None and not value:
            return str(default)
        if value is None:
            raise ConfigError(f"{where}: the variable {name} is not set; set it or write ${{{name}:-default}}")
        return value

    return replace


def _unknown_form(body: str, where: str) -> str:
    kind, _, name = body.partition(":")
    if kind == "input":
        variable = re.sub(r"\W", "_", name).upper() or "VAR"
        return f"{where}: nobody can be asked for ${{input:{name}}} here; write ${{{variable}}} and set that variable"
    if kind in ("header", "claim", "file") and name:
        return f"{where}: ${{{kind}:...}} may stand in a server's env only; put it there"
    if "${" in body:
        return f"{where}: one ${{...}} inside another is not supported; use a single variable"
    return f"{where}: ${{{kind}}} is not known here; write ${{VAR}}, ${{VAR:-default}} or the value itself"
