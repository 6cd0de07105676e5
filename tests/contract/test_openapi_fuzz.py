# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of the running gateway by schemathesis with its OpenAPI document: no 500, every error in the Iceberg form.

Half of the paths are filled with names that exist, so that generated bodies get past the lookup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

import gateway.features.all_routes  # noqa: F401 - importing it serves every operation
from gateway.api.openapi import openapi_document
from gateway.api.serves import SERVED
from tests.support.stack import warehouses
from tests.support.stack.directories import CORE_USER
from tests.support.stack.views import body as view_body
from tests.support.stack.world import World, send_until_decided, unique

pytestmark = pytest.mark.generated

#: Served by the embedded provider, or permanently changing the server; each has tests of its own.
_LEFT_OUT = {"Bootstrap", "GetHealth"}

UNUSED = "01890000-0000-7000-8000-000000000000"


#: Generated values rarely match a role or a project, and then the rest of the request is not read. The project belongs
#: to this test: a rename or deactivation here affects no other test.
_HEADERS_LEFT_OUT = {"x-assume-role", "x-project-id", "projectId"}


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(openapi_document()))
    for path, item in list(document["paths"].items()):
        for operation in item.values():
            kept = [each for each in operation["parameters"] if each["name"] not in _HEADERS_LEFT_OUT]
            operation["parameters"] = kept
        for method in [name for name, operation in item.items() if operation["operationId"] in _LEFT_OUT]:
            del item[method]
        if not item:
            del document["paths"][path]
    return document


schema = schemathesis.openapi.from_dict(_document())


def _operations() -> dict[str, tuple[str, str]]:
    """Return path and method of each operation by its id; operations that remove objects are last."""
    found = [
        (each["operationId"], (path, method))
        for path, item in _document()["paths"].items()
        for method, each in item.items()
    ]
    return dict(sorted(found, key=lambda one: (one[1][1] == "delete", bool(_REMOVING.search(one[1][0])))))


#: Paths of operations other than DELETE that invalidate an entry of `existing`.
_REMOVING = re.compile(r"rename|move|unregister|/undrop|deactivate|/status|/transactions/")

OPERATIONS = _operations()

_FUZZ = "tests/contract/test_openapi_fuzz.py::test_no_generated_request_causes_a_server_error"

#: Requests of each operation; `make test-long` sends more, with different ones for each seed.
_EXAMPLES = 5 if settings().derandomize else 60


@pytest.fixture(scope="module")
def http() -> Iterator[requests.Session]:
    """Yield one session for all requests: a new session for each request takes longer than the request."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture(scope="module")
def project(world: World) -> str:
    """Create the project of all requests."""
    return warehouses.project(world)


@pytest.fixture(scope="module")
def existing(world: World, project: str) -> dict[str, list[str]]:
    """Return values of path parameters that exist."""
    made = warehouses.make(world, headers={"x-project-id": project})
    path = made.table(world.admin)
    namespace, table = path.split("/namespaces/")[1].split("/tables/")
    space = f"{made.root}/namespaces/{namespace}"
    generic = f"/lakekeeper/v1/{made.id}/namespaces/{namespace}/generic-tables"
    body: dict[str, Any] = {"name": "generic", "format": "lance"}
    assert world.admin.post(generic, body).status_code == 200
    assert world.admin.post(f"{space}/views", view_body("view")).status_code == 200
    found = {
        row["kind"]: str(row["id"])
        for row in world.sql(
            "select kind, id from tables where namespace_id = ("
            "select namespace_id from tables where table_uuid::text = $1)",
            _uuid(world, path),
        )
    }
    role = world.admin.post("/management/v1/role", {"name": "fuzzed"}, headers={"x-project-id": project}).json()["id"]
    body = {"name": "fuzzed", "scope": ["table", "column"], "value-kind": "free-text"}
    tag = world.admin.post("/management/v1/tag-definition", body, headers={"x-project-id": project}).json()
    body = {"name": "fuzzed", "definition": {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]}}
    policy = world.admin.post("/management/v1/data-policy", body, headers={"x-project-id": project}).json()["id"]
    body = {"name": "fuzzed"}
    mapping = world.admin.post("/management/v1/mapping-table", body, headers={"x-project-id": project}).json()["id"]
    # None of the stack's own users: a deletion here is permanent.
    person = f"oidc~{unique('fuzzed')}"
    assert world.admin.post("/management/v1/user", {"id": person, "name": "Fuzzed"}).status_code == 201
    return {
        "prefix": [made.id],
        "warehouse_id": [made.id],
        "project_id": [project],
        "namespace": [namespace],
        "namespace_id": [str(world.admin.get(space).json()["properties"]["namespace_id"])],
        "table": [table],
        "table_id": [found["table"]],
        "view": ["view"],
        "view_id": [found["view"]],
        "generic_table_id": [found["generic_table"]],
        "role_id": [role],
        "policy_id": [policy],
        "mapping_table_id": [mapping],
        "tag_id": [tag["id"]],
        "tag_name": [tag["name"]],
        "user_id": [person],
        "member_id": [person],
        "member_type": ["user"],
        "queue_name": ["soft_deletion"],
        "task_id": [_task(world, project)],
        "ticket_id": [_ticket(world, made.id, found["table"])],
        "probe_id": [_probe(world, made.id)],
        "access_request_id": [_access_request(world, made.id, found["table"])],
        # An activation needs a grant of break_glass, and a denial a refused user. Neither exists here.
        "activation_id": [UNUSED],
        "denial_id": [UNUSED],
        "api": ["catalog"],
        "asset": ["start.js"],
        "digest": ["0"],
        "file_path": ["main.js", "core/api.js"],
        "bundle": ["trino"],
        "column": ["id"],
        "scim_id": [role],
        "resource_type": ["User"],
        "schema_urn": [CORE_USER],
    }


def _uuid(world: World, path: str) -> str:
    return str(world.admin.get(path).json()["metadata"]["table-uuid"])


def _access_request(world: World, warehouse: str, table: str) -> str:
    """Request a privilege on the table. Return the id of the request."""
    on = {"type": "table", "warehouse-id": warehouse, "table-id": table}
    made = world.admin.post(
        "/management/v1/access/requests", {"object": on, "privileges": ["select"], "reason": "fuzzed"}
    )
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def _probe(world: World, warehouse: str) -> str:
    """Open a probe of an engine. Return its id."""
    opened = world.admin.post(f"/management/v1/warehouse/{warehouse}/engine-probe", {"engine": "oidc~fuzzed"})
    assert opened.status_code == 201, opened.text
    return str(opened.json()["id"])


def _ticket(world: World, warehouse: str, table: str) -> str:
    """Return a pending ticket of another user. The stack has no verifier that would open one."""
    (row,) = world.sql(
        "insert into change_tickets (id, digest, warehouse_id, object_type, object_id, name, kind, principal, reasons, "
        "change, expires_at) values (gen_random_uuid(), 'fuzzed', $1::text::uuid, 'table', $2::text::uuid, 'fuzzed', "
        "'commit', 'oidc~somebody', '{}', '{}', now() + interval '1 hour') returning id",
        warehouse,
        table,
    )
    return str(row["id"])


def _task(world: World, project: str) -> str:
    listed = world.admin.post("/management/v1/project/task/list", {}, headers={"x-project-id": project}).json()["tasks"]
    return str(listed[0]["task-id"]) if listed else str(UUID(int=0))


def test_every_path_parameter_has_a_value_and_every_operation_is_tested(
    existing: dict[str, list[str]],
) -> None:
    document = _document()
    assert {name for path in document["paths"] for name in re.findall(r"\{(\w+)\}", path)} <= set(existing)
    driven = {each["operationId"] for item in document["paths"].values() for each in item.values()}
    first = {handler.operation_id for handler in SERVED.values()}
    assert first - driven == _LEFT_OUT


def test_each_operation_of_the_document_has_one_fuzz_test(request: pytest.FixtureRequest) -> None:
    """Count the collected tests: pytest-xdist runs tests of one id once."""
    collected = [item.nodeid for item in request.session.items if item.nodeid.startswith(_FUZZ)]
    operations = {each["operationId"] for item in openapi_document()["paths"].values() for each in item.values()}
    assert len(collected) == len(OPERATIONS)
    assert {nodeid.removeprefix(_FUZZ).strip("[]") for nodeid in collected} == operations - _LEFT_OUT


@pytest.mark.hypothesis  # as its inner function is the one that draws
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_generated_request_causes_a_server_error(
    operation: str, http: requests.Session, world: World, project: str, existing: dict[str, list[str]]
) -> None:
    path, method = OPERATIONS[operation]
    served = schema[path][method]
    # Valid requests, and requests with one violation.
    cases = st.one_of([served.as_strategy(generation_mode=mode) for mode in GenerationMode])

    @given(case=cases)
    @settings(max_examples=_EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def drive(case: Any) -> None:
        _answer_without_a_fault(case, http, world, project, existing)

    drive()


def _answer_without_a_fault(
    case: Any, http: requests.Session, world: World, project: str, existing: dict[str, list[str]]
) -> None:
    parameters = dict(case.path_parameters or {})
    for name in parameters:
        # Deterministic: the same case gets the same path, so that a failure can be repeated.
        if name in existing and len(str(parameters[name])) % 2 == 0:
            parameters[name] = existing[name][0]
    case.path_parameters = parameters
    headers = {"Authorization": f"Bearer {world.admin.token}", "x-project-id": project}
    answer = send_until_decided(
        lambda: case.call(base_url=world.base, session=http, headers=headers, timeout=60), unless=429
    )
    assert answer.status_code < 500, f"{answer.status_code}: {answer.text[:500]}"
    if answer.status_code >= 400 and case.path.startswith("/scim/"):
        refused = answer.json()
        assert refused["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert refused["status"] == str(answer.status_code)
        assert refused["detail"]
    elif answer.status_code >= 400 and case.method.upper() != "HEAD":
        error = answer.json()["error"]
        if case.path == "/catalog/v1/oauth/tokens" and isinstance(error, str):
            return  # OAuth's own form (RFC 6749, 5.2)
        assert error["code"] == answer.status_code
        assert error["type"]
        assert error["message"]
