"""From pydantic's report to one sentence: where it is, what it must be. Values may be secrets and are not repeated."""

import difflib
import typing
from collections.abc import Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from app.config.errors import ConfigError

_KINDS = {
    "missing": "is missing; add it",
    "string_type": "must be a string; put it in quotes",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "finite_number": "must be a finite number",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_pattern_mismatch": "must be 1 to 64 printable ASCII characters",
}
_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than_equal": ("le", "must be at most"),
}


def sentence(
    error: ValidationError,
    model: type[BaseModel],
    where: str,
    sources: Mapping[str, str],
    ignored: tuple[str, ...] = (),
) -> ConfigError:
    """The first thing wrong. `sources` names what set a path, where that was not the file."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join([where, *(str(step) for step in first["loc"])])
    if first["type"] == "extra_forbidden":
        return ConfigError(unknown_key(path, (*_known_keys(model, first["loc"][:-1]), *ignored)))
    return ConfigError(f"{_named(path, sources)} {_complaint(first)}")


def unknown_key(path: str, known: typing.Iterable[str]) -> str:
    parent, _, key = path.rpartition(".")
    names = sorted(known)
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if near:
        meant = next(name for name in names if name.lower() == near[0])
        return f"{path} is not a setting; did you mean {f'{parent}.{meant}' if parent else meant}?"
    return f"{path} is not a setting; {parent or 'the file'} may hold {', '.join(names)}"


def unknown_server(where: str, name: str, known: typing.Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name.lower(), [known.lower() for known in names], n=1, cutoff=0.6)
    if near:
        meant = next(known for known in names if known.lower() == near[0])
        return f"{where}: there is no server {name!r}; did you mean {meant!r}?"
    return f"{where}: there is no server {name!r}; there are {', '.join(names)}"


def _named(path: str, sources: Mapping[str, str]) -> str:
    return next((source for prefix, source in sources.items() if f"{path}.".startswith(f"{prefix}.")), path)


def _complaint(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"{words} {context[bound]:g}"
    return _KINDS.get(kind, f"is not valid ({kind.replace('_', ' ')})")


def _known_keys(model: type[BaseModel], steps: tuple[int | str, ...]) -> list[str]:
    """The keys of the block that a path leads to, through nested models, and lists and mappings of them."""
    is_key = False
    for step in steps:
        if isinstance(step, str) and not is_key:
            field = next(field for field in model.model_fields.values() if field.alias == step)
            model = _model_in(field.annotation) or model
            is_key = typing.get_origin(field.annotation) is dict
        else:
            is_key = False
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part))), None)
