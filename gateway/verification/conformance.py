# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for verifiers: `await conforms(open_verifier)` in a test of the verifier's author.

The kit imports no test library. A verifier that does not conform raises NotConformant with the rule that it breaks.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable
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

OBJECT_TYPES: Final = ("table", "view", "generic_table", "namespace", "warehouse", "a-type-of-a-later-version")
LARGE_BYTES: Final = 2_000_000

_CONCURRENT: Final = 8


class NotConformant(AssertionError):
    """The verifier breaks a rule of the port."""


async def conforms(open_verifier: Callable[[], Verifier | Awaitable[Verifier]], *, seconds: float = 5.0) -> None:
    """Check a verifier. `open_verifier` returns a new one; `seconds` is the timeout of one question.

    The changes are a new table, commits, drops, renames, a restored table, changes of properties, a document of two
    megabytes, and updates that no version of the protocol has. Which verdict is right, only the author's own tests can
    say.

    Raises NotConformant.
    """
    opened = open_verifier()
    verifier = await opened if isinstance(opened, Awaitable) else opened
    try:
        check_name(verifier)
        check_concerns(verifier)
        for case, change in cases().items():
            await check_verdict(verifier, case, change, seconds=seconds)
        await check_concurrency(verifier, seconds=seconds)
        await check_cancellation(verifier, seconds=seconds)
    finally:
        await check_close(verifier, seconds=seconds)


def cases() -> dict[str, ProposedChange]:
    """Return the changes of the kit by name."""
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


def check_name(verifier: Verifier) -> None:
    """Require a name that stays the same."""
    names: list[object] = [verifier.name for _ in range(2)]
    _require(
        isinstance(names[0], str) and bool(names[0]), f"the name must be a text that is not empty, not {names[0]!r}"
    )
    _require(names[0] == names[1], "the name must stay the same")


def check_concerns(verifier: Verifier) -> None:
    """Require that `concerns` answers every kind of change and type of object, always in the same way."""
    for kind in ChangeKind:
        for object_type in OBJECT_TYPES:
            try:
                answers = [verifier.concerns(kind, object_type) for _ in range(2)]
            except Exception as error:  # a third party's code raises any exception
                raise NotConformant(f"concerns({kind.value}, {object_type}) raised {error!r}") from error
            _require(all(isinstance(each, bool) for each in answers), "concerns must return True or False")
            _require(answers[0] is answers[1], f"concerns({kind.value}, {object_type}) must stay the same")


async def check_verdict(verifier: Verifier, case: str, change: ProposedChange, *, seconds: float) -> None:
    """Require the same verdict, of the right form and in time, for the same change, which must not be modified."""
    if not verifier.concerns(change.kind, change.object_type):
        return
    before = copy.deepcopy(change)
    verdicts = [await _asked(verifier, case, change, seconds) for _ in range(2)]
    _require(verdicts[0] == verdicts[1], f"{case}: two questions had the verdicts {verdicts[0]} and {verdicts[1]}")
    _require(
        (change.updates, change.properties) == (before.updates, before.properties),
        f"{case}: the verifier modified the change",
    )


async def check_concurrency(verifier: Verifier, *, seconds: float) -> None:
    """Require that questions at the same time have the verdicts that they have alone."""
    concerned = {name: each for name, each in cases().items() if verifier.concerns(each.kind, each.object_type)}
    alone = [await _asked(verifier, name, each, seconds) for name, each in concerned.items()]
    rounds = [
        asyncio.gather(*(_asked(verifier, name, each, seconds) for name, each in concerned.items()))
        for _ in range(_CONCURRENT)
    ]
    for together in await asyncio.gather(*rounds):
        _require(together == alone, "questions at the same time have other verdicts than alone")


async def check_cancellation(verifier: Verifier, *, seconds: float) -> None:
    """Require that a cancelled question ends in time, and that the next question has a verdict."""
    concerned = [each for each in cases().values() if verifier.concerns(each.kind, each.object_type)]
    if not concerned:
        return
    expected = await _asked(verifier, "a cancelled question", concerned[0], seconds)
    task = asyncio.ensure_future(verifier.verify(concerned[0]))
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=seconds)
    _require(bool(done), f"a cancelled question did not end within {seconds:g} s")
    if not task.cancelled():
        task.exception()
    after = await _asked(verifier, "after a cancelled question", concerned[0], seconds)
    _require(after == expected, "after a cancelled question the verdict is another one")


async def check_close(verifier: Verifier, *, seconds: float) -> None:
    """Require that `close` ends in time, also if it is called again."""
    for _ in range(2):
        try:
            async with asyncio.timeout(seconds):
                await verifier.close()
        except Exception as error:  # a third party's code raises any exception
            raise NotConformant(f"close raised {error!r}") from error


async def _asked(verifier: Verifier, case: str, change: ProposedChange, seconds: float) -> Verdict:
    """Return the verdict. Raises NotConformant if there is none in time, or one of another form."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            verdict: object = await verifier.verify(change)
    except TimeoutError:
        raise NotConformant(f"{case}: no verdict within {seconds:g} s") from None
    except Exception as error:  # a third party's code raises any exception
        raise NotConformant(f"{case}: verify raised {error!r}") from error
    # A verifier that computes without a pause cannot be stopped by the timeout.
    taken = time.monotonic() - began
    _require(taken <= seconds, f"{case}: the verdict took {taken:.1f} s and blocked the event loop")
    if isinstance(verdict, Approved):
        return verdict
    if not isinstance(verdict, Rejected | Pending):
        raise NotConformant(f"{case}: the verdict must be Approved, Rejected or Pending, not {verdict!r}")
    reasons: object = verdict.reasons
    texts = isinstance(reasons, tuple) and all(isinstance(each, str) for each in reasons)
    _require(texts, f"{case}: the reasons must be a tuple of texts, not {reasons!r}")
    return verdict


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise NotConformant(rule)


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
