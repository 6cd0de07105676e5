# SPDX-License-Identifier: Apache-2.0
"""Order of the steps of a load with credentials: document, credentials, audit record, answer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from gateway.access.actor import Actor
from gateway.access.operations.tables import LoadOptions
from gateway.catalog.credentials import VendResult
from gateway.catalog.tables import Tables
from gateway.db.documents import Document
from gateway.iceberg.errors import NoSuchTableException
from gateway.iceberg.wire import StorageCredential
from gateway.obligations.merging import NO_OBLIGATIONS

_DOCUMENT = Document("s3://lake/base/t/metadata/1.json", b"{}")
_MADE = VendResult({"k": "v"}, (StorageCredential(prefix="s3://lake/base/t/", config={"k": "v"}),))


class _Stack:
    """The documents and the credentials of a load. `steps` has the begin and the end of each step."""

    def __init__(
        self, *, cached: bool = False, document: Document | None = _DOCUMENT, credentials_wait: int = 3
    ) -> None:
        self._cached = cached
        self._document = document
        self._credentials_wait = credentials_wait
        self.steps: list[str] = []

    def has(self, _row: Any) -> bool:
        return self._cached

    async def read(self, _row: Any) -> Document | None:
        self.steps.append("document begins")
        for _ in range(2):
            await asyncio.sleep(0)
        self.steps.append("document ends")
        return self._document

    async def unrecorded(self, _permit: Any) -> VendResult:
        self.steps.append("credentials begin")
        for _ in range(self._credentials_wait):
            await asyncio.sleep(0)
        self.steps.append("credentials end")
        return _MADE

    async def recorded(self, _permit: Any, made: VendResult) -> VendResult:
        self.steps.append("audit")
        return made

    async def for_load(self, permit: Any) -> VendResult:
        return await self.recorded(permit, await self.unrecorded(permit))


async def _load(stack: _Stack, *, concurrent: bool = True, restriction: Any = None) -> Any:
    collaborators = dict.fromkeys(("database", "door", "delivery", "files", "lists"))
    tables = Tables(
        **cast(Any, collaborators),
        credentials=cast(Any, stack),
        documents=cast(Any, stack),
        concurrent_vending=concurrent,
    )
    row = SimpleNamespace(
        id=UUID(int=1),
        metadata_location=_DOCUMENT.metadata_location,
        warehouse=SimpleNamespace(id=UUID(int=2), profile_version=1),
    )

    def hidden(_ref: Any) -> Exception:
        return NoSuchTableException("Table does not exist: n.t")

    permit = SimpleNamespace(
        operation=SimpleNamespace(table="t", options=LoadOptions(), hidden=hidden),
        actor=Actor.user("oidc~ann"),
        obligations=NO_OBLIGATIONS,
        resolution=SimpleNamespace(now=datetime(2026, 3, 4, tzinfo=UTC)),
        table=lambda _: row,
        restriction=lambda _: restriction,
        holds=lambda *_: True,
    )
    return await tables.load(cast(Any, permit), cast(Any, permit))


_ONE_AFTER_THE_OTHER = ["document begins", "document ends", "credentials begin", "credentials end", "audit"]


async def test_credentials_are_made_while_a_document_is_read() -> None:
    stack = _Stack()
    loaded = await _load(stack)
    assert stack.steps == ["document begins", "credentials begin", "document ends", "credentials end", "audit"]
    assert loaded.body.storage_credentials == _MADE.credentials


async def test_the_audit_record_is_committed_after_a_document_that_takes_longer_than_the_credentials() -> None:
    stack = _Stack(credentials_wait=0)
    await _load(stack)
    assert stack.steps[-2:] == ["document ends", "audit"]


@pytest.mark.parametrize("credentials_wait", [0, 3])
async def test_credentials_for_a_dropped_table_are_neither_recorded_nor_sent(credentials_wait: int) -> None:
    stack = _Stack(document=None, credentials_wait=credentials_wait)
    with pytest.raises(NoSuchTableException):
        await _load(stack)
    assert "audit" not in stack.steps


@pytest.mark.parametrize("settings", [{"cached": True}, {"concurrent": False}, {"restricted": True}], ids=str)
async def test_credentials_are_made_after_the_document_if_it_is_cached_or_restricts_them_or_by_setting(
    settings: dict[str, bool],
) -> None:
    stack = _Stack(cached=settings.get("cached", False))
    restriction = SimpleNamespace(metadata_location=_DOCUMENT.metadata_location)
    await _load(
        stack,
        concurrent=settings.get("concurrent", True),
        restriction=restriction if settings.get("restricted") else None,
    )
    assert stack.steps == _ONE_AFTER_THE_OTHER
