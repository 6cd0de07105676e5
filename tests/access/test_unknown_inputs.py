# SPDX-License-Identifier: Apache-2.0
"""Unknown members of bodies and unknown query parameters of the management API, at every endpoint.

The rule is in `gateway/access/bodies.py`, for query parameters in `gateway/api/entry.py`, and for users in
docs/protocol.md. Here it is stated a second time, by the operations instead of the bodies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from gateway.access.bodies import Request, StrictRequest
from gateway.access.operation import HttpOperation
from gateway.access.operations.actions import Identity
from gateway.access.operations.checks import BatchCheckAnswer, BatchCheckRequest, CheckResult
from gateway.access.operations.grants import WriteGrantsRequest
from gateway.api.serves import INPUTS, SERVED
from gateway.features.grants.check_requests import add_unknown, parse_batch
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.wire import decode
from tests.support.door.app import Running, running
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import request_context

#: Modules of operations whose bodies all give, limit or select something.
STRICT_MODULES = frozenset(
    {
        "access_requests",
        "access_reviews",
        "answer_lists",
        "answers",
        "audit",
        "break_glass",
        "change_tickets",
        "data_policies",
        "engine_probes",
        "events",
        "grant_lists",
        "grants",
        "mapping_tables",
        "statistics",
        "tag_attachments",
        "tags",
        "task_control",
    }
)

#: Further operations of that kind.
STRICT_OPERATIONS = frozenset(
    {
        "AddRoleMembers",
        *(f"Set{each}Protection" for each in ("Namespace", "Table", "View", "GenericTable")),
        *("SetNamespaceManagedAccess", "SetWarehouseManagedAccess"),
        "Bootstrap",
        "CreateWarehouse",
        "SetWarehouseDeleteProfile",
        "SetWarehouseFormatVersionPolicy",
        "SetWarehouseManagedBy",
        "SetWarehousePolicyLoss",
        "SetWarehouseProtection",
        "UpdateRoleSourceSystem",
        "UpdateWarehouseStorage",
        "UpdateWarehouseStorageCredential",
        "ValidateWarehouseCreation",
        "ValidateWarehouseStorageCredential",
        "ValidateWarehouseStorageProfile",
    }
)

#: Parts that strict and other bodies share: strict in both.
SHARED_PARTS = {Identity}

UNKNOWN = "x-member-of-a-newer-version"


def _is_management(operation: type[HttpOperation]) -> bool:
    return operation.paths()[0].startswith("/management/")


def _is_strict(operation: type[HttpOperation]) -> bool:
    return operation.__module__.rpartition(".")[2] in STRICT_MODULES or operation.__name__ in STRICT_OPERATIONS


def _bodies() -> dict[type[HttpOperation], type[Request]]:
    return {
        operation: handler.opt[INPUTS].body
        for operation, handler in SERVED.items()
        if _is_management(operation) and handler.opt[INPUTS].body is not None
    }


def _structs(kind: Any, known: set[type[Any]]) -> Iterator[type[Any]]:
    """Return the struct types that a JSON type consists of, itself included."""
    info = msgspec.inspect.type_info(kind)
    pending = [info]
    while pending:
        each = pending.pop()
        if isinstance(each, msgspec.inspect.StructType):
            if each.cls in known:
                continue
            known.add(each.cls)
            yield each.cls
            pending.extend(field.type for field in each.fields)
        for name in ("type", "types", "item_type", "item_types", "value_type"):
            part = getattr(each, name, ())
            pending.extend(part if isinstance(part, tuple) else (part,))


def _forbids(kind: type[Any]) -> bool:
    return bool(kind.__struct_config__.forbid_unknown_fields)


def test_bodies_that_give_limit_or_select_something_refuse_unknown_members_in_every_part() -> None:
    strict = {operation: body for operation, body in _bodies().items() if _is_strict(operation)}
    assert len(set(strict.values())) > 20
    found = {
        f"{operation.__name__}: {part.__name__}"
        for operation, body in strict.items()
        for part in _structs(body, set())
        if not _forbids(part)
    }
    assert found == set()


def test_other_bodies_ignore_unknown_members_in_every_part() -> None:
    others = {operation: body for operation, body in _bodies().items() if not _is_strict(operation)}
    assert len(set(others.values())) > 8
    found = {
        f"{operation.__name__}: {part.__name__}"
        for operation, body in others.items()
        for part in _structs(body, set())
        if _forbids(part) and part not in SHARED_PARTS
    }
    assert found == set()


def test_every_strict_body_is_in_the_table_for_users() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    table = page.partition("## Members and values of later versions")[2].partition("\n## ")[0]
    missing = {
        operation.endpoint
        for operation in _bodies()
        if _is_strict(operation) and not any(re.search(row, operation.endpoint) for row in _patterns(table))
    }
    wrong = {
        operation.endpoint
        for operation in _bodies()
        if not _is_strict(operation) and any(re.search(row, operation.endpoint) for row in _patterns(table))
    }
    assert missing == wrong == set()


def _patterns(table: str) -> list[str]:
    """Return the endpoints in the row of strict bodies as regular expressions: `…` is any text."""
    (row,) = (line for line in table.splitlines() if line.startswith("| bodies that give, limit or select"))
    return [
        ".*".join(re.escape(part) for part in each.split("…")) + r"(\?|$)" for each in re.findall(r"`(/[^`]*)`", row)
    ]


async def _send(app: Running, example: Example, query: Mapping[str, str], body: Any) -> httpx.Response:
    headers = dict(example.headers) | {"authorization": "Bearer alice"}
    return await app.client.request(example.method, example.url, params=query, headers=headers, json=body)


async def test_unknown_members_reach_the_use_case_or_are_400_as_the_body_demands() -> None:
    bodies = _bodies()
    sent = 0
    async with running() as app:
        for example in EXAMPLES:
            operation = type(example.operation)
            if operation not in bodies or not isinstance(example.body, dict):
                continue
            sent += 1
            app.spy.calls.clear()
            response = await _send(app, example, dict(example.query), {**example.body, UNKNOWN: 1})
            if issubclass(bodies[operation], StrictRequest):
                assert (response.status_code, app.spy.calls) == (400, []), example
                assert UNKNOWN in response.text, example
            else:
                assert app.spy.calls, (example, response.text)
    assert sent > 100


async def test_unknown_query_parameters_of_the_management_api_are_400_at_every_endpoint() -> None:
    sent = 0
    async with running() as app:
        for example in EXAMPLES:
            if not _is_management(type(example.operation)):
                continue
            sent += 1
            response = await _send(app, example, {**dict(example.query), "createdBy": "oidc~bob"}, example.body)
            assert (response.status_code, app.spy.calls) == (400, []), example
            assert "Unknown query parameter 'createdBy'" in response.text
    assert sent > 200


async def test_paging_and_the_project_of_an_object_are_accepted_where_they_have_no_effect() -> None:
    example = next(each for each in EXAMPLES if type(each.operation).__name__ == "GetRole")
    users = next(each for each in EXAMPLES if type(each.operation).__name__ == "ListUsers")
    async with running() as app:
        await _send(app, example, {"pageSize": "5", "pageToken": "", "projectId": "any"}, None)
        assert app.spy.calls == ["GetRole"]
        refused = await _send(app, users, {"projectId": "any"}, None)
        assert refused.status_code == 400, "users lie in no project, so the list would contain all of them"


async def test_unknown_query_parameters_of_the_catalog_are_ignored_as_the_protocol_grows() -> None:
    async with running() as app:
        for name in ("LoadTable", "ListNamespaces", "GetConfig"):
            example = next(each for each in EXAMPLES if type(each.operation).__name__ == name)
            app.spy.calls.clear()
            response = await _send(app, example, {**dict(example.query), "laterVersion": "1"}, example.body)
            assert response.status_code != 400, (name, response.text)
            assert app.spy.calls == [name]


def test_a_mistyped_expiry_is_refused() -> None:
    grant = {"privilege": "select", "principal": {"user": "oidc~bob"}, "expire-at": "2030-01-01T00:00:00Z"}
    with pytest.raises(BadRequestException, match="expire-at"):
        decode(msgspec.json.encode({"writes": [grant]}), WriteGrantsRequest)


def test_checks_of_unknown_actions_are_not_allowed_and_keep_their_place() -> None:
    warehouse = {"warehouse-id": "0192d4c6-0000-7000-8000-000000000001"}
    checks = [
        {"id": "a", "operation": {"warehouse": {**warehouse, "action": "update_storage_credential"}}, "_metadata": {}},
        {"id": "b", "operation": {"warehouse": {**warehouse, "action": "use"}}, "_metadata": {"row": 1}},
        {"id": "c", "operation": {"warehouse": {**warehouse, "action": "drop"}}},
    ]
    request = decode(msgspec.json.encode({"checks": checks}), BatchCheckRequest)
    operation, is_known = parse_batch(request, caller=request_context().actor, default_project_id=None)
    assert [each.id for each in operation.checks] == ["b"]
    answer = add_unknown(BatchCheckAnswer(results=[CheckResult(allowed=True, id="b")]), request.checks, is_known)
    assert [(each.id, each.allowed) for each in answer.results] == [("a", False), ("b", True), ("c", False)]


@pytest.mark.parametrize("action", [None, 1, {"action": None}])
def test_a_check_without_the_name_of_an_action_is_400(action: object) -> None:
    operation = {"server": {"action": action}}
    request = decode(msgspec.json.encode({"checks": [{"operation": operation}]}), BatchCheckRequest)
    with pytest.raises(BadRequestException, match="must be the name of an action"):
        parse_batch(request, caller=request_context().actor, default_project_id=None)
