# SPDX-License-Identifier: Apache-2.0
"""Check how a panel joins verdicts and failures."""

import asyncio

import pytest

from gateway.verification.panel import Panel, Seat
from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict

CHANGE = ProposedChange(
    kind=ChangeKind.DROP,
    object_type="table",
    object_id="t",
    warehouse_id="w",
    warehouse_name="w",
    namespace=("a",),
    name="t",
    principal="p~s",
    request_id="r",
)


class Fixed:
    """Answer always the same; None fails and "hang" never answers."""

    def __init__(self, answer: Verdict | str | None) -> None:
        self._answer = answer
        self.name = "v"

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Concern drops only."""
        return change_kind is ChangeKind.DROP and object_type == "table"

    async def verify(self, change: ProposedChange) -> Verdict:
        """Give the fixed answer."""
        if isinstance(self._answer, str):
            await asyncio.Event().wait()
        if self._answer is None or isinstance(self._answer, str):
            raise RuntimeError(change.request_id)
        return self._answer

    async def close(self) -> None:
        """Hold nothing."""


@pytest.mark.parametrize(
    ("answers", "fail_open", "verdict", "unavailable"),
    [
        ((Approved(), Approved()), False, Approved(), False),
        ((Pending(("p",)), Rejected(("r",))), False, Rejected(("v: r",)), False),
        ((Approved(), Pending(("p",))), False, Pending(("v: p",)), False),
        ((Rejected(()),), False, Rejected(("v: rejected",)), False),
        ((None, Approved()), False, Rejected(("v: gave no verdict; try again later",)), True),
        (("hang", Pending(("p",))), False, Rejected(("v: gave no verdict; try again later",)), True),
        (("hang", None), True, Approved(), False),
    ],
)
def test_the_strictest_verdict_wins(
    answers: tuple[Verdict | str | None, ...], fail_open: bool, verdict: Verdict, unavailable: bool
) -> None:
    panel = Panel(tuple(Seat(Fixed(answer), 0.05, fail_open) for answer in answers))
    judgement = asyncio.run(panel.verify(CHANGE))
    assert (judgement.verdict, judgement.unavailable) == (verdict, unavailable)
    assert panel.concerns(ChangeKind.DROP, "table")
    assert not panel.concerns(ChangeKind.COMMIT, "table")
