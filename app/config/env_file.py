"""`envFile`: lines of KEY=VALUE, as VS Code and Docker read them. Values are taken as they stand, unexpanded."""

import re
from pathlib import Path

from app.config.errors import ConfigError

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)", re.DOTALL)


def read(value: object, folder: Path, where: str) -> dict[str, str]:
    """The variables of the file that `value` names, relative to `folder`; none if there is no such setting."""
    if value is None:
        return {}
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"{where} must be the path of a file")
    path = folder / value
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{where}: cannot read {path}: {(error.strerror or 'error').lower()}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {path} is not UTF-8; save it as UTF-8") from error
    return dict(_pair(line, f"{where}: {path} line {number}") for number, line in _meaningful(text))


def _meaningful(text: str) -> list[tuple[int, str]]:
    numbered = ((number, line.strip()) for number, line in enumerate(text.split("\n"), start=1))
    return [(number, line) for number, line in numbered if line and not line.startswith("#")]


def _pair(line: str, where: str) -> tuple[str, str]:
    found = _LINE.fullmatch(line)
    if found is None or "\0" in line:
        raise ConfigError(f"{where} is not KEY=VALUE")
    return found[1], _unquoted(found[2])


def _unquoted(value: str) -> str:
    quoted = re.fullmatch(r"""(["'])(.*)\1(?:\s+#.*)?""", value, re.DOTALL)
    if quoted:
        return quoted[2].replace("\\n", "\n").replace('\\"', '"') if quoted[1] == '"' else quoted[2]
    return re.sub(r"\s+#.*$", "", value)
