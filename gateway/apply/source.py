# SPDX-License-Identifier: Apache-2.0
"""Read YAML safely, with the line of each value. Duplicate keys are refused, and dates are read as texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gateway.apply import ApplyError

Path = tuple[str | int, ...]

#: Maximum number of values in a file: nested aliases can make a small file very large.
_MOST_VALUES = 500_000

_MERGE, _TIMESTAMP = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:timestamp"


class InvalidSource(ApplyError):
    """A file that cannot be used. The message has the file, the line, the path of the field, and the remedy."""


@dataclass(frozen=True, slots=True)
class Source:
    """The parsed file: its name, its value and the line of each path."""

    name: str
    value: Any
    lines: Mapping[Path, int]

    def error(self, path: Path, problem: str) -> InvalidSource:
        """Return the error about the value at a path. Its line is that of the value, or of the nearest container that
        has one.
        """
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        where = f"{path_text(path)}: " if path else ""
        return InvalidSource(f"{self.name}, line {self.lines.get(known, 1)}: {where}{problem}")


def path_text(path: Path) -> str:
    """Return a path as `projects[0].warehouses[2].storage`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


class _Loader(yaml.SafeLoader):
    """The safe YAML loader. It reads timestamps as texts, because the form of the file defines their type."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TIMESTAMP, _MERGE)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_source(name: str, text: str) -> Source:
    """Parse a file. Raises InvalidSource if it is not YAML, has several documents, or has duplicate keys."""
    lines: dict[Path, int] = {}
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            value = _value(loader, name, root, (), lines, frozenset()) if root is not None else {}
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InvalidSource(f"{name}, line {line}: the file is not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise InvalidSource(f"{name}: the file is not valid YAML: {error}") from None
    except RecursionError:
        raise InvalidSource(f"{name}: the values of the file are nested too deeply.") from None
    return Source(name, value, lines)


def _value(
    loader: _Loader, name: str, node: yaml.Node, path: Path, lines: dict[Path, int], above: frozenset[int]
) -> Any:
    """Return the value of a node, and record its line. `above` are the nodes that contain the node."""
    lines.setdefault(path, node.start_mark.line + 1)
    if len(lines) > _MOST_VALUES:
        raise InvalidSource(f"{name}: the file has more than {_MOST_VALUES:,} values. Divide it, or use fewer aliases.")
    if id(node) in above:
        raise InvalidSource(f"{name}, line {node.start_mark.line + 1}: an alias refers to a value that contains it")
    above |= {id(node)}
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, name, each, (*path, place), lines, above) for place, each in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                # A key that is a list is refused: with aliases, the text of the list could exhaust memory.
                raise InvalidSource(f"{name}, line {line}: a key must be a text.")
            key = str(key_node.value)
            if key in found:
                raise InvalidSource(
                    f"{name}, line {line}: {path_text((*path, key))}: this key is given twice. Keep one of them."
                )
            lines[(*path, key)] = line
            found[key] = _value(loader, name, value_node, (*path, key), lines, above)
        return found
    try:
        return loader.construct_object(node)
    except (ValueError, LookupError):
        line = node.start_mark.line + 1
        raise InvalidSource(
            f"{name}, line {line}: {path_text(path)}: this value does not have the form of its type."
        ) from None
