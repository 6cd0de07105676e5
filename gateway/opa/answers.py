# SPDX-License-Identifier: Apache-2.0
"""The bodies of OPA's responses. Every field that limits an allow is required and must not be null.

A field that is missing, unknown or of another type invalidates the whole response: a lost obligation must not be read
as the absence of obligations.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
import structlog

from gateway.access.decisions.policy import PolicyAnswer, PolicyAnswers, Reason
from gateway.obligations.guardrails import StatedObligations, understood

_log = structlog.get_logger("opa.answers")

#: The code of denials for output of a guardrail that is not of the schema, here and in `policies/gateway/main.rego`.
_INVALID: Final = "guardrail_invalid"
#: Maximum length of a problem in a reason, in characters.
_MESSAGE: Final = 300


class WireAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to one question."""

    allow: bool
    reasons: tuple[Reason, ...]
    obligations: StatedObligations

    def understood(self) -> PolicyAnswer:
        """Convert to the answer of the door. An invalid obligation denies, as `policies/gateway/main.rego` does."""
        try:
            obligations = understood(self.obligations)
        except ValueError as invalid:
            _log.warning("guardrail.output_rejected", problem=str(invalid))
            message = f"a guardrail states an invalid obligation: {str(invalid)[:_MESSAGE]}"
            return PolicyAnswer(allow=False, reasons=(*self.reasons, Reason(code=_INVALID, message=message)))
        return PolicyAnswer(allow=self.allow, reasons=self.reasons, obligations=obligations)


class WireAnswers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of `data.gateway.decisions`."""

    decisions: tuple[WireAnswer, ...]
    valid_until: datetime | msgspec.UnsetType = msgspec.UNSET
    revision: str | msgspec.UnsetType = msgspec.UNSET

    def understood(self) -> PolicyAnswers:
        """Convert to the answers of the door."""
        return PolicyAnswers(
            decisions=tuple(answer.understood() for answer in self.decisions),
            valid_until=None if self.valid_until is msgspec.UNSET else self.valid_until,
            revision=None if self.revision is msgspec.UNSET else self.revision,
        )


class Decided(msgspec.Struct, frozen=True):
    """The body of a 200 response. `result` is absent if `data.gateway.decisions` is undefined for the input."""

    result: WireAnswers | msgspec.UnsetType = msgspec.UNSET


class FailureLocation(msgspec.Struct, frozen=True):
    """The position of an error: a file and a line of a policy."""

    file: str
    row: int


class EvaluationError(msgspec.Struct, frozen=True):
    """One error in the evaluation of the policies."""

    code: str
    location: FailureLocation


class Failed(msgspec.Struct, frozen=True):
    """The body of OPA's response to a failed evaluation."""

    errors: tuple[EvaluationError, ...]
