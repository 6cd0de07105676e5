# SPDX-License-Identifier: Apache-2.0
"""A panel joins verdicts strictly, and a verifier that fails or hangs neither approves nor holds a request."""

from __future__ import annotations

import asyncio

import pytest

from gateway.verification.panel import LONGEST_REASON, MOST_REASONS, Asked, Panel, Seat, VerifierFailed
from gateway.verification.port import Approved, ChangeKind, Pending, Rejected, Verdict
from tests.support.door.verified_changes import Scripted, change

CHANGE = change(ChangeKind.DROP)


def seat(answer: object, name: str = "v", *, timeout: float = 0.05, **more: object) -> Seat:
    return Seat(verifier=Scripted(answer, name), timeout=timeout, **more)  # type: ignore[arg-type]  # passed on


NO_VERDICT = "gave no verdict; try again later"


@pytest.mark.parametrize(
    ("answers", "verdict", "unavailable"),
    [
        ((Approved(), Approved()), Approved(), False),
        ((Pending(("p",)), Rejected(("r",))), Rejected(("v1: r",)), False),
        ((Approved(), Pending(("p",))), Pending(("v1: p",)), False),
        ((Rejected(()),), Rejected(("v0: rejected the change",)), False),
        ((None, Approved()), Rejected((f"v0: {NO_VERDICT}",)), True),
        ((None, Rejected(("r",))), Rejected(("v1: r",)), False),
        (("hang", Pending(("p",))), Rejected((f"v0: {NO_VERDICT}",)), True),
        (("cancel",), Rejected((f"v0: {NO_VERDICT}",)), True),
        ((True,), Rejected((f"v0: {NO_VERDICT}",)), True),
        ((Rejected("not a list"),), Rejected((f"v0: {NO_VERDICT}",)), True),  # type: ignore[arg-type]  # wrong on purpose
        ((Approved,), Approved(), False),
        ((), Approved(), False),
    ],
)
def test_the_strictest_verdict_wins(answers: tuple[object, ...], verdict: Verdict, unavailable: bool) -> None:
    panel = Panel(seat(answer, f"v{n}") for n, answer in enumerate(answers))
    judgement = asyncio.run(panel.verify(CHANGE))
    assert (judgement.verdict, judgement.unavailable) == (verdict, unavailable)


def test_all_changes_of_a_large_transaction_are_judged() -> None:
    panel = Panel([seat(Pending(("p",)), questions=2, timeout=5.0)])
    judgements = asyncio.run(panel.verify_all([CHANGE] * 100))
    assert [each.verdict for each in judgements] == [Pending(("v: p",))] * 100


def test_no_further_changes_are_asked_about_after_a_rejection() -> None:
    verifier = Scripted("hang")
    panel = Panel([Seat(verifier=verifier, timeout=0.05, questions=2)])
    judgements = asyncio.run(panel.verify_all([CHANGE] * 100))
    assert verifier.asked == 2
    assert [each.unavailable for each in judgements] == [True, True]


def test_reasons_are_in_the_order_of_names_and_limited() -> None:
    many = tuple(f"line\n{n}" for n in range(MOST_REASONS + 5))
    panel = Panel([seat(Rejected(("x" * 5000,)), "z"), seat(Rejected(many), "a")])
    verdict = asyncio.run(panel.verify(CHANGE)).verdict
    assert isinstance(verdict, Rejected)
    assert verdict.reasons[0] == "a: line 0" and verdict.reasons[MOST_REASONS] == "a: 5 more reasons"
    assert len(verdict.reasons[-1]) == len("z: ") + LONGEST_REASON


def test_only_concerned_verifiers_of_the_warehouse_are_asked() -> None:
    elsewhere = seat(Rejected(()), "a", warehouses=frozenset({"another"}))
    panel = Panel([elsewhere, seat(Rejected(()), "b")])
    assert panel.concerns(ChangeKind.DROP, "table") and not panel.concerns(ChangeKind.COMMIT, "table")
    assert asyncio.run(panel.verify(change(ChangeKind.COMMIT))).verdict == Approved()
    assert asyncio.run(panel.verify(CHANGE)).verdict == Rejected(("b: rejected the change",))


def test_settings_limit_the_kinds_and_types_that_concern_a_verifier() -> None:
    by_kind = Panel([seat(Approved(), kinds=frozenset({ChangeKind.COMMIT}))])
    by_type = Panel([seat(Approved(), object_types=frozenset({"view"}))])
    both = Panel([seat(Approved(), kinds=frozenset({ChangeKind.DROP}), object_types=frozenset({"table"}))])
    assert [each.concerns(ChangeKind.DROP, "table") for each in (by_kind, by_type, both)] == [False, False, True]
    assert len({each.version for each in (by_kind, by_type, both)}) == 3


def test_verifier_whose_concern_is_unknown_is_asked() -> None:
    class Odd(Scripted):
        def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
            raise RuntimeError

    panel = Panel([Seat(verifier=Odd(Rejected(("r",))), timeout=1)])
    assert panel.concerns(ChangeKind.RENAME, "view")
    assert isinstance(asyncio.run(panel.verify(CHANGE)).verdict, Rejected)


def test_verifier_that_ignores_its_cancellation_does_not_hold_a_request() -> None:
    async def run() -> tuple[bool, int]:
        deaf = Scripted("deaf")
        panel = Panel([Seat(verifier=deaf, timeout=0.02, questions=1)])
        judgements = [await panel.verify(CHANGE) for _ in range(3)]
        await panel.close()
        return all(judgement.unavailable for judgement in judgements), deaf.asked

    # Only one question reached the verifier: the others found its only place taken.
    assert asyncio.run(run()) == (True, 1)


def test_question_without_an_answer_is_cancelled_and_gives_its_place_to_the_next() -> None:
    async def run() -> tuple[bool, Verdict]:
        verifier = Scripted("hang")
        panel = Panel([Seat(verifier=verifier, timeout=0.05, questions=1)])
        first = await panel.verify(CHANGE)
        verifier._answer = Approved()
        return first.unavailable, (await panel.verify(CHANGE)).verdict

    assert asyncio.run(run()) == (True, Approved())


def test_number_of_questions_to_a_hanging_verifier_is_bounded() -> None:
    async def run() -> tuple[int, int, set[str | None]]:
        seen: list[Asked] = []
        hanging = Scripted("hang")
        panel = Panel([Seat(verifier=hanging, timeout=0.3, questions=2)], observe=seen.append)
        await asyncio.gather(*(panel.verify(CHANGE) for _ in range(50)))
        failures = [each.failure for each in seen]
        return hanging.most, failures.count("too many questions wait for an answer"), set(failures)

    waited = "no answer within 0.3 s, after waiting for other questions"
    # Two questions are with the verifier, sixteen wait, and all others fail at once.
    assert asyncio.run(run()) == (2, 32, {"too many questions wait for an answer", "no answer within 0.3 s", waited})


def test_failures_are_observed_without_texts_of_the_verifier_and_shown_until_the_next_answer() -> None:
    seen: list[Asked] = []
    answers = [RuntimeError("secret"), Approved()]

    def answer() -> object:
        if isinstance(given := answers.pop(0), Exception):
            raise given
        return given

    panel = Panel([seat(answer)], observe=seen.append)
    asyncio.run(panel.check("v"))
    asyncio.run(panel.verify(CHANGE))
    with pytest.raises(VerifierFailed, match=r"v gave no verdict: RuntimeError$"):
        asyncio.run(panel.check("v"))
    asyncio.run(panel.verify(CHANGE))
    asyncio.run(panel.check("v"))
    assert [(each.outcome, each.failure) for each in seen] == [("failed", "RuntimeError"), ("approved", None)]


def test_version_changes_with_names_limits_and_configuration() -> None:
    text = "a"
    first = Panel([seat(Approved(), configuration=lambda: text), seat(Approved(), "w")])
    version = first.version
    assert Panel([seat(Approved(), "w"), seat(Approved(), configuration=lambda: "a")]).version == version
    text = "b"
    others = [
        first,
        Panel([seat(Approved(), configuration=lambda: "a")]),
        Panel([seat(Approved(), configuration=lambda: "a"), seat(Approved(), "w", warehouses=frozenset("x"))]),
    ]
    assert len({version, *(panel.version for panel in others)}) == 4


def test_two_verifiers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        Panel([seat(Approved()), seat(Approved())])


def test_every_verifier_is_closed_although_one_fails() -> None:
    class Broken(Scripted):
        async def close(self) -> None:
            raise RuntimeError

    other = Scripted(Approved(), "z")
    panel = Panel([Seat(verifier=Broken(Approved()), timeout=1), Seat(verifier=other, timeout=1)])
    asyncio.run(panel.close())
    assert other.closed
