# SPDX-License-Identifier: Apache-2.0
"""``lakegate trino check`` reports the row filter and the masks that Trino receives."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from lakegate.local.trino_check import BridgeCheck, Finding, Question

_VARIABLES = {"LAKEGATE_BRIDGE_URL": "set", "LAKEGATE_BRIDGE_CATALOGS": "set"}
_GUARD = {"expression": "CASE WHEN random() < 2e0 THEN (id < 5) ELSE false END"}
_ANSWERS: dict[str, Any] = {
    "diagnosis": {"variables": _VARIABLES, "token": {"source": "configured"}, "warehouses": {"ice": {"status": 200}}},
    "allow": True,
    "batch": [0],
    "row_filters": [],
    "batch_column_masks": [],
}


def _table_findings(**answers: Any) -> list[Finding]:
    """Return the findings about the table, from an OPA with these answers."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        entry = request.url.path.rpartition("/")[2]
        if entry == "names":
            return httpx2.Response(401)
        result = {**_ANSWERS, **answers}[entry]
        if entry == "allow" and isinstance(result, list):
            action = json.loads(request.content)["input"]["action"]["operation"]
            result = action not in result
        return httpx2.Response(200, json={"result": result})

    question = Question(user="alice", catalog="ice", table=("sales", "orders"), columns=("id", "ssn"))
    with httpx2.Client(base_url="http://opa", transport=httpx2.MockTransport(answer)) as http:
        findings = list(BridgeCheck(http, "key", question).run())
    first = next(number for number, each in enumerate(findings) if "may use the catalog" in each.text)
    return findings[first + 1 :]


def test_a_table_without_restrictions_is_reported_as_such() -> None:
    findings = _table_findings()
    assert all(each.passed for each in findings)
    assert [each.text for each in findings][-2:] == ["row filters: none", "masked columns: none"]


def test_the_filter_and_the_masks_are_shown_and_are_no_failure() -> None:
    mask = {"index": 1, "viewExpression": {"expression": "'***'"}}
    findings = _table_findings(row_filters=[{"expression": "id < 5"}, _GUARD], batch_column_masks=[mask])
    assert all(each.passed for each in findings)
    assert [each.text for each in findings][-2:] == ["row filters: (id < 5)", "masked columns: ssn as '***'"]


def test_a_table_that_is_not_readable_is_a_failure_with_a_remedy() -> None:
    null = [{"index": 0, "viewExpression": {"expression": "NULL"}}]
    findings = _table_findings(
        allow=["SelectFromColumns"], row_filters=[{"expression": "false"}], batch_column_masks=null
    )
    failed = [each for each in findings if not each.passed]
    assert [each.text for each in failed] == [
        "alice may not select id, ssn",
        "row filters: every row is hidden",
        "columns that read as NULL: id",
    ]
    assert all("Grant alice `select`" in each.remedy for each in failed)


@pytest.mark.parametrize(
    "answers",
    [
        {"row_filters": [{}]},
        {"row_filters": None},
        {"batch_column_masks": [{"index": 1}]},
        {"batch_column_masks": [{"index": 7, "viewExpression": {"expression": "NULL"}}]},
    ],
)
def test_an_invalid_answer_is_a_failure(answers: dict[str, Any]) -> None:
    last = _table_findings(**answers)[-1]
    assert not last.passed and "invalid" in last.text
