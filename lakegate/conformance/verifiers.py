# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for verifiers, which approve or reject changes (`gateway.verification.port.Verifier`).

The kit queries a verifier about a new table, commits, drops, renames, a restored table, changes of properties, a
document of two megabytes, and updates that no version of the protocol has. Only the author's own tests can check which
verdict is right.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.verification.port import (
    Approved,
    ChangeKind,
    Pending,
    ProposedChange,
    Rejected,
    Verdict,
    Verifier,
)
from lakegate.conformance.rules import RULE_SECONDS, Broken, Rule, opened, require, run_kit

OBJECT_TYPES: Final = ("table", "view", "generic_table", "namespace", "warehouse", "a-type-of-a-later-version")
LARGE_BYTES: Final = 2_000_000

_CONCURRENT: Final = 8


@dataclass(frozen=True, slots=True)
class VerifierSubject:
    """A verifier to be checked. `open` opens a new instance at each call; `name` is its name.

    `seconds` is the time limit for one verdict.
    """

    name: str
    open: Callable[[], Verifier]
    seconds: float = 5.0


async def check_verifier(subject: VerifierSubject, *, passed: Callable[[str], None] = lambda _: None) -> None:
    """Check all rules of verifiers. `passed` is called with the name of each rule that holds.

    Raises ConformanceError with the first broken rule.
    """
    limit = max(RULE_SECONDS, subject.seconds * _CONCURRENT * len(cases()))
    await run_kit(VERIFIER_RULES, subject, passed=passed, seconds=limit)


def cases() -> dict[str, ProposedChange]:
    """Return {name: change} of the changes that the kit submits to the verifier."""
    small, wide = _document({"owner": "a"}), _document({"owner": "a", "x": "y" * LARGE_BYTES})
    odd: dict[str, Any] = {"action": "an-update-of-a-later-version", "nested": [{"deep": None}], "number": 2**53}
    named: dict[str, Any] = {"action": "set-properties", "updates": {"owner": "größe \u2028 \U0001f600"}}
    return {
        "a new table": _change(ChangeKind.CREATE, object_id=None, after=small),
        "a commit": _change(ChangeKind.COMMIT, before=small, after=small, updates=(named,)),
        "unknown updates": _change(ChangeKind.COMMIT, before=small, after=small, updates=(odd,)),
        "a document of two megabytes": _change(ChangeKind.COMMIT, before=wide, after=wide),
        "a drop": _change(ChangeKind.DROP, before=small),
        "a drop without a document": _change(ChangeKind.DROP),
        "a rename": _change(ChangeKind.RENAME, before=small, destination=("other", "name")),
        "a restored table": _change(ChangeKind.RESTORE, after=small),
        "a change of properties": _change(
            ChangeKind.NAMESPACE_PROPERTIES, object_type="namespace", name=None, properties={"owner": "a"}
        ),
        "a new namespace": _change(
            ChangeKind.CREATE, object_type="namespace", object_id=None, name=None, properties={}
        ),
    }


async def _has_its_name(subject: VerifierSubject) -> None:
    async with opened(subject.open) as verifier:
        names: list[object] = [verifier.name for _ in range(2)]
        require(names == [subject.name] * 2, f"its name is {names[-1]!r} and must always be {subject.name!r}")


async def _concerns_are_constant(subject: VerifierSubject) -> None:
    async with opened(subject.open) as verifier:
        for kind in ChangeKind:
            for object_type in OBJECT_TYPES:
                text = f"concerns({kind.value}, {object_type})"
                try:
                    answers = [verifier.concerns(kind, object_type) for _ in range(2)]
                except Exception as error:  # a third party's code raises any exception
                    raise Broken(f"{text} raised {error!r}") from error
                require(all(isinstance(each, bool) for each in answers), f"{text} must return True or False")
                require(answers[0] is answers[1], f"{text} must stay the same")


async def _gives_constant_verdicts(subject: VerifierSubject) -> None:
    async with opened(subject.open) as verifier:
        for case, change in _concerned(verifier).items():
            before = copy.deepcopy(change)
            verdicts = [await _asked(verifier, case, change, subject.seconds) for _ in range(2)]
            require(verdicts[0] == verdicts[1], f"{case}: two questions had the verdicts {verdicts[0]}, {verdicts[1]}")
            require(
                (change.updates, change.properties) == (before.updates, before.properties),
                f"{case}: the verifier modified the change",
            )


async def _separates_concurrent_questions(subject: VerifierSubject) -> None:
    async with opened(subject.open) as verifier:
        concerned = _concerned(verifier).items()
        alone = [await _asked(verifier, name, each, subject.seconds) for name, each in concerned]
        rounds = [
            asyncio.gather(*(_asked(verifier, name, each, subject.seconds) for name, each in concerned))
            for _ in range(_CONCURRENT)
        ]
        for together in await asyncio.gather(*rounds):
            require(together == alone, "questions at the same time have other verdicts than alone")


async def _survives_a_cancellation(subject: VerifierSubject) -> None:
    async with opened(subject.open) as verifier:
        for change in [*_concerned(verifier).values()][:1]:
            expected = await _asked(verifier, "before a cancelled question", change, subject.seconds)
            task = asyncio.ensure_future(verifier.verify(change))
            await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait({task}, timeout=subject.seconds)
            require(bool(done), f"a cancelled question did not end within {subject.seconds:g} s")
            if not task.cancelled():
                task.exception()
            after = await _asked(verifier, "after a cancelled question", change, subject.seconds)
            require(after == expected, "after a cancelled question the verdict is another one")


async def _closes_again(subject: VerifierSubject) -> None:
    async with opened(subject.open) as verifier, asyncio.timeout(subject.seconds):
        await verifier.close()


def _concerned(verifier: Verifier) -> dict[str, ProposedChange]:
    return {name: each for name, each in cases().items() if verifier.concerns(each.kind, each.object_type)}


async def _asked(verifier: Verifier, case: str, change: ProposedChange, seconds: float) -> Verdict:
    """Return the verdict on a change. Raises Broken if there is none within the time limit, or it has an invalid
    form.
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            verdict: object = await verifier.verify(change)
    except TimeoutError:
        raise Broken(f"{case}: no verdict within {seconds:g} s") from None
    except Exception as error:  # a third party's code raises any exception
        raise Broken(f"{case}: verify raised {error!r}") from error
    # A verifier that computes without a pause cannot be stopped by the timeout.
    taken = time.monotonic() - began
    require(taken <= seconds, f"{case}: the verdict took {taken:.1f} s and blocked the event loop")
    if isinstance(verdict, Approved):
        return verdict
    if not isinstance(verdict, Rejected | Pending):
        raise Broken(f"{case}: the verdict must be Approved, Rejected or Pending, not {verdict!r}")
    reasons: object = verdict.reasons
    texts = isinstance(reasons, tuple) and all(isinstance(each, str) for each in reasons)
    require(texts, f"{case}: the reasons must be a tuple of texts, not {reasons!r}")
    return verdict


def _change(kind: ChangeKind, *, object_type: str = "table", **more: Any) -> ProposedChange:
    values: dict[str, Any] = {
        "object_id": "018f0000-0000-7000-8000-000000000001",
        "warehouse_id": "018f0000-0000-7000-8000-00000000000a",
        "warehouse_name": "conformance",
        "namespace": ("sales", "größe"),
        "name": "orders",
        "principal": "oidc~conformance",
        "request_id": "conformance",
    }
    return ProposedChange(kind=kind, object_type=object_type, **(values | more))


def _document(properties: dict[str, str]) -> msgspec.Raw:
    fields = [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "at", "type": "timestamptz", "required": False},
    ]
    text = {
        "format-version": 2,
        "table-uuid": "6ad15f5c-5a7f-4b0d-9d5e-0e6c1b7f8a11",
        "location": "conformance://table",
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 2,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": properties,
    }
    return msgspec.Raw(msgspec.json.encode(text))


VERIFIER_RULES: Final = (
    Rule("the name is that of the setting", _has_its_name),
    Rule("the concerned changes are constant", _concerns_are_constant),
    Rule("a change has one verdict, in time", _gives_constant_verdicts),
    Rule("concurrent questions do not mix", _separates_concurrent_questions),
    Rule("a cancelled question has no effect", _survives_a_cancellation),
    Rule("a close can be repeated", _closes_again),
)
"""The rules of verifiers, in the order of their checks."""
