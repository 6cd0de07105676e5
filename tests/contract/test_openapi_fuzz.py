# SPDX-License-Identifier: Apache-2.0
"""schemathesis drives our own OpenAPI document against the running gateway: no 500, every error in the Iceberg form.

Half of the paths are filled with names that exist, so that generated bodies get past the lookup.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

import gateway.api.build  # noqa: F401 - importing it serves every operation
from gateway.api.openapi import openapi_document
from tests.contract import warehouses
from tests.contract.world import World

#: Answered by the embedded provider or changing the server for good; each has tests of its own.
_LEFT_OUT = {"Bootstrap", "GetHealth"}


#: Hardly any generated value is a role or a project, and then nothing else of the request is looked at. The project is
#: one of the test's own: what is renamed or deactivated here is nobody else's.
_HEADERS_LEFT_OUT = {"x-assume-role", "x-project-id", "projectId"}


def _document() -> dict[str, Any]:
    document = json.loads(json.dumps(openapi_document()))
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


@pytest.fixture(scope="module")
def project(world: World) -> str:
    """The project everything happens in."""
    return warehouses.project(world)


@pytest.fixture(scope="module")
def existing(world: World, project: str) -> dict[str, list[str]]:
    """Values of path parameters that exist."""
    made = warehouses.make(world, headers={"x-project-id": project})
    namespace, table = made.table(world.admin).split("/namespaces/")[1].split("/tables/")
    return {
        "prefix": [made.id],
        "warehouse_id": [made.id],
        "project_id": [project],
        "namespace": [namespace],
        "table": [table],
        "view": [table],
    }


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_generated_request_ends_in_a_fault(
    case: Any, world: World, project: str, existing: dict[str, list[str]]
) -> None:
    parameters = dict(case.path_parameters or {})
    for name in parameters:
        # Deterministic: the same case gets the same path, so that a failure can be repeated.
        if name in existing and len(str(parameters[name])) % 2 == 0:
            parameters[name] = existing[name][0]
    case.path_parameters = parameters
    headers = {"Authorization": f"Bearer {world.admin.token}", "x-project-id": project}
    answer = case.call(base_url=world.base, headers=headers, timeout=30)
    assert answer.status_code < 500, f"{answer.status_code}: {answer.text[:500]}"
    if answer.status_code >= 400 and case.method.upper() != "HEAD":
        error = answer.json()["error"]
        assert error["code"] == answer.status_code
        assert error["type"]
        assert error["message"]
