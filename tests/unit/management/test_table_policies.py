# SPDX-License-Identifier: Apache-2.0
"""The answer about one data policy of a table: an unknown effect restricts, and names are for readers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.features.policies.table_policies import _answer

ID, TABLE, TAG = (UUID(int=number) for number in (1, 2, 3))


def _row(type: str, on: UUID) -> Any:
    return SimpleNamespace(id=ID, name="mask-email", kind="mask", applies_to="everyone", object_type=type, object_id=on)


@pytest.mark.parametrize(
    ("verdict", "restricts", "exempt"),
    [
        (None, True, False),
        (PolicyVerdict(str(TABLE), inexpressible=True), True, False),
        (PolicyVerdict(str(TABLE), applying=frozenset()), False, False),
        (PolicyVerdict(str(TABLE), applying=frozenset({str(ID)})), True, False),
        (PolicyVerdict(str(TABLE), applying=frozenset(), exempt=frozenset({str(ID)})), False, True),
    ],
)
def test_a_policy_with_an_unknown_effect_restricts(
    verdict: PolicyVerdict | None, restricts: bool, exempt: bool
) -> None:
    found = _answer([_row("table", TABLE)], verdict, named=True)
    assert (found.restricts, found.exempt, found.name) == (restricts, exempt, "mask-email")


def test_a_policy_with_several_bindings_is_one_answer_without_its_name() -> None:
    found = _answer([_row("table", TABLE), _row("tag", TAG)], None, named=False)
    assert [(each.type, each.id) for each in found.bound_to] == [("table", TABLE), ("tag", TAG)]
    assert found.name is None
