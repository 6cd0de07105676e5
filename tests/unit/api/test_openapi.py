# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document is complete and correct, and its page loads nothing from other servers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.access.operation import OPERATIONS
from gateway.api import openapi
from gateway.api.errors import OAuthError
from gateway.api.openapi_shared import with_shared_parts
from gateway.api.openapi_tags import TAGS, tag_of
from gateway.api.openapi_texts import HEADERS, decodes, example_of
from gateway.api.request_encoding import FORM
from gateway.api.serves import INPUTS, SERVED
from tests.support.door.app import running
from tests.support.goldens import golden_openapi

DOCUMENT = openapi.openapi_document()
DESCRIBED = [(method, path, each) for path, item in DOCUMENT["paths"].items() for method, each in item.items()]


def _names(described: dict[str, Any], place: str) -> set[str]:
    return {each["name"] for each in described["parameters"] if each["in"] == place}


def test_every_endpoint_is_in_the_openapi_document() -> None:
    response = {f"{method.upper()} {path}" for method, path, _ in DESCRIBED}
    current = {operation.endpoint for operation in OPERATIONS.values()}
    older = {f"{o.endpoint.split(' ', 1)[0]} {path}" for o in OPERATIONS.values() for path in o.also_at}
    assert response == current | older
    assert {f"{m.upper()} {path}" for m, path, each in DESCRIBED if each.get("deprecated")} == older
    ids = [each["operationId"] for _, _, each in DESCRIBED]
    assert len(set(ids)) == len(ids)


def test_the_openapi_command_prints_the_whole_document() -> None:
    """In a separate process: the command itself must import the modules that serve operations."""
    done = subprocess.run([sys.executable, "-m", "gateway.cli", "openapi"], capture_output=True, text=True, timeout=200)
    assert json.loads(done.stdout) == json.loads(json.dumps(DOCUMENT)), done.stderr


def test_every_body_has_an_example_that_the_gateway_accepts() -> None:
    bodies = {repr(body): body for handler in SERVED.values() if (body := _body(handler)) is not None}
    assert len(bodies) > 20
    for body in bodies.values():
        assert decodes(body, example_of(body)), (body, example_of(body))
    for method, path, each in DESCRIBED:
        if "requestBody" in each:
            (content,) = each["requestBody"]["content"].values()
            assert content["example"] is not None, (method, path)


def _body(handler: Any) -> Any:
    reads = handler.opt[INPUTS]
    return reads.body or reads.form


def test_a_form_body_is_documented_as_form_with_oauth_errors() -> None:
    forms = {path: each for _, path, each in DESCRIBED if FORM in each.get("requestBody", {"content": {}})["content"]}
    assert set(forms) == {"/catalog/v1/oauth/tokens"}
    (exchange,) = forms.values()
    schema = exchange["requestBody"]["content"][FORM]["schema"]
    fields = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert fields["required"] == ["grant_type", "subject_token", "subject_token_type"]
    assert all("description" in each for each in fields["properties"].values())
    for status in ("400", "401"):
        response = exchange["responses"][status]["content"]["application/json"]
        assert response["schema"] == {"$ref": "#/components/schemas/OAuthError"}
        assert decodes(OAuthError, response["example"])


def test_every_error_response_has_a_schema_and_an_example_with_its_status() -> None:
    for method, path, each in DESCRIBED:
        refusals = {status: response for status, response in each["responses"].items() if status[0] in "45"}
        assert refusals, (method, path)
        for status, response in refusals.items():
            assert "x-request-id" in response["headers"]
            assert ("Retry-After" in response["headers"]) == (status in ("429", "503"))
            if method == "head":
                assert "content" not in response
                continue
            if path.startswith("/scim/"):
                content = response["content"]["application/scim+json"]
                assert content["schema"] == {"$ref": "#/components/schemas/ErrorBody"}
                assert content["example"]["status"] == ("500" if status == "5XX" else status)
                continue
            content = response["content"]["application/json"]
            if FORM in each.get("requestBody", {"content": {}})["content"] and status in ("400", "401"):
                continue
            assert content["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}
            assert content["example"]["error"]["code"] == (500 if status == "5XX" else int(status))


def test_headers_common_to_all_operations_are_documented_on_each() -> None:
    by_id = {each["operationId"]: (path, each) for _, path, each in DESCRIBED}
    for operation in OPERATIONS.values():
        path, each = next(
            response for response in by_id.values() if response[1]["operationId"] == _first(operation.endpoint)
        )
        headers = _names(each, "header")
        assert headers <= set(HEADERS), "each header must have a description"
        assert "x-request-id" in headers
        assert ({"x-assume-role", "x-project-id"} <= headers) == (not operation.is_public()), path
        assert operation.uses_idempotency_keys() == ("idempotency-key" in headers), path
        if operation.changes():
            assert {"idempotency-key", "x-request-id"} <= headers
            assert {"409", "422"} <= set(each["responses"])


def _first(endpoint: str) -> str:
    ids = (str(each["operationId"]) for method, path, each in DESCRIBED if f"{method.upper()} {path}" == endpoint)
    return next(ids)


def test_every_operation_describes_its_rights_and_has_a_described_tag() -> None:
    for method, path, each in DESCRIBED:
        assert each["summary"] and "**Rights" in each["description"], (method, path)
        assert len(each["tags"]) == 1, (method, path)
    used = {each["tags"][0] for _, _, each in DESCRIBED}
    described = {each["name"]: each["description"] for each in DOCUMENT["tags"]}
    assert used == set(described) == set(TAGS) and all(described.values())


@pytest.mark.parametrize(
    ("path", "tag"),
    [
        ("/catalog/v1/config", "config"),
        ("/catalog/v1/{prefix}/namespaces/{namespace}/register-view", "views"),
        ("/lakekeeper/v1/{prefix}/generic-tables/rename", "generic-tables"),
        ("/management/v1/warehouse/{warehouse_id}/table/{table_id}/grants/history", "tables"),
        ("/management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/access", "views"),
        ("/management/v1/warehouse/{warehouse_id}/task-queue/{queue_name}/config", "tasks"),
        ("/management/v1/access/requests/{access_request_id}/approve", "access-requests"),
        ("/management/v1/access/explain", "access"),
        ("/access/v1/search/subject", "authzen"),
        ("/scim/v2/Users", "scim"),
        ("/health", "system"),
    ],
)
def test_the_tag_is_the_noun_that_the_path_names_last(path: str, tag: str) -> None:
    assert tag_of(path) == tag


def test_the_description_names_actions_privileges_and_errors() -> None:
    by_id = {each["operationId"]: each["description"] for _, _, each in DESCRIBED}
    assert "- `drop` on the table, given by `modify` or `ownership` on it or on a container." in by_id["DropTable"]
    assert "403 `TableActionForbidden`" in by_id["DropTable"] and "404 `NoSuchTableException`" in by_id["DropTable"]
    assert "`read_columns` is enough" in by_id["LoadTable"]
    assert "No token is needed" in by_id["GetHealth"]
    assert "`grant_<privilege>` on the table" in by_id["ChangeTableGrants"]
    assert "**Rights for `vend_creation_credentials`**" in by_id["CreateTable"]


def test_the_served_document_has_each_shared_part_once_and_is_otherwise_the_same() -> None:
    shared = with_shared_parts(DOCUMENT)
    assert golden_openapi.resolved(shared) == DOCUMENT
    assert len(json.dumps(shared)) < len(json.dumps(DOCUMENT)) / 2
    for parts in (shared["components"][kind] for kind in ("parameters", "headers", "responses")):
        assert len({json.dumps(each) for each in parts.values()}) == len(parts)
        assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in parts)


def test_the_principal_parameters_of_checks_are_documented() -> None:
    (asks,) = [each for method, path, each in DESCRIBED if (method, path) == ("get", "/management/v1/server/actions")]
    assert {"principalUser", "principalRole"} <= _names(asks, "query")


def test_every_reference_resolves_and_every_operation_id_is_unique() -> None:
    text = json.dumps(DOCUMENT)
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= set(DOCUMENT["components"]["schemas"])
    ids = [each["operationId"] for _, _, each in DESCRIBED]
    assert len(set(ids)) == len(ids)


TYPES = {"css": "text/css", "js": "text/javascript", "png": "image/png"}


async def test_swagger_ui_is_served_without_other_servers() -> None:
    async with running() as app:
        page = await app.client.get("/swagger-ui/")
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (200, "text/html")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
        assert "//" not in re.sub(r"<!DOCTYPE html>", "", page.text), "the page must name no other server"
        assert "<script>" not in page.text
        loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len(loaded) == 6
        for path in loaded:
            part = await app.client.get(path)
            assert (part.status_code, part.headers["x-content-type-options"]) == (200, "nosniff"), path
            # With `nosniff` a browser ignores scripts and styles with a wrong content type.
            assert part.headers["content-type"].split(";")[0] == TYPES[path.rsplit(".", 1)[1]], path
            assert len(part.content) > 80
            if path.endswith(".css"):
                requested = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]{1,20})", part.text)
                assert all(each.startswith(("data:", "#")) for each in requested), (
                    "styles must load nothing from other servers"
                )
        start = await app.client.get("/swagger-ui/start.js")
        assert "validatorUrl: null" in start.text, "Swagger UI must not send the document to a validator"
        for api, named in (("catalog", True), ("management", False)):
            document = await app.client.get(f"/api-docs/{api}/v1/openapi.json")
            assert f"/api-docs/{api}/v1/openapi.json" in start.text
            assert document.json()["openapi"] == "3.1.0"
            assert {path.startswith("/catalog/") for path in document.json()["paths"]} == {named}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/swagger-ui/LICENSE", 404),
        ("/swagger-ui/..%2F__init__.py", 400),
        ("/swagger-ui/%2e%2e", 400),
        ("/api-docs/other/v1/openapi.json", 404),
    ],
)
async def test_no_file_outside_of_swagger_ui_is_served(path: str, status: int) -> None:
    async with running() as app:
        assert (await app.client.get(path)).status_code == status


async def test_swagger_ui_can_be_disabled() -> None:
    async with running() as app:
        app.app.state.services = _without_page(app.app.state.services)
        for path in ("/swagger-ui/", "/swagger-ui/start.js", "/api-docs/catalog/v1/openapi.json"):
            answer = await app.client.get(path)
            assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NotFoundException")


def _without_page(parts: Any) -> Any:
    from dataclasses import replace

    return replace(parts, swagger_ui=False)
