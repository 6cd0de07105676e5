# SPDX-License-Identifier: Apache-2.0
"""Questions for OPA, and Rego for partial evaluation."""

from __future__ import annotations

from typing import Any

from gateway.access.decisions.policy import PolicyActor, PolicyContext, PolicyQuestion, PolicyRequest, PolicyResource

REQUEST = PolicyRequest(
    actor=PolicyActor(id="oidc~alice", kind="user", roles=("r",)),
    context=PolicyContext(request_id="1", time="2026-03-04T12:00:00Z", user_agent="spark", client_address="127.0.0.1"),
    questions=(
        PolicyQuestion(
            operation="load_table", resource=PolicyResource(type="table", id="t", name="t"), facts={"purge": False}
        ),
    ),
)


def call(name: str, *arguments: Any) -> list[Any]:
    parts = [{"type": "var" if index == 0 else "string", "value": part} for index, part in enumerate(name.split("."))]
    return [{"type": "ref", "value": parts}, *arguments]


def text(value: str) -> dict[str, str]:
    return {"type": "string", "value": value}


def fail(terms: Any, **more: Any) -> dict[str, Any]:
    return {
        "op": "fail",
        "query_id": 1,
        "parent_id": 0,
        "type": "expr",
        "locals": [],
        "node": {"index": 0, "terms": terms, **more},
    }


X = {"type": "var", "value": "x"}
REPORTED = fail(call("to_number", text("an error that the gateway must see")))
