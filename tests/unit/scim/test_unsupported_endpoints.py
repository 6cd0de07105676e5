# SPDX-License-Identifier: Apache-2.0
"""Unsupported parts of SCIM: 501 (RFC 7644 sections 3.11 and 3.12), as in `ServiceProviderConfig`."""

from __future__ import annotations

import pytest

from gateway.scim import discovery
from gateway.scim.wire import ERROR
from tests.support.door.app import running


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *((method, "/scim/v2/Me") for method in ("GET", "POST", "PUT", "PATCH", "DELETE")),
        ("POST", "/scim/v2/Bulk"),
        ("POST", "/scim/v2/.search"),
        ("POST", "/scim/v2/Users/.search"),
        ("POST", "/scim/v2/Groups/.search"),
        ("GET", "/scim/v2/Users?sortBy=userName"),
        ("GET", "/scim/v2/Groups?sortBy=displayName&sortOrder=descending"),
    ],
)
async def test_unsupported_scim_endpoints_return_not_implemented(method: str, path: str) -> None:
    async with running() as server:
        answer = await server.client.request(method, path, headers={"authorization": "Bearer alice"})
    assert answer.status_code == 501, answer.text
    assert answer.headers["content-type"].startswith("application/scim+json")
    assert (answer.json()["schemas"], answer.json()["status"]) == ([ERROR], "501")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/scim/v2/Mee", 404), ("GET", "/scim/v2/Nothing/.search", 404), ("POST", "/scim/v2/Users/one", 405)],
)
async def test_unknown_scim_paths_and_methods_are_refused(method: str, path: str, status: int) -> None:
    async with running() as server:
        answer = await server.client.request(method, path, headers={"authorization": "Bearer alice"})
    assert answer.status_code == status, answer.text


def test_the_scim_configuration_lists_unsupported_features() -> None:
    config = discovery.config(200)
    assert not (config.bulk.supported or config.sort.supported or config.change_password.supported)
