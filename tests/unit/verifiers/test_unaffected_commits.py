# SPDX-License-Identifier: Apache-2.0
"""A built-in rule does not run for a commit whose updates cannot break it, and runs for every other commit."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from gateway.features.tables.approved_commits import actions_of
from gateway.iceberg.updates import SetLocation, TableUpdate, ViewUpdate
from gateway.verification.builtin import (
    compatibility,
    partition_evolution,
    protected_columns,
    required_properties,
)
from gateway.verification.builtin.rule import DATA_UPDATES, PROPERTY_UPDATES, STRUCTURE_UPDATES, Concern, Rule
from gateway.verification.panel import Panel, Seat
from gateway.verification.port import Approved, ChangeKind, Rejected, Verdict
from tests.support.door.verified_changes import change, document

CONCERNS = (
    compatibility.CONCERN,
    partition_evolution.CONCERN,
    protected_columns.CONCERN,
    required_properties.CONCERN,
)
KNOWN = {str(each.__struct_config__.tag) for each in (*get_args(TableUpdate), *get_args(ViewUpdate))}


def verdict(concern: Concern, *actions: str, kind: ChangeKind = ChangeKind.COMMIT) -> Verdict:
    rule = Rule("v", concern, lambda _: ("broken",))
    panel = Panel([Seat(verifier=rule, timeout=5, unaffected=rule.unaffected)])
    updates = tuple({"action": action} for action in actions)
    proposed = change(kind, before=document(), after=document(), updates=updates)
    # The gateway asks this before it computes and encodes the outcome for the verifiers.
    assert panel.concerns(kind, "table", frozenset(actions)) is (asked := panel._seats[0].judges(proposed))
    found = asyncio.run(panel.verify(proposed)).verdict
    assert asked is (found != Approved())
    return found


@pytest.mark.parametrize("concern", CONCERNS)
def test_append_is_not_judged(concern: Concern) -> None:
    assert verdict(concern, "add-snapshot", "set-snapshot-ref") == Approved()


@pytest.mark.parametrize("concern", CONCERNS)
@pytest.mark.parametrize(
    "more", ["overwrite", "an-update-of-a-later-version", "upgrade-format-version", "set-location"]
)
def test_commit_with_any_other_update_is_judged(concern: Concern, more: str) -> None:
    assert isinstance(verdict(concern, "add-snapshot", more), Rejected)


@pytest.mark.parametrize("concern", CONCERNS)
def test_commit_without_updates_is_judged(concern: Concern) -> None:
    assert isinstance(verdict(concern), Rejected)


@pytest.mark.parametrize(
    ("concern", "action"),
    [
        (compatibility.CONCERN, "set-current-schema"),
        (protected_columns.CONCERN, "set-current-schema"),
        (partition_evolution.CONCERN, "set-default-spec"),
        (required_properties.CONCERN, "remove-properties"),
        (required_properties.CONCERN, "set-properties"),
    ],
)
def test_update_that_can_break_the_rule_is_judged(concern: Concern, action: str) -> None:
    assert isinstance(verdict(concern, "add-snapshot", action), Rejected)


def test_creation_is_judged_whatever_its_updates() -> None:
    assert isinstance(verdict(partition_evolution.CONCERN, "add-snapshot", kind=ChangeKind.CREATE), Rejected)


def test_listed_updates_exist_in_the_protocol() -> None:
    assert DATA_UPDATES | PROPERTY_UPDATES | STRUCTURE_UPDATES <= KNOWN
    assert actions_of([SetLocation(location="s3://b/t")]) == {"set-location"}
