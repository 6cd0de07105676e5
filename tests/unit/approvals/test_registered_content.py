# SPDX-License-Identifier: Apache-2.0
"""The approval of a registration is bound to the content of the file, which its owner can replace."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.access.nouns.refs import ObjectType
from gateway.db.tables.documents import Document, Documents
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.verification.change_digest import digest_of, normalised_change
from gateway.verification.panel import Panel, Seat
from gateway.verification.port import Approved, ChangeKind, ProposedChange, Verdict
from tests.support.door.verified_changes import document, field
from tests.support.door.world import table_row
from tests.support.kits import kit_of

NAMESPACE = table_row.namespace


class _Recorder:
    """A verifier that approves every change and records it."""

    name = "recorder"

    def __init__(self) -> None:
        self.seen: list[ProposedChange] = []

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Concern every change."""
        return True

    async def verify(self, change: ProposedChange) -> Verdict:
        """Approve the change."""
        self.seen.append(change)
        return Approved()

    async def close(self) -> None:
        """Do nothing."""


class _Before:
    async def read(self, _row: object) -> Document:
        return Document("s3://bucket/t/metadata/1.json", bytes(document([field(1, "a")])))


def digests(registered: bytes) -> dict[ChangeKind, str]:
    """Return the digests of an overwriting registration of a file with this content."""
    recorder = _Recorder()
    panel = Panel([Seat(verifier=recorder, timeout=5)])
    approval = ChangeApproval(kit_of(panel=panel, ticket_lifetime=60))
    file = "s3://bucket/t/metadata/2.json"
    operation = SimpleNamespace(request=SimpleNamespace(metadata_location=file), facts=lambda: {"file": file})
    permit = cast(Any, SimpleNamespace(actor=SimpleNamespace(id="oidc~alice"), request_id="r", operation=operation))
    judged = approval.of_registration(
        permit,
        ObjectType.TABLE,
        NAMESPACE,
        "orders",
        Document(file, registered),
        replaced=table_row,
        documents=cast(Documents, _Before()),
    )
    asyncio.run(judged)
    return {each.kind: digest_of(normalised_change(each), panel_version="1") for each in recorder.seen}


@pytest.mark.parametrize("kind", [ChangeKind.CREATE, ChangeKind.COMMIT])
def test_other_content_of_the_same_file_is_another_change(kind: ChangeKind) -> None:
    approved = bytes(document([field(1, "a"), field(2, "b")]))
    # Members that a digest leaves out, such as snapshots, are part of a registered file.
    for other in (
        bytes(document([field(1, "secret")])),
        approved.replace(b'"last-updated-ms":1', b'"last-updated-ms":2'),
    ):
        assert digests(approved)[kind] == digests(approved)[kind]
        assert digests(approved)[kind] != digests(other)[kind]
