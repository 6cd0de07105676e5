# SPDX-License-Identifier: Apache-2.0
"""References of definitions to tags, and the tags that they mean."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.obligations.data_policies import DataPolicy, Definition, tags_of, with_tags

MASK = {"kind": "mask", "action": "replace-with-null", "columns": [{"tag": "Pii"}, {"name": "tag"}, {"tag": "other"}]}
_TEST = {"type": "is-null", "column": {"tag": "PII"}}
FILTER = {"kind": "row-filter", "test": {"type": "and", "operands": [_TEST, {"type": "or", "operands": [_TEST]}]}}


def _definition(document: dict[str, Any]) -> Definition:
    definition: Definition = msgspec.convert(document, Definition)
    return definition


@pytest.mark.parametrize("document", [MASK, FILTER], ids=["mask", "filter"])
def test_each_reference_to_a_known_tag_becomes_its_id_and_nothing_else_changes(document: dict[str, Any]) -> None:
    policy = DataPolicy(id="p", version=1, definition=_definition(document), tag_ids=(("pii", "id-of-pii"),))
    resolved = policy.with_tag_ids().definition
    assert tags_of(resolved) == {"id-of-pii"} | (tags_of(policy.definition) & {"other"})
    back = with_tags(resolved, lambda tag: "pii" if tag == "id-of-pii" else tag)
    assert msgspec.json.encode(back).lower() == msgspec.json.encode(policy.definition).lower()


def test_a_definition_without_tags_is_the_same_object() -> None:
    definition = _definition({"kind": "mask", "action": "replace-with-null"})
    assert with_tags(definition, str.upper) is definition
