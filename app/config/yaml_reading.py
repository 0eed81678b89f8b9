"""YAML for config files: the safe subset, no key twice, and dates stay the strings that were written."""

from collections.abc import Hashable
from typing import Any

import yaml

from app.config.errors import ConfigError


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - so declared by the base
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    # Any: so typed by types-PyYAML.
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not (isinstance(key, yaml.ScalarNode) and key.tag.endswith((":str", ":merge"))):
                raise ConfigError(f"the key at line {key.start_mark.line + 1} must be a string; put it in quotes")
            if key.value in seen:
                raise ConfigError(f"the key {key.value!r} appears twice (line {key.start_mark.line + 1}); keep one")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse(text: str) -> object:
    try:
        tree: object = yaml.load(text, _Loader)  # noqa: S506 - the loader above is a SafeLoader
        _check_loops(tree, set(), set())
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}" if error.problem_mark else "an unknown line"
        raise ConfigError(f"not YAML at {where}: {error.problem or 'unexpected text'}") from error
    except yaml.YAMLError as error:
        raise ConfigError("not YAML: it holds a character that YAML does not allow") from error
    except RecursionError as error:
        raise ConfigError("nested too deep") from error
    except (ValueError, LookupError, AttributeError) as error:  # as its constructors fail for what they are not for
        raise ConfigError("not YAML: it holds a value that is not of the type it is said to be") from error
    return tree


def _check_loops(tree: object, above: set[int], seen: set[int]) -> None:
    """
    Raises:
        ConfigError: something is inside of itself, by an alias.
    """
    if not isinstance(tree, dict | list) or id(tree) in seen:
        return
    if id(tree) in above:
        raise ConfigError("an alias refers to what it is a part of; write that out")
    above.add(id(tree))
    for inner in tree.values() if isinstance(tree, dict) else tree:
        _check_loops(inner, above, seen)
    above.remove(id(tree))
    seen.add(id(tree))
