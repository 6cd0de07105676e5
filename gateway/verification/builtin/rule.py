# SPDX-License-Identifier: Apache-2.0
"""Make a verifier from a pure function that returns the reasons against a change.

A verifier approves or rejects a change before it is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict

Violation = Literal["reject", "pending"]
"""The verdict on a change that breaks a rule."""

_LARGE: Final = 262_144
"""Bytes of documents from which a rule runs in a thread: reading them would delay other requests."""


DATA_UPDATES: Final = frozenset(
    {
        "add-snapshot",
        "set-snapshot-ref",
        "remove-snapshots",
        "remove-snapshot-ref",
        "set-statistics",
        "remove-statistics",
        "set-partition-statistics",
        "remove-partition-statistics",
    }
)
"""Updates of tables that change neither their structure nor their properties."""

PROPERTY_UPDATES: Final = frozenset({"set-properties", "remove-properties"})

STRUCTURE_UPDATES: Final = frozenset(
    {
        "add-schema",
        "set-current-schema",
        "add-spec",
        "set-default-spec",
        "add-sort-order",
        "set-default-sort-order",
        "add-view-version",
        "set-current-view-version",
    }
)


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """The kinds of changes and the types of objects that a verifier evaluates.

    `unaffected` are updates that cannot break its rule. It does not evaluate a commit that has only such updates.
    """

    kinds: frozenset[ChangeKind]
    object_types: frozenset[str]
    unaffected: frozenset[str] = frozenset()

    def covers(self, kind: ChangeKind, object_type: str) -> bool:
        """Return True if the verifier evaluates changes of this kind on this type of objects."""
        return kind in self.kinds and object_type in self.object_types


class Rule:
    """A verifier made from a rule. If the function `judge` returns reasons, the change is rejected or needs
    approval.
    """

    def __init__(
        self,
        name: str,
        concern: Concern,
        judge: Callable[[ProposedChange], tuple[str, ...]],
        *,
        violation: Violation = "reject",
    ) -> None:
        self._name = name
        self._concern = concern
        self._judge = judge
        self._violation = violation

    @property
    def name(self) -> str:
        """Return the name in the settings."""
        return self._name

    @property
    def unaffected(self) -> frozenset[str]:
        """Return the updates that cannot break the rule."""
        return self._concern.unaffected

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True if the rule evaluates changes of this kind on this type of objects."""
        return self._concern.covers(change_kind, object_type)

    async def verify(self, change: ProposedChange) -> Verdict:
        """Return the verdict of the rule on a change. Raises the errors of reading a document."""
        if not self.concerns(change.kind, change.object_type):
            return Approved()
        size = sum(len(bytes(text)) for text in (change.before, change.after) if text is not None)
        reasons = self._judge(change) if size < _LARGE else await asyncio.to_thread(self._judge, change)
        return verdict_on(reasons, self._violation)

    async def close(self) -> None:
        """Do nothing: a rule holds no resources."""


def verdict_on(reasons: tuple[str, ...], violation: Violation) -> Verdict:
    """Return the verdict on a change with these reasons against it."""
    if not reasons:
        return Approved()
    return Pending(reasons) if violation == "pending" else Rejected(reasons)
