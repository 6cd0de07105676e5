# SPDX-License-Identifier: Apache-2.0
"""Golden files of the interfaces for clients, policies and operators (ARCHITECTURE.md, "Golden files").

The golden matrix and the golden table of the relationship model have separate tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.api import openapi_rights
from tests.support.door.app import running
from tests.support.goldens import (
    golden_demands,
    golden_errors,
    golden_log_events,
    golden_messages,
    golden_metrics,
    golden_openapi,
    golden_operations,
    golden_source,
)
from tests.support.runs.golden_files import Golden

GOLDENS = Path(__file__).with_name("goldens")

#: Imported at collection, so that no test includes the import time.
MODULES = golden_source.modules()

pytestmark = pytest.mark.golden


async def _served(api: str) -> Any:
    async with running() as app:
        answer = await app.client.get(f"/api-docs/{api}/v1/openapi.json")
    assert answer.headers["content-type"].split(";")[0] == "application/json"
    return golden_openapi.resolved(answer.json())


def test_the_openapi_documents_have_the_demands_of_the_operations(golden: Golden) -> None:
    """Before the tests of the documents, which contain the demands."""
    golden.compare(openapi_rights.FILE, golden_demands.render())


@pytest.mark.parametrize("api", ["catalog", "management"])
async def test_the_served_openapi_document_equals_the_golden_file(api: str, golden: Golden) -> None:
    golden.compare(GOLDENS / f"openapi-{api}.json", golden_openapi.contract(await _served(api)))


async def test_the_texts_of_the_openapi_documents_equal_the_golden_file(golden: Golden) -> None:
    documents = [await _served("catalog"), await _served("management")]
    golden.compare(GOLDENS / "openapi-texts.json", golden_openapi.texts(documents))


async def test_policies_and_audit_receive_the_golden_operations(golden: Golden) -> None:
    golden.compare(GOLDENS / "operations.md", await golden_operations.render())


async def test_error_responses_have_the_golden_types_statuses_and_texts(golden: Golden) -> None:
    golden.compare(GOLDENS / "errors.md", await golden_errors.render())


def test_errors_have_the_golden_messages(golden: Golden) -> None:
    golden.compare(GOLDENS / "error-messages.md", golden_messages.render())


def test_the_golden_events_are_logged_with_the_golden_fields(golden: Golden) -> None:
    golden.compare(GOLDENS / "log-events.md", golden_log_events.render())


def test_metrics_have_the_golden_names_types_and_labels(golden: Golden) -> None:
    golden.compare(GOLDENS / "metrics.md", golden_metrics.render())
