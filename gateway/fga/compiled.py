# SPDX-License-Identifier: Apache-2.0
"""The compiled relationship model of the package, its relations, and the comparison of models.

Pure, except for reading the file of the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Set
from importlib import resources
from typing import Any

_DERIVED = frozenset({"traverse", "read_columns"})


def compiled_model() -> dict[str, Any]:
    """Return the compiled model: schema version, type definitions and conditions in OpenFGA's JSON form."""
    return {key: value for key, value in _file().items() if key != "version"}


def model_version() -> str:
    """Return the version of the compiled model: the last row of `fga_model/VERSIONS.md`, with its `content_hash`."""
    version: str = _file()["version"]
    return version


def _file() -> dict[str, Any]:
    text = resources.files("gateway.fga").joinpath("model.json").read_text(encoding="utf-8")
    model: dict[str, Any] = json.loads(text)
    return model


def relations_of(model: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the names of all relations, by type."""
    return {each["type"]: frozenset(each.get("relations") or ()) for each in model["type_definitions"]}


def actions_of(model: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the relations that an operation may demand (`can_*`), by type.

    Types without such relations are left out.
    """
    actions = {
        type_name: frozenset(relation for relation in relations if relation.startswith("can_"))
        for type_name, relations in relations_of(model).items()
    }
    return {type_name: names for type_name, names in actions.items() if names}


def grantable_of(model: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the relations that can be granted to a user, by type.

    The derived relations `traverse` and `read_columns`, and types without such relations, are left out.
    """
    grantable: dict[str, frozenset[str]] = {}
    for each in model["type_definitions"]:
        relations = ((each.get("metadata") or {}).get("relations") or {}).items()
        names = frozenset(
            name
            for name, about in relations
            if name not in _DERIVED
            and any(subject == {"type": "user"} for subject in about.get("directly_related_user_types") or ())
        )
        if names:
            grantable[each["type"]] = names
    return grantable


def same_model(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return True if both models are equal. The order of types and subjects, and source information, are ignored."""
    return bool(_canonical(left) == _canonical(right))


def without_empties(node: Any) -> Any:
    """Return a stored model without the empty values that OpenFGA adds. The empty objects that have a meaning stay."""
    if isinstance(node, Mapping):
        kept = {key: without_empties(value) for key, value in node.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {}) or _means(key, each)}
    return [without_empties(each) for each in node] if isinstance(node, list) else node


def _means(key: str, value: Any) -> bool:
    return value == {} and key in ("this", "wildcard")


def content_hash(model: Mapping[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of the model's content. Two models have the same hash if `same_model` is true."""
    return hashlib.sha256(json.dumps(_canonical(model), sort_keys=True).encode()).hexdigest()


def missing_from(model: Mapping[str, Any], demanded: Mapping[str, Set[str]]) -> list[str]:
    """Return the relations of `demanded` (by type) that the model lacks, as sorted texts `type#relation`."""
    present = relations_of(model)
    return sorted(
        f"{type_name}#{relation}"
        for type_name, relations in demanded.items()
        for relation in relations
        if relation not in present.get(type_name, frozenset())
    )


def _canonical(model: Mapping[str, Any]) -> Any:
    expected = {key: model.get(key) for key in ("schema_version", "conditions")}
    types = sorted(model.get("type_definitions") or (), key=lambda each: str(each["type"]))
    return _pruned({**expected, "type_definitions": types})


def _pruned(node: Any) -> Any:
    """Return `node` with sorted subjects, and without source information and empty values.

    OpenFGA adds empty strings and objects to a stored model. Only the empty object `this` has a meaning, so it is
    replaced by a text that remains.
    """
    if isinstance(node, Mapping):
        pruned: dict[str, Any] = {
            key: "direct" if key == "this" and value is not None else _pruned(value)
            for key, value in node.items()
            if key not in ("source_info", "module")
        }
        subjects = pruned.get("directly_related_user_types")
        if isinstance(subjects, list):
            subjects.sort(key=lambda subject: json.dumps(subject, sort_keys=True))
        return {key: value for key, value in pruned.items() if value not in (None, "", [], {})}
    if isinstance(node, list):
        return [_pruned(value) for value in node]
    return node
