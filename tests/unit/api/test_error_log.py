# SPDX-License-Identifier: Apache-2.0
"""Logged reasons of refusals: the outage behind a refusal, which the client does not receive."""

from __future__ import annotations

import pytest
from litestar.testing import RequestFactory
from structlog.testing import capture_logs

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.authz_errors import unavailable
from gateway.api import errors
from gateway.iceberg.errors import NoSuchTableException


def _behind(outage: Exception) -> Exception:
    """Return a refusal caused by an outage."""
    refusal = unavailable(True)
    refusal.__cause__ = outage
    return refusal


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DecisionEngineUnavailable("what is allowed keeps changing"), "what is allowed keeps changing"),
        (_behind(DatabaseUnavailable("the database does not answer")), "the database does not answer"),
    ],
)
def test_the_log_names_the_outage_behind_a_429(monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str) -> None:
    monkeypatch.setattr(errors, "is_catalog_mutation", lambda scope: True)
    with capture_logs() as logged:
        answer = errors.answer_error(RequestFactory().post("/catalog/v1/x/namespaces"), error)
    assert answer.status_code == 429
    [line] = logged
    assert reason in line["reason"] and reason not in answer.content.decode()


def test_a_refusal_without_an_outage_logs_only_the_client_message() -> None:
    with capture_logs() as logged:
        errors.answer_error(RequestFactory().get("/catalog/v1/x"), NoSuchTableException("Table does not exist: a.b"))
    assert [("reason" in line, line["status"]) for line in logged] == [(False, 404)]
