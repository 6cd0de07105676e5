# SPDX-License-Identifier: Apache-2.0
"""The differences from the Java library that are meant: a name and a test for each. `docs/protocol.md` gives the
reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, Final

from tests.reference_judge.cases import Case


def refused_here(*texts: str) -> Callable[[Case], bool]:
    """Return a test: the catalog refuses with one of these texts, and the library accepts."""
    return lambda case: case.ours is None and any(text in (case.refusal or "") for text in texts)


def refused_there(*texts: str) -> Callable[[Case], bool]:
    """Return a test: the library refuses with one of these texts. Our document can be opened."""
    return lambda case: (
        case.ours is not None
        and case.verdict.unreadable is None
        and case.verdict.document is None
        and any(text in (case.verdict.error or "") for text in texts)
    )


def differs_in(*members: str) -> Callable[[Case], bool]:
    """Return a test: both sides accept, and their documents differ in these members only."""
    return lambda case: case.both and case.differing <= set(members)


def _logged_again(case: Case) -> bool:
    """Return True if the library logged the current snapshot a second time, for new settings of `main`."""
    if not differs_in("snapshot-log")(case):
        return False
    ours, theirs = case.values("snapshot-log")
    return [key for key, _ in groupby(ours)] == [key for key, _ in groupby(theirs)]


def _assigned(case: Case) -> bool:
    """Return True if the client left out partition field ids: the library numbers them in each spec from 1000."""
    if not differs_in("partition-specs", "last-partition-id")(case):
        return False
    specs = [update["spec"] for update in case.question["request"].get("updates", []) if update["action"] == "add-spec"]
    return any("field-id" not in field for spec in specs for field in spec["fields"])


def _later(case: Case) -> bool:
    """Return True if our sequence number or next row id is higher: the library goes back, or ignores a gap."""
    if not differs_in("last-sequence-number", "next-row-id")(case):
        return False
    return all(ours >= theirs for ours, theirs in (case.values(each) for each in case.differing))


def _reused(case: Case) -> bool:
    """Return True if our view reuses an equal version that was added with the schema -1."""
    if not differs_in("versions", "version-log", "current-version-id")(case):
        return False
    ours, theirs = case.values("versions")
    return len(ours) < len(theirs)


def _new_view(case: Case) -> bool:
    """Return True if the library replaced the summary of the first version by one of its own."""
    if case.question["kind"] != "create" or not differs_in("versions")(case):
        return False
    ours, theirs = ([_without_summary(each) for each in versions] for versions in case.values("versions"))
    return bool(ours == theirs)


def _without_summary(version: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in version.items() if name not in ("summary", "timestamp-ms")}


def _upgraded(case: Case) -> bool:
    """Return True if one commit adds a snapshot with a sequence number to version 1, and upgrades the table."""
    base = case.question.get("base")
    return base is not None and base["format-version"] == 1 and differs_in("last-sequence-number", "snapshots")(case)


_UNUSUAL: Final = (
    "1e+39",
    "1e+300",
    "00:00:00",
    "t10:11:12z",
    "f79c3e096-77c",
    ".34",
    "1234567890.12",
    "12345678.12",
    "1234E-2",
    "1.234E1",
)


def _unusual_default(case: Case) -> bool:
    """Return True if the catalog refuses a default that the library reads: as infinity, cut, or as others fail to."""
    refusal = case.refusal or ""
    return refused_here("is not a value of")(case) and any(text in refusal for text in _UNUSUAL)


def _unchanged(case: Case) -> bool:
    """Return True if the commit changes nothing here, and only the metadata log there."""
    return case.ours == case.question.get("base") and differs_in("metadata-log")(case)


def _other_representation(case: Case) -> bool:
    """Return True if a view has a representation that is no SQL: the library opens it, and cannot write it again."""
    return "Cannot serialize unsupported view representation" in (case.verdict.unreadable or "")


EXCEPTIONS: Final[Mapping[str, Callable[[Case], bool]]] = {
    # ---- the catalog is stricter: it refuses what would damage the table or mislead its users
    "format version 4": refused_here(
        "Cannot upgrade table to unsupported format version", "Unsupported format version"
    ),
    "dangling id": refused_here(
        *(
            "but no such entry exists",
            "but no such version exists",
            "Cannot set default partition spec to unknown spec",
            "Cannot set default sort order to unknown order",
        ),
        *("Cannot add version with unknown schema", "The table has no current schema", "does not match main branch"),
    ),
    "last-column-id too low": refused_here("has the higher field id"),
    "reserved or negative field id": refused_here("Invalid schema: field id"),
    "name of a ref is empty": refused_here("the name of a ref is empty"),
    "main as a tag": refused_here("the ref main is a tag"),
    "impossible decimal": refused_here("must have a precision from 1 to 38 and a scale"),
    "default value out of range or in an unusual spelling": _unusual_default,
    "parameter of a transform": refused_here(
        "Invalid number of buckets", "Invalid truncate width", "Invalid transform:", "for transform: day["
    ),
    "redundant partition field": refused_here("Cannot add redundant partition"),
    "partition field id with two meanings": refused_here("another partition field already has this id"),
    "property with an invalid value": refused_here("must have non-negative integer value", "must be true or false"),
    "encryption key that is not base64": refused_here("expected base64"),
    "row ids that overlap after a gap": refused_here("first-row-id behind table next-row-id"),
    "too few numbers left for other writers": refused_here("leaves too few for other writers"),
    "SQL without text or dialect": refused_here("a SQL representation must have the fields sql and dialect"),
    "number out of range": refused_here("expected `int` >=", "expected `int` <="),
    # ---- the catalog is more lenient: the document that it stores can be opened
    "ids that the catalog assigns may be missing": refused_there(
        "Cannot parse missing int: spec-id",
        "missing field IDs",
        "reserved for unsorted order",
        "Unsorted order ID must be 0",
    ),
    "empty name of a column": refused_there("Invalid column name: (empty)"),
    "sequence numbers in version 1": lambda case: (
        refused_there("Sequence number must be 0 in v1", "greater than last sequence number")(case) or _upgraded(case)
    ),
    "whole number as a default of float or double": refused_there("as a float value", "as a double value"),
    "removal of more snapshots than exist": refused_there("arraySize cannot be negative"),
    "reused version as the last added one": refused_there("no current version id has been set"),
    "null counts as missing": refused_there(
        ": null", "non-object value: null", "Cannot parse missing field: snapshots"
    ),
    # ---- the documents differ in what has no effect on readers
    "change without effect": _unchanged,
    "current snapshot logged again": _logged_again,
    "partition field ids that the client leaves out": _assigned,
    "sequence number and row ids never go back": _later,
    "trailing slash of a location": differs_in("location"),
    "equal version of a view is reused": _reused,
    "summary of a new view": _new_view,
    "representation of a view that is no SQL": _other_representation,
}
