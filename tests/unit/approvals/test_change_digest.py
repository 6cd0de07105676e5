# SPDX-License-Identifier: Apache-2.0
"""Digests of changes: equal for two runs of one statement, different for every other change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.verification import change_digest
from gateway.verification.change_digest import normalise_updates
from gateway.verification.port import ChangeKind, ProposedChange

ADD_COLUMN = {"action": "add-schema", "schema": {"type": "struct", "fields": [{"id": 2, "name": "b"}]}}


def digest_of(change: ProposedChange, *, version: str = "1") -> str:
    return change_digest.digest_of(change_digest.normalised_change(change), panel_version=version)


def proposed(**changed: Any) -> ProposedChange:
    change = ProposedChange(
        kind=ChangeKind.COMMIT,
        object_type="table",
        object_id="t1",
        warehouse_id="w1",
        warehouse_name="lake",
        namespace=("sales",),
        name="orders",
        principal="idp~anna",
        request_id="r1",
        updates=(ADD_COLUMN,),
        before=msgspec.Raw(b'{"table-uuid":"u","current-schema-id":0,"last-column-id":1,"last-updated-ms":5}'),
    )
    return msgspec.structs.replace(change, **changed)


def test_same_statement_run_again_has_the_same_digest() -> None:
    later = msgspec.Raw(b'{"last-column-id":1,"current-schema-id":0,"table-uuid":"u","last-updated-ms":9}')
    assert digest_of(proposed()) == digest_of(proposed(request_id="r2", before=later))


@pytest.mark.parametrize(
    "changed",
    [
        {"principal": "idp~berta"},
        {"object_id": "t2"},
        {"warehouse_id": "w2"},
        {"kind": ChangeKind.DROP},
        {"updates": ()},
        {"updates": ({"action": "add-schema", "schema": {"type": "struct", "fields": []}},)},
        {"before": msgspec.Raw(b'{"table-uuid":"u","current-schema-id":1,"last-column-id":2}')},
        {"properties": {"owner": "x"}},
        {"destination": ("sales", "orders2")},
        {"after": None, "name": "other"},
    ],
)
def test_another_change_has_another_digest(changed: dict[str, Any]) -> None:
    assert digest_of(proposed()) != digest_of(proposed(**changed))


def append(id: int, operation: str, list_file: str) -> dict[str, Any]:
    summary = {"operation": operation, "added-records": str(id)}
    snapshot = {"snapshot-id": id, "timestamp-ms": id, "manifest-list": list_file, "summary": summary, "schema-id": 0}
    return {"action": "add-snapshot", "snapshot": snapshot}


@given(st.integers(1), st.integers(1), st.text(), st.text(), st.sampled_from(["append", "overwrite", "delete"]))
def test_data_commit_is_known_by_its_operation(one: int, other: int, a: str, b: str, operation: str) -> None:
    first = proposed(updates=(append(one, operation, a), {"action": "set-snapshot-ref", "snapshot-id": one}))
    again = proposed(updates=(append(other, operation, b), {"action": "set-snapshot-ref", "snapshot-id": other}))
    assert digest_of(first) == digest_of(again)
    assert digest_of(first) != digest_of(proposed(updates=(append(one, "replace", a), *first.updates[1:])))


@given(st.dictionaries(st.text(), st.text()))
def test_order_of_members_does_not_matter_and_values_do(properties: dict[str, str]) -> None:
    update = {"action": "set-properties", "updates": properties}
    reversed_update = {"updates": dict(reversed(properties.items())), "action": "set-properties"}
    assert digest_of(proposed(updates=(update,))) == digest_of(proposed(updates=(reversed_update,)))
    more = {"action": "set-properties", "updates": {**properties, "x": "new value of the test"}}
    assert digest_of(proposed(updates=(update,))) != digest_of(proposed(updates=(more,)))


def test_changed_configuration_of_the_verifiers_ends_an_approval() -> None:
    assert digest_of(proposed()) != digest_of(proposed(), version="2")


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "set-location", "location": "s3://b/1"},
    ],
)
def test_rollback_or_expiry_to_other_snapshots_is_another_change(update: dict[str, Any]) -> None:
    changed = {
        key: value if key in ("action", "type", "ref-name") else ([2] if isinstance(value, list) else "2")
        for key, value in update.items()
    }
    assert digest_of(proposed(updates=(update,))) != digest_of(proposed(updates=(changed,)))


def test_creations_differ_by_structure_and_not_by_location_and_uuid() -> None:
    def created(column: str, run: str) -> ProposedChange:
        document = {
            "table-uuid": run,
            "location": f"s3://b/{run}",
            "last-updated-ms": run,
            "current-schema-id": 0,
            "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": column}]}],
            "properties": {},
        }
        return proposed(
            kind=ChangeKind.CREATE,
            object_id=None,
            updates=({"action": "set-location", "location": f"s3://b/{run}"},),
            before=None,
            after=msgspec.Raw(msgspec.json.encode(document)),
        )

    assert digest_of(created("a", "1")) == digest_of(created("a", "2"))
    assert digest_of(created("a", "1")) != digest_of(created("b", "1"))


def test_order_of_updates_is_kept() -> None:
    set_current = {"action": "set-current-schema", "schema-id": -1}
    assert normalise_updates((ADD_COLUMN, set_current)) == (ADD_COLUMN, set_current)
    assert digest_of(proposed(updates=(ADD_COLUMN, set_current))) != digest_of(
        proposed(updates=(set_current, ADD_COLUMN))
    )
