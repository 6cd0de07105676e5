# SPDX-License-Identifier: Apache-2.0
"""Find single changes of OPA's input that would lift a denial of guardrails: another fact, or a later time.

OPA is asked about each change, so a change that is returned lifts the denial.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from gateway.access.decisions.policy import PolicyAnswers, PolicyRequest
from gateway.access.operations.answers import LiftingInput
from gateway.fga.relationships import rfc3339
from gateway.opa.rule_hits import FACTS

_TIME: Final = "context.time"
#: The hours after the decision at which OPA is asked.
_HOURS: Final = 168
_AT_ONCE: Final = 12
#: Searches at the same time in one process, one for each principal. A search costs up to 180 requests to OPA, and all
#: other decisions need OPA too.
SEARCHES: Final = 2
_MINUTE: Final = timedelta(minutes=1)

Evaluate = Callable[[PolicyRequest], Awaitable[PolicyAnswers]]


async def lifts_of(
    evaluate: Evaluate, request: PolicyRequest, denied: PolicyAnswers, read: Collection[str]
) -> list[LiftingInput]:
    """Return the changes that lift the denial: other values of boolean facts, and the first later time within a week.

    - `request` has one question, and `denied` is the answer to it.
    - `read`: the parts of the input that guardrails read.

    A period of less than an hour in which the guardrails allow the question may be missed.
    Raises DecisionEngineUnavailable.
    """
    found = await _other_facts(evaluate, request, read)
    # Guardrails that promise the same answer for a time do not deny because of it.
    if _TIME in read and denied.valid_until is None:
        time = await _later(evaluate, request)
        found += [] if time is None else [LiftingInput(input=_TIME, value=rfc3339(time))]
    return found


async def _other_facts(evaluate: Evaluate, request: PolicyRequest, read: Collection[str]) -> list[LiftingInput]:
    """Return the boolean facts whose other value alone lifts the denial, with that value."""
    (question,) = request.questions
    others = {
        name: not value
        for name, value in question.facts.items()
        if isinstance(value, bool) and f"{FACTS}{name}" in read
    }
    if not others:
        return []
    changed = tuple(replace(question, facts={**question.facts, name: value}) for name, value in others.items())
    answers = await evaluate(replace(request, questions=changed))
    return [
        LiftingInput(input=f"{FACTS}{name}", value=value)
        for (name, value), answer in zip(others.items(), answers.decisions, strict=True)
        if answer.allow
    ]


async def _later(evaluate: Evaluate, request: PolicyRequest) -> datetime | None:
    """Return the first minute of the next week at which the guardrails allow the question; None without one."""
    denied = datetime.fromisoformat(request.context.time).astimezone(UTC).replace(second=0, microsecond=0)

    async def allows(time: datetime) -> bool:
        return (
            (await evaluate(replace(request, context=replace(request.context, time=rfc3339(time))))).decisions[0].allow
        )

    first = denied.replace(minute=0)
    for begin in range(1, _HOURS + 1, _AT_ONCE):
        some = [first + timedelta(hours=each) for each in range(begin, begin + _AT_ONCE)]
        for hour, allowed in zip(some, await asyncio.gather(*map(allows, some)), strict=True):
            if not allowed:
                denied = hour
                continue
            while hour - denied > _MINUTE:
                middle = denied + (hour - denied) // _MINUTE // 2 * _MINUTE
                denied, hour = (denied, middle) if await allows(middle) else (middle, hour)
            return hour
    return None
