# SPDX-License-Identifier: Apache-2.0
"""Published faults of OpenFGA whose preconditions neither the gateway nor its relationship model has."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakegate.local.toolchain import OPENFGA

GATEWAY = Path(__file__).parents[3] / "gateway"
MODEL = json.loads((GATEWAY / "fga" / "model.json").read_text())


def _relations() -> Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    """Yield (type, relation, rewrite, types that can be granted) for each relation of the model."""
    for each in MODEL["type_definitions"]:
        about = (each.get("metadata") or {}).get("relations") or {}
        for relation, rewrite in (each.get("relations") or {}).items():
            yield each["type"], relation, rewrite, (about.get(relation) or {}).get("directly_related_user_types") or []


def _exclusions(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "difference" in node:
            yield node["difference"]
        for value in node.values():
            yield from _exclusions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _exclusions(value)


def _named(node: Any) -> set[str]:
    """Return the names of the relations that a rewrite refers to, on any type."""
    if isinstance(node, dict):
        own = {node["computedUserset"]["relation"]} if "computedUserset" in node else set()
        return own.union(*(_named(value) for value in node.values()))
    return set().union(*(_named(value) for value in node)) if isinstance(node, list) else set()


@pytest.mark.threat("LG-DEC-36")
def test_no_exclusion_restricts_a_relation_that_all_users_can_have() -> None:
    """CVE-2026-61709 needs one. `managed_access` is granted to all users, and occurs on the excluded side only."""
    granted = {relation for _, relation, _, types in _relations() if any("wildcard" in each for each in types)}
    assert granted == {"managed_access"}
    exclusions = [each for _, _, rewrite, _ in _relations() for each in _exclusions(rewrite)]
    assert exclusions
    # `ownership` is the only base; it refers to no relation, and is granted to no wildcard.
    assert {name for each in exclusions for name in _named(each["base"])} == {"ownership"}
    assert not {"ownership"} & (granted | {name for _, name, rewrite, _ in _relations() if _named(rewrite) & granted})


@pytest.mark.threat("LG-DEC-36")
def test_the_gateway_never_lists_the_users_of_a_relation() -> None:
    """CVE-2026-61709 is in ListUsers. Checks and lists of objects are answered correctly in the affected versions."""
    texts = {
        node.value
        for file in (GATEWAY / "fga").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    paths = {text for text in texts if text.startswith("/")}
    assert {"/batch-check", "/streamed-list-objects"} <= paths
    assert not [path for path in paths if "list-users" in path]
    assert tuple(map(int, OPENFGA.version.removeprefix("v").split("."))) >= (1, 18, 1), "the fault was corrected there"
