# SPDX-License-Identifier: Apache-2.0
"""The conformance kit passes the built-in verifiers, the webhook and the rule in OPA, and finds broken verifiers."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway import settings
from gateway.assembly.verifiers import open_verifiers
from gateway.settings.verifiers import BUILT_IN
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from gateway.tls import trusted
from gateway.verification.opa_rule import OpaRule
from gateway.verification.panel import Panel
from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verifier
from gateway.verification.webhook import Webhook
from lakegate.conformance.rules import ConformanceError
from lakegate.conformance.verifiers import LARGE_BYTES, VERIFIER_RULES, VerifierSubject, cases, check_verifier
from tests.support.servers.verifier_servers import KEY, serving
from tests.support.verifier_settings import variables


def _of(panel: Panel | None) -> Verifier:
    assert panel is not None
    return panel._seats[0].seat.verifier


@pytest.mark.parametrize("kind", sorted(set(BUILT_IN) - {"webhook", "opa"}))
async def test_built_in_verifiers_conform(kind: str, tmp_path: Path) -> None:
    more = {"CONTRACTS_DIR": str(tmp_path)} if kind == "contract" else {}
    async with AsyncExitStack() as stack:
        read = settings.load(variables(kind, **more))

        def open() -> Verifier:
            return _of(open_verifiers(read, trusted(None, None), Metrics(), HealthMonitor(), stack))

        await check_verifier(VerifierSubject("v", open))


async def test_webhook_and_rule_in_opa_conform() -> None:
    async def judge(request: web.Request) -> web.Response:
        question = await request.json()
        verdict = {"verdict": "reject", "reasons": ["no"]} if question.get("kind") == "drop" else {"verdict": "approve"}
        return web.json_response(verdict)

    async def decide(request: web.Request) -> web.Response:
        return web.json_response(
            {"result": {"verdict": "pending", "reasons": [(await request.json())["input"]["kind"]]}}
        )

    async with serving(judge) as url:
        await check_verifier(VerifierSubject("w", lambda: Webhook("w", url, KEY, timeout=5, connections=4)))
    async with serving(decide) as url:
        await check_verifier(
            VerifierSubject("o", lambda: OpaRule("o", url, "verdict", token=None, timeout=5, connections=4))
        )


class Correct:
    """A third party's verifier, which rejects drops."""

    name: Any = "third"

    def concerns(self, change_kind: ChangeKind, object_type: str) -> Any:
        """Concern all tables."""
        return object_type == "table"

    async def verify(self, change: ProposedChange) -> Any:
        """Reject drops."""
        return Rejected(("no drops",)) if change.kind is ChangeKind.DROP else Approved()

    async def close(self) -> None:
        """Hold nothing."""


class Hangs(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        await asyncio.Event().wait()


class Blocks(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        time.sleep(0.3)
        return Approved()


class Alternates(Correct):
    def __init__(self) -> None:
        self._count = itertools.count()

    async def verify(self, change: ProposedChange) -> Any:
        return Approved() if next(self._count) % 2 else Pending(())


class NeedsBefore(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        assert change.before is not None
        return Approved()


class KnowsAllUpdates(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        return {"set-properties": Approved()}[change.updates[0]["action"]] if change.updates else Approved()


class Boolean(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        return True


class TextReason(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        return Rejected("no drops")  # type: ignore[arg-type]  # wrong on purpose


class SharesState(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        self.change = change
        await asyncio.sleep(0.001)
        return Rejected((self.change.kind.value,))


class Modifies(Correct):
    async def verify(self, change: ProposedChange) -> Any:
        for update in change.updates:
            update["seen"] = True  # type: ignore[index]  # wrong on purpose
        return Approved()


class ConcernsUnknown(Correct):
    def concerns(self, change_kind: ChangeKind, object_type: str) -> Any:
        return {"table": True, "view": False, "namespace": False}[object_type]


class ConcernsNothing(Correct):
    def concerns(self, change_kind: ChangeKind, object_type: str) -> Any:
        return None


class NoName(Correct):
    name = ""


class ChangesName(Correct):
    @property
    def name(self) -> Any:
        return str(time.monotonic_ns())


class ClosesOnce(Correct):
    closed = False

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class BreaksAfterCancellation(Correct):
    broken = False

    async def verify(self, change: ProposedChange) -> Any:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.broken = True
            raise
        return Pending(()) if self.broken else Approved()


NAME, CONCERNS, VERDICT, CONCURRENT, CANCELLED, CLOSED = (rule.name for rule in VERIFIER_RULES)

BROKEN: list[tuple[Callable[[], Correct], str, str]] = [
    (NoName, NAME, "its name is ''"),
    (ChangesName, NAME, "must always be 'third'"),
    (ConcernsUnknown, CONCERNS, "concerns.*raised"),
    (ConcernsNothing, CONCERNS, "must return True or False"),
    (Hangs, VERDICT, "no verdict within"),
    (Blocks, VERDICT, "blocked the event loop"),
    (Alternates, VERDICT, "two questions had the verdicts"),
    (NeedsBefore, VERDICT, "a new table: verify raised"),
    (KnowsAllUpdates, VERDICT, "unknown updates: verify raised"),
    (Boolean, VERDICT, "must be Approved, Rejected or Pending"),
    (TextReason, VERDICT, "must be a tuple of texts"),
    (Modifies, VERDICT, "modified the change"),
    (SharesState, CONCURRENT, "at the same time"),
    (BreaksAfterCancellation, CANCELLED, "after a cancelled question"),
    (ClosesOnce, CLOSED, "closed already"),
]


async def test_a_correct_verifier_keeps_all_rules() -> None:
    passed = list[str]()
    await check_verifier(VerifierSubject("third", Correct), passed=passed.append)
    assert passed == [rule.name for rule in VERIFIER_RULES] == list(dict.fromkeys(rule for _, rule, _ in BROKEN))


@pytest.mark.parametrize(("broken", "rule", "detail"), BROKEN, ids=[each[0].__name__ for each in BROKEN])
async def test_each_rule_detects_a_verifier_that_breaks_it(
    broken: Callable[[], Correct], rule: str, detail: str
) -> None:
    with pytest.raises(ConformanceError, match=detail) as error:
        # Only these two need the end of the timeout.
        await check_verifier(VerifierSubject("third", broken, seconds=0.2 if broken in (Hangs, Blocks) else 60))
    assert error.value.rule == rule


def test_cases_contain_a_new_table_unknown_updates_and_two_megabytes() -> None:
    found = cases()
    assert found["a new table"].before is None and found["a new table"].object_id is None
    large = found["a document of two megabytes"].after
    assert large is not None and len(bytes(large)) > LARGE_BYTES
    json.dumps([update for each in found.values() for update in each.updates])
