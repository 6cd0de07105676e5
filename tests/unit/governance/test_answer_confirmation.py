# SPDX-License-Identifier: Apache-2.0
"""An answer is sent only after OpenFGA confirms it. A pending change explains a difference; any other is an error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.access.management_errors import AnswerDisagreed, AnswerPending
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.features.answers import confirmation
from gateway.features.answers.confirmation import Confirming, Unconfirmed
from gateway.fga.answer_checks import AnswerCheck
from tests.support.kits import kit_of

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
TABLE = ObjectKey(ObjectType.TABLE, "00000000-0000-4000-8000-000000000006")
CHECK = AnswerCheck(Principal(PrincipalType.USER, "oidc~ann"), "can_read_data", TABLE)


class Checks:
    """Answers of OpenFGA, one for each call; the last one repeats."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.disagreements = 0

    async def ask(self, checks: Sequence[AnswerCheck], *, now: datetime) -> list[bool]:
        return [self._answers.pop(0) if len(self._answers) > 1 else self._answers[0] for _ in checks]

    def count_disagreement(self) -> None:
        self.disagreements += 1


class NoDatabase:
    """A database whose connection is not used."""

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        yield None


async def confirmed(checks: Checks, monkeypatch: pytest.MonkeyPatch, *, pending: bool) -> str:
    async def is_pending(*_: Any) -> bool:
        return pending

    async def compute() -> tuple[str, Unconfirmed]:
        return "answer", Unconfirmed(NOW, [CHECK], [True], [TABLE])

    monkeypatch.setattr(confirmation, "is_pending", is_pending)
    monkeypatch.setattr(confirmation, "_PAUSES", (0.0, 0.0))
    use_cases = Confirming(kit_of(answers=SimpleNamespace(checks=checks), database=NoDatabase()))
    return await use_cases._confirmed(compute)


async def test_confirmed_answer_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await confirmed(Checks(True), monkeypatch, pending=False) == "answer"


async def test_change_during_the_answer_is_no_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await confirmed(Checks(False, True), monkeypatch, pending=False) == "answer"


async def test_unexplained_difference_is_an_error_that_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(False)
    with pytest.raises(AnswerDisagreed):
        await confirmed(checks, monkeypatch, pending=False)
    assert checks.disagreements == 1


async def test_undelivered_change_is_answered_by_a_retry_later(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(False)
    with pytest.raises(AnswerPending):
        await confirmed(checks, monkeypatch, pending=True)
    assert checks.disagreements == 0
