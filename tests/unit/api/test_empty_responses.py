# SPDX-License-Identifier: Apache-2.0
"""Responses without content: an empty body, and not the four bytes `null`."""

from __future__ import annotations

from litestar import post
from litestar.testing import create_test_client

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.api.answers import EmptyResponse, returns_no_content
from gateway.api.openapi import openapi_document
from gateway.api.serves import SERVED


def test_a_response_without_content_has_no_body_and_no_content_type() -> None:
    @post("/", status_code=200, response_class=EmptyResponse)
    async def handler() -> None:
        return None

    with create_test_client([handler]) as client:
        answer = client.post("/")
    assert (answer.status_code, answer.content) == (200, b"")
    assert "content-type" not in answer.headers
    assert answer.headers["content-length"] == "0"


def test_every_handler_without_a_result_documents_an_empty_response() -> None:
    document = openapi_document()
    empty = {operation for operation, handler in SERVED.items() if handler.response_class is EmptyResponse}
    assert {"ActivateWarehouse", "RenameProject", "SetNamespaceManagedAccess"} <= {each.__name__ for each in empty}
    for operation in SERVED:
        method, path = operation.endpoint.split(" ")
        response = document["paths"][path][method.lower()]["responses"][str(operation.returns)]
        if operation in empty:
            assert "content" not in response, operation
        elif method != "HEAD" and path.startswith(("/catalog/", "/lakekeeper/", "/management/")):
            assert "content" in response, operation


def test_a_handler_without_a_result_declares_it() -> None:
    async def silent() -> None: ...

    async def telling() -> str:
        return ""

    assert returns_no_content(silent)
    assert not returns_no_content(telling)
