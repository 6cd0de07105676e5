# SPDX-License-Identifier: Apache-2.0
"""Define the interface of verifiers: the change that they evaluate, and their verdicts on it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec


class ChangeKind(StrEnum):
    """Name the kinds of changes that verifiers evaluate."""

    COMMIT = "commit"
    CREATE = "create"
    DROP = "drop"
    RENAME = "rename"
    RESTORE = "restore"
    NAMESPACE_PROPERTIES = "namespace_properties"


class ProposedChange(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Describe a change that was authorized and is not made yet."""

    kind: ChangeKind
    object_type: str
    # None for a new object.
    object_id: str | None
    warehouse_id: str
    warehouse_name: str
    namespace: tuple[str, ...]
    name: str | None
    principal: str
    request_id: str
    # The updates of a commit, in the form of the REST protocol.
    updates: tuple[Mapping[str, Any], ...] = ()
    # The metadata documents of a table or view; `before` is None for a new one.
    before: msgspec.Raw | None = None
    after: msgspec.Raw | None = None
    properties: Mapping[str, str] = {}
    # The namespace levels and the name after a rename.
    destination: tuple[str, ...] | None = None


class Approved(msgspec.Struct, frozen=True, tag=True):
    """Allow the change."""


class Rejected(msgspec.Struct, frozen=True, tag=True):
    """Refuse the change for the given reasons."""

    reasons: tuple[str, ...]


class Pending(msgspec.Struct, frozen=True, tag=True):
    """Hold the change until an approver allows it."""

    reasons: tuple[str, ...]


Verdict = Approved | Rejected | Pending


class Verifier(Protocol):
    """Evaluate proposed changes."""

    @property
    def name(self) -> str:
        """Return the name that prefixes the reasons."""

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True if this verifier evaluates such a change. The method must be cheap and pure."""

    async def verify(self, change: ProposedChange) -> Verdict:
        """Evaluate the change. Any exception counts as a failure of the verifier."""

    async def close(self) -> None:
        """Release the resources of the verifier."""
