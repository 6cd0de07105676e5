# SPDX-License-Identifier: Apache-2.0
"""A question with the answers of both sides, and the comparison of their documents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gateway.iceberg.applying.content import RESERVED_PROPERTIES
from tests.reference_judge.judge import Verdict

JSON = dict[str, Any]

#: Members that hold the clock of the side that wrote them, or a random id.
_OWN = frozenset({"last-updated-ms", "table-uuid", "view-uuid"})

#: Names that the catalog does not store because they describe the metadata, and what the library adds to staged tables.
_OWN_PROPERTIES = RESERVED_PROPERTIES | {"created-at"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, the document that the catalog stores or its refusal, and the verdict of the library."""

    question: JSON
    ours: JSON | None
    refusal: str | None
    verdict: Verdict

    @property
    def both(self) -> bool:
        """Return True if both sides accept."""
        return self.verdict.ours is not None and self.verdict.document is not None

    @property
    def differing(self) -> frozenset[str]:
        """Return the members of the documents that differ. Both sides must accept."""
        ours, theirs = normal(self.verdict.ours), normal(self.verdict.document)
        return frozenset(name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))

    def values(self, member: str) -> tuple[Any, Any]:
        """Return a member of our document and of the library's. Both sides must accept."""
        return normal(self.verdict.ours).get(member), normal(self.verdict.document).get(member)


def normal(document: JSON | None) -> JSON:
    """Return a document of the library without clocks, and in an order that does not depend on a hash."""
    assert document is not None
    kept = {name: value for name, value in document.items() if name not in _OWN}
    for log in ("snapshot-log", "metadata-log", "version-log"):
        if log in kept:
            kept[log] = [{n: v for n, v in entry.items() if n != "timestamp-ms"} for entry in kept[log]]
    for each in ("statistics", "partition-statistics", "encryption-keys"):
        if each in kept:
            kept[each] = sorted(kept[each], key=lambda file: json.dumps(file, sort_keys=True))
    if "properties" in kept:
        kept["properties"] = {n: v for n, v in kept["properties"].items() if n not in _OWN_PROPERTIES}
    if "versions" in kept:
        kept["versions"] = sorted(kept["versions"], key=lambda version: version["version-id"])
    return kept


def compare(case: Case) -> str | None:
    """Return how the answers differ, or None if they agree."""
    if case.verdict.unreadable is not None:
        return f"accepted here, and Java cannot open the result: {case.verdict.unreadable}"
    if case.ours is None:
        return None if case.verdict.document is None else f"refused here only: {case.refusal}"
    if case.verdict.document is None:
        return f"refused there only: {case.verdict.error}"
    if not case.differing:
        return None
    shown = "; ".join(f"{each}: {' != '.join(str(v) for v in case.values(each))}" for each in sorted(case.differing))
    return f"other results: {shown}"
