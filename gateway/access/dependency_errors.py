# SPDX-License-Identifier: Apache-2.0
"""Failures of the door's dependencies. None of them is ever an allow."""

from __future__ import annotations

from typing import TypeVar

Failed = TypeVar("Failed", bound=Exception)


class DecisionEngineUnavailable(Exception):
    """OpenFGA or OPA did not answer, answered late, or answered something that is no decision."""


class WriteOutcomeUnknown(DecisionEngineUnavailable):
    """A write was sent and not answered: it may have happened, and may still happen until the server gives up."""


class ConditionConflict(Exception):
    """A tuple of the write exists with another condition. Nothing was written: first delete it, by another call."""


class AuditUnavailable(Exception):
    """An audit record could not be accepted or made durable, so the recorded operation must not happen."""


class AuditShareFull(AuditUnavailable):
    """The principal has as many records waiting in the audit buffer as it may have; other principals go on."""


class DatabaseUnavailable(Exception):
    """The database cannot be reached or has no free connection in time; nothing was changed."""


class OutOfTime(Exception):
    """The request took longer than it may; nothing was changed."""


class CommitUnknown(Exception):
    """COMMIT was sent and its outcome is unknown; only another read can show it."""


def first_of(group: ExceptionGroup[Failed]) -> Failed:
    """Return one failure of an exception group, however nested."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, ExceptionGroup) else first
