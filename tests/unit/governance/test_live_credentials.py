# SPDX-License-Identifier: Apache-2.0
"""The number of live credentials after a revocation, if it can be counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.access.dependency_errors import AuditUnavailable, DatabaseUnavailable
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey
from gateway.access.operations.grants import Assignment
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.credentials import live_credentials
from gateway.features.live_credentials.live_credentials import LiveCredentials
from tests.support.door import world
from tests.support.kits import kit_of

ALICE = Principal(PrincipalType.USER, "oidc~alice")
BOB = Principal(PrincipalType.USER, "oidc~bob")
ROLE = Principal(PrincipalType.ROLE, str(world.ROLE_ID))


class Parts:
    """A database without rows, a door, and an audit; each fails or refuses on demand."""

    def __init__(
        self, *, database: Exception | None = None, audit: Exception | None = None, may_read: bool = True
    ) -> None:
        self.may_read = may_read
        self._errors = {"database": database, "audit": audit}
        self.details: list[dict[str, str]] = []

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        if error := self._errors["database"]:
            raise error
        yield

    async def visible(self, permit: object, relation: object, objects: Sequence[ObjectKey]) -> list[bool]:
        return [self.may_read for _ in objects]

    async def also(self, **detail: str) -> None:
        if error := self._errors["audit"]:
            raise error
        self.details.append(detail)


async def header(
    parts: Parts, *deletes: Principal, on: str = "table", privilege: Privilege = Privilege.SELECT
) -> str | None:
    row = SimpleNamespace(key=ObjectKey(cast(Any, on), "id"))
    operation = SimpleNamespace(on="ref", deletes=tuple(Assignment(privilege, each) for each in deletes))
    permit = SimpleNamespace(operation=operation, pending_audit=parts, resolution={"ref": row})
    use_case = LiveCredentials(kit_of(database=parts, door=parts, page_size=10))
    return await use_case.after_revocation(cast(Any, permit))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str] | None]:
    """Replace the count by 3, and return the users that it was limited to."""
    users_of: list[Sequence[str] | None] = []

    async def remaining(
        connection: object, on: ObjectKey, *, project_id: str | None, users: Sequence[str] | None
    ) -> tuple[int, datetime]:
        users_of.append(users)
        return 3, datetime(2026, 3, 4, 12, 0, 0, 1, tzinfo=UTC)

    monkeypatch.setattr(live_credentials, "remaining", remaining)
    return users_of


async def test_a_change_that_revokes_nothing_has_no_header(counted: list[Sequence[str] | None]) -> None:
    assert await header(Parts()) is None
    assert counted == []


async def test_a_caller_that_may_only_grant_learns_no_number(counted: list[Sequence[str] | None]) -> None:
    parts = Parts(may_read=False)
    assert await header(parts, ALICE) is None
    assert (counted, parts.details) == ([], [])


async def test_the_time_is_rounded_up_and_recorded(counted: list[Sequence[str] | None]) -> None:
    parts = Parts()
    assert await header(parts, BOB, ALICE, BOB) == "3; until=2026-03-04T12:00:01+00:00"
    assert parts.details == [{"live_credentials": "3; until=2026-03-04T12:00:01+00:00"}]
    assert counted == [["oidc~alice", "oidc~bob"]]


async def test_a_revocation_from_a_role_concerns_every_user(counted: list[Sequence[str] | None]) -> None:
    assert await header(Parts(), ALICE, ROLE) is not None
    assert counted == [None]


@pytest.mark.parametrize(
    "parts",
    [
        Parts(database=DatabaseUnavailable("away")),
        Parts(database=RuntimeError("an unexpected error")),
        Parts(audit=AuditUnavailable("full")),
    ],
)
async def test_a_failed_count_does_not_fail_the_revocation(counted: list[Sequence[str] | None], parts: Parts) -> None:
    assert await header(parts, ALICE) == "unknown"
