# SPDX-License-Identifier: Apache-2.0
"""Stored errors of failed task runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock
from uuid import uuid4

import pytest
from sqlalchemy.exc import IntegrityError

from gateway.db.tasks import task_runs
from gateway.db.tasks.tasks import Queue
from gateway.features.tasks.worker import Worker
from gateway.iceberg.errors import BadRequestException


async def _written(monkeypatch: pytest.MonkeyPatch, error: Exception) -> str:
    fail = AsyncMock(return_value=False)
    monkeypatch.setattr(task_runs, "fail", fail)
    worker = Worker(cast(Any, MagicMock()), {Queue.TABULAR_PURGE: AsyncMock(side_effect=error)})
    task = SimpleNamespace(id=uuid4(), queue=Queue.TABULAR_PURGE, attempt=1, stale_seconds=120.0)
    await worker._attempt(cast(Any, task))
    return str(fail.await_args_list[0].args[2])


async def test_task_errors_contain_no_sql_statement_or_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    surprise = IntegrityError("insert into grants values ($1)", {"principal": "oidc~secret"}, Exception("detail"))
    error_text = await _written(monkeypatch, surprise)
    assert error_text.startswith("IntegrityError (error id ")
    assert not any(part in error_text for part in ("insert", "secret", "detail"))


async def test_client_errors_are_stored_unchanged_as_task_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    error_text = await _written(monkeypatch, BadRequestException("The place is no place."))
    assert error_text == "BadRequestException: The place is no place."
