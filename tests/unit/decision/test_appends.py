# SPDX-License-Identifier: Apache-2.0
"""Appends of callers that data policies restrict."""

from __future__ import annotations

import json

import msgspec
import pytest

from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.registrations import UnregisterTable
from gateway.access.operations.tables import CommitTable
from gateway.features.credentials.credential_terms import load_level
from gateway.iceberg.errors import ForbiddenException
from gateway.iceberg.kinds import appends_to_main
from gateway.iceberg.wire import CommitTableRequest
from gateway.scope.credential import AccessLevel
from tests.support.door import world
from tests.support.door.data_restrictions import TRUSTED, People, by_engine, fixture, policy
from tests.support.door.world import request_context

SNAPSHOT = {
    "snapshot-id": 2,
    "parent-snapshot-id": 1,
    "sequence-number": 2,
    "timestamp-ms": 1,
    "manifest-list": "s3://a/b.avro",
    "summary": {"operation": "append"},
}
APPEND: list[dict[str, object]] = [
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2},
]
HEAD = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}


def commit(updates: list[dict[str, object]], requirements: list[dict[str, object]] | None = None) -> CommitTable:
    """Return the operation of a commit."""
    body = {"requirements": [HEAD] if requirements is None else requirements, "updates": updates}
    return CommitTable(world.TABLE, msgspec.json.decode(json.dumps(body), type=CommitTableRequest))


def snapshot(**changed: object) -> list[dict[str, object]]:
    """Return the updates of the append with a changed snapshot."""
    return [{"action": "add-snapshot", "snapshot": {**SNAPSHOT, **changed}}, APPEND[1]]


OTHERS = {
    "overwrite": commit(snapshot(summary={"operation": "overwrite"})),
    "removes files": commit(snapshot(summary={"operation": "append", "deleted-data-files": "1"})),
    "other parent": commit(snapshot(**{"parent-snapshot-id": 7})),
    "no parent": commit(snapshot(**{"parent-snapshot-id": None})),
    "no requirement": commit(APPEND, []),
    "two requirements": commit(APPEND, [HEAD, {**HEAD, "snapshot-id": 2}]),
    "requirement of another ref": commit(APPEND, [{**HEAD, "ref": "b"}]),
    "another branch": commit([APPEND[0], {**APPEND[1], "ref-name": "b"}]),
    "old snapshot": commit([APPEND[0], {**APPEND[1], "snapshot-id": 1}]),
    "tag": commit([APPEND[0], {**APPEND[1], "type": "tag"}]),
    "not moved": commit(APPEND[:1]),
    "properties too": commit([*APPEND, {"action": "set-properties", "updates": {"a": "b"}}]),
    "two snapshots": commit([APPEND[0], *APPEND]),
    "nothing": commit([]),
}


def test_an_append_to_main_is_recognised() -> None:
    request = commit(APPEND).request
    assert appends_to_main(request.updates, request.requirements)
    first = commit(snapshot(**{"parent-snapshot-id": None}), [{**HEAD, "snapshot-id": None}]).request
    assert appends_to_main(first.updates, first.requirements)


@pytest.mark.parametrize("name", OTHERS)
async def test_only_appends_are_allowed_where_a_policy_allows_appends(name: str) -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p", allow_append=True))
    assert await house.door.admit(request_context(by_engine()), commit(APPEND)) is not None
    with pytest.raises(ForbiddenException):
        await house.door.admit(request_context(by_engine()), OTHERS[name])


async def test_an_append_needs_an_enforcer_and_every_policy() -> None:
    untrusted = fixture(People(), policy("p", allow_append=True))
    with pytest.raises(ForbiddenException):
        await untrusted.door.admit(request_context(), commit(APPEND))
    one_forbids = fixture(People(engine_has=TRUSTED), policy("p", allow_append=True), policy("q"))
    with pytest.raises(ForbiddenException):
        await one_forbids.door.admit(request_context(by_engine()), commit(APPEND))


async def test_credentials_for_appends_do_not_delete() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p", allow_append=True))
    keys = await house.door.admit(request_context(by_engine()), VendCredentials(world.TABLE))
    assert load_level(keys) is AccessLevel.READ_WRITE
    lacks = fixture(People(engine_has=TRUSTED, lacks=frozenset({Can.WRITE_DATA})), policy("p", allow_append=True))
    keys = await lacks.door.admit(request_context(by_engine()), VendCredentials(world.TABLE))
    assert load_level(keys) is AccessLevel.READ


async def test_a_restricted_caller_does_not_unregister_the_table() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p", allow_append=True))
    for actor in (world.ALICE, by_engine()):
        with pytest.raises(ForbiddenException):
            await house.door.admit(request_context(actor), UnregisterTable(world.TABLE))
