# SPDX-License-Identifier: Apache-2.0
"""Errors of the systems on which decisions depend: OpenFGA, OPA, PostgreSQL. No such error ever allows a request."""

from __future__ import annotations

from typing import TypeVar

Failed = TypeVar("Failed", bound=Exception)


class DecisionEngineUnavailable(Exception):
    """OpenFGA or OPA did not respond in time, or sent an invalid response."""


class WriteOutcomeUnknown(DecisionEngineUnavailable):
    """A write was sent, and no response came. It may have happened, and may still happen until the server's timeout."""


class ConditionConflict(Exception):
    """A tuple to write exists with another condition, so nothing was written.

    Delete that tuple first, in a separate request.
    """


class AuditUnavailable(Exception):
    """An audit record could not be accepted or made durable, so the recorded operation must not happen."""


class AuditShareFull(AuditUnavailable):
    """The principal's share of the audit buffer is full. Other principals are not affected."""


class DatabaseUnavailable(Exception):
    """The database cannot be reached, or no connection became free in time. Nothing was changed."""


class OutOfTime(Exception):
    """The request exceeded its time limit. Nothing was changed."""


class CommitUnknown(Exception):
    """COMMIT was sent and its outcome is unknown. Only another read can show whether the change was committed."""


def first_of(group: ExceptionGroup[Failed]) -> Failed:
    """Return one of the errors in an exception group, also from nested groups."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, ExceptionGroup) else first
