# SPDX-License-Identifier: Apache-2.0
"""Write the definition of a relation in OpenFGA's language, as `define` has it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_OPERATORS: Final = {"union": " or ", "intersection": " and "}


def definition_of(rewrite: Mapping[str, Any], subjects: Sequence[Mapping[str, Any]]) -> str:
    """Return the definition of a relation. `subjects` are the types that the relation can be granted to."""
    return _text(rewrite, f"[{', '.join(map(_subject, subjects))}]", inner=False)


def _text(rewrite: Mapping[str, Any], direct: str, *, inner: bool) -> str:
    if "this" in rewrite:
        return direct
    if "computedUserset" in rewrite:
        return str(rewrite["computedUserset"]["relation"])
    if "tupleToUserset" in rewrite:
        walk = rewrite["tupleToUserset"]
        return f"{walk['computedUserset']['relation']} from {walk['tupleset']['relation']}"
    if "difference" in rewrite:
        parts = rewrite["difference"]
        base, less = (_text(parts[name], direct, inner=True) for name in ("base", "subtract"))
        whole = f"{base} but not {less}"
    else:
        ((kind, members),) = rewrite.items()
        whole = _OPERATORS[kind].join(_text(each, direct, inner=True) for each in members["child"])
    return f"({whole})" if inner else whole


def _subject(subject: Mapping[str, Any]) -> str:
    name = str(subject["type"])
    if subject.get("relation"):
        name += f"#{subject['relation']}"
    elif "wildcard" in subject:
        name += ":*"
    return f"{name} with {subject['condition']}" if subject.get("condition") else name
