# SPDX-License-Identifier: Apache-2.0
"""The wire form of OPA's answers. Every field that limits an allow is required, and null is no value.

A field that is missing, unknown or of another type makes the whole answer unusable: an obligation that did not arrive
must not be taken for none.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from gateway.access.policy import Obligations, PolicyAnswer, PolicyAnswers, Reason


class WireObligations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The obligations of one answer, each left out where no guardrail asks for it. The fields are those of
    `Obligations`, which a test compares.
    """

    max_credential_seconds: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    no_vending: bool = False
    append_only: bool = False
    hide_operations: tuple[str, ...] = ()

    def understood(self) -> Obligations:
        """Return the obligations for the door."""
        seconds = self.max_credential_seconds
        return Obligations(
            max_credential_seconds=None if seconds is msgspec.UNSET else seconds,
            no_vending=self.no_vending,
            append_only=self.append_only,
            hide_operations=self.hide_operations,
        )


class WireAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to one question."""

    allow: bool
    reasons: tuple[Reason, ...]
    obligations: WireObligations

    def understood(self) -> PolicyAnswer:
        """Return the answer for the door."""
        return PolicyAnswer(allow=self.allow, reasons=self.reasons, obligations=self.obligations.understood())


class WireAnswers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of `data.gateway.decisions`."""

    decisions: tuple[WireAnswer, ...]
    valid_until: datetime | msgspec.UnsetType = msgspec.UNSET
    revision: str | msgspec.UnsetType = msgspec.UNSET

    def understood(self) -> PolicyAnswers:
        """Return the answers for the door."""
        return PolicyAnswers(
            decisions=tuple(answer.understood() for answer in self.decisions),
            valid_until=None if self.valid_until is msgspec.UNSET else self.valid_until,
            revision=None if self.revision is msgspec.UNSET else self.revision,
        )


class Decided(msgspec.Struct, frozen=True):
    """The body of OPA's answer; `result` is missing when the policies are undefined for the input."""

    result: WireAnswers | msgspec.UnsetType = msgspec.UNSET


class FailurePlace(msgspec.Struct, frozen=True):
    """A line of a policy."""

    file: str
    row: int


class EvaluationError(msgspec.Struct, frozen=True):
    """One error in the evaluation of the policies."""

    code: str
    location: FailurePlace


class Failed(msgspec.Struct, frozen=True):
    """The body of OPA's answer when the evaluation failed."""

    errors: tuple[EvaluationError, ...]
