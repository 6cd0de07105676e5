# SPDX-License-Identifier: Apache-2.0
"""The members of a check that the bridge of Trino sends beside the action."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.access.operations.checks import BatchCheckRequest, Check, CheckItem
from gateway.features.grants.check_requests import parse_batch
from gateway.iceberg.errors import BadRequestException
from tests.support.door.world import request_context

_TABLE = {"warehouse-id": "0192d4c6-0000-7000-8000-000000000001", "namespace": ["sales"], "table": "orders"}
_VIEW = {"warehouse-id": "0192d4c6-0000-7000-8000-000000000001", "namespace": ["sales"], "view": "orders"}


def _parsed(kind: str, **members: Any) -> Check:
    """Return the check of a batch of one."""
    fields = {**(_TABLE if kind == "table" else _VIEW), **members}
    request = BatchCheckRequest(checks=(CheckItem(operation={kind: fields}),))
    (check,) = parse_batch(request, caller=request_context().actor, default_project_id=None)[0].checks
    return check


def test_a_check_without_members_neither_applies_restrictions_nor_appends() -> None:
    check = _parsed("table", action="read_columns")
    assert (check.applies_restrictions, check.append) == (False, False)


def test_trino_restrictions_are_requested_with_the_action_read_columns() -> None:
    assert _parsed("table", action={"action": "read_columns"}, restrictions="trino").applies_restrictions


def test_an_append_is_told_from_another_change() -> None:
    assert _parsed("table", action="write_data", append=True).append
    assert not _parsed("table", action="write_data", append=False).append


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("table", {"action": "read_columns", "restrictions": "spark"}),
        ("table", {"action": "read_columns", "restrictions": None}),
        ("table", {"action": "read_columns", "restrictions": True}),
        ("table", {"action": "read_data", "restrictions": "trino"}),
        ("table", {"action": "write_data", "append": "true"}),
        ("view", {"action": "select", "restrictions": "trino"}),
        ("view", {"action": "select", "append": True}),
    ],
)
def test_an_unknown_member_is_refused_and_never_ignored(kind: str, members: dict[str, Any]) -> None:
    with pytest.raises(BadRequestException):
        _parsed(kind, **members)
