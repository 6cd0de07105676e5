# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints of the canary: the proof that a store confines vended credentials.

A verdict is `proven`, `escaped`, `inconclusive` or `not-vended` (docs/operator.md, "The canary").
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from gateway.protocol.base import Answer


class ScopeFinding(Answer, frozen=True):
    """One attempt that was not refused.

    `level` is the access level of the credential, `attempt` the kind of the request, `place` where it acted.
    """

    level: str
    attempt: str
    place: str
    text: str


class ScopeReportAnswer(Answer, frozen=True):
    """Response of `GET` and `POST /warehouse/{warehouse_id}/scope-report`.

    `verdict` is for the current storage profile, `inconclusive` if there is none. The other fields describe the last
    run. An inconclusive run does not replace an earlier verdict at once, so `last-run-verdict` can differ from it.
    `findings` are attempts that the store carried out, `unclear` those with neither a success nor a refusal.
    """

    warehouse_id: UUID
    verdict: str
    verdict_at: datetime | None
    last_run_at: datetime | None
    last_run_verdict: str | None
    attempts: int
    findings: list[ScopeFinding]
    unclear: list[ScopeFinding]
    reason: str
