# SPDX-License-Identifier: Apache-2.0
"""Build proposed changes and verifiers for the tests of this directory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from gateway.features.approvals.change_proposals import ChangingPermit
from gateway.verification.port import ChangeKind, ProposedChange, Verdict

Fields = Sequence[Mapping[str, Any]]


def field(id: int, name: str, type: object = "long", *, required: bool = False, **more: object) -> dict[str, Any]:
    """Return a column as JSON."""
    return {"id": id, "name": name, "type": type, "required": required, **more}


def document(
    fields: Fields = (), *, spec: Fields = (), properties: Mapping[str, str] | None = None, version: int = 2
) -> msgspec.Raw:
    """Return table metadata with one schema and one partition spec."""
    text: dict[str, Any] = {
        "format-version": version,
        "table-uuid": "6ad15f5c-5a7f-4b0d-9d5e-0e6c1b7f8a11",
        "location": "s3://bucket/t",
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 100,
        "schemas": [{"type": "struct", "schema-id": 3, "fields": list(fields)}],
        "current-schema-id": 3,
        "partition-specs": [{"spec-id": 0, "fields": list(spec)}],
        "default-spec-id": 0,
        "last-partition-id": 1100,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": dict(properties or {}),
    }
    return msgspec.Raw(msgspec.json.encode(text))


def change(kind: ChangeKind = ChangeKind.COMMIT, object_type: str = "table", **more: Any) -> ProposedChange:
    """Return a change of the table `sales.orders` in the warehouse `w`."""
    values: dict[str, Any] = {
        "object_id": "018f0000-0000-7000-8000-000000000001",
        "warehouse_id": "018f0000-0000-7000-8000-00000000000a",
        "warehouse_name": "w",
        "namespace": ("sales",),
        "name": "orders",
        "principal": "oidc~alice",
        "request_id": "r",
    }
    return ProposedChange(kind=kind, object_type=object_type, **(values | more))


class Scripted:
    """A verifier that answers by a function; None means an error, `hang` an endless wait, `deaf` one that ignores its
    cancellation until `close`, and `cancel` a verifier that cancels itself."""

    def __init__(self, answer: Callable[[], object] | object, name: str = "v") -> None:
        self._answer = answer
        self.name = name
        self.asked = 0
        self.running = 0
        self.most = 0
        self.closed = False

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Concern drops of tables only."""
        return change_kind is ChangeKind.DROP and object_type == "table"

    async def verify(self, change: ProposedChange) -> Verdict:
        """Give the scripted answer."""
        self.asked += 1
        if self._answer == "hang":
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.Event().wait()
            finally:
                self.running -= 1
        while self._answer == "deaf" and not self.closed:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        if self._answer == "cancel":
            raise asyncio.CancelledError
        if self._answer is None:
            raise RuntimeError("secret of the verifier")
        return self._answer() if callable(self._answer) else self._answer  # type: ignore[return-value]  # wrong ones too

    async def close(self) -> None:
        """Record the call."""
        self.closed = True


(_OPERATIONS,) = get_args(ChangingPermit)
JUDGED: Final = frozenset(each.__name__ for each in get_args(_OPERATIONS))
"""The operations whose permits the verifiers accept. `test_every_verified_operation.py` runs each of them."""
