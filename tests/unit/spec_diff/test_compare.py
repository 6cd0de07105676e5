# SPDX-License-Identifier: Apache-2.0
"""Comparison of two OpenAPI documents, including references."""

from __future__ import annotations

from typing import Any

from tests.spec_diff.compare import Difference, differences


def document(base: str, *, name: str = "table", parameter: str = "pageToken", required: str = "name") -> dict[str, Any]:
    return {
        "paths": {
            f"{base}/v1/{{prefix}}/tables/{{{name}}}": {
                "post": {
                    "parameters": [{"$ref": "#/components/parameters/page"}],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}},
                    "responses": {"200": {}},
                }
            }
        },
        "components": {
            "parameters": {"page": {"name": parameter, "in": "query"}},
            "schemas": {"Body": {"allOf": [{"required": [required]}]}},
        },
    }


def test_names_of_placeholders_and_the_base_do_not_matter() -> None:
    assert differences(document("/catalog", name="t"), document("")) == []


def test_parameters_and_required_members_are_followed_through_references() -> None:
    endpoint = "POST /v1/{}/tables/{}"
    assert differences(document("/catalog", parameter="page", required="title"), document("")) == [
        Difference(endpoint, "parameters", "query:page", "ours"),
        Difference(endpoint, "parameters", "query:pagetoken", "published"),
        Difference(endpoint, "required", "title", "ours"),
        Difference(endpoint, "required", "name", "published"),
    ]


def test_statuses_and_whole_endpoints_are_compared() -> None:
    ours = document("/catalog")
    ours["paths"]["/catalog/v1/more"] = {"get": {"responses": {}}}
    ours["paths"]["/catalog/v1/{prefix}/tables/{table}"]["post"]["responses"]["409"] = {}
    assert differences(ours, document("")) == [
        Difference("GET /v1/more", "endpoint", "GET /v1/more", "ours"),
        Difference("POST /v1/{}/tables/{}", "statuses", "409", "ours"),
    ]
