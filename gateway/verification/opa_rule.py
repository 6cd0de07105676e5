# SPDX-License-Identifier: Apache-2.0
"""Query a rule of the package `lakegate.changes` in OPA for its verdict on a change.

The rule is an object `{"verdict": ..., "reasons": [...]}`. An undefined rule, another value and an error of the policy
count as failures, and a failure never approves. The reason is that a caller can provoke an error, for example two
verdicts for one change.
"""

from __future__ import annotations

import ssl
from typing import Final

import msgspec

from gateway.verification.builtin.rule import Concern
from gateway.verification.port import ChangeKind, ProposedChange, Verdict
from gateway.verification.webhook import EVERY_CHANGE
from gateway.verification.wire import (
    Answer,
    ErrorStatus,
    JsonPost,
    Question,
    RefusedByRule,
    encoded,
    question_of,
    refuse_repeated_members,
    understood,
)

# The package is a constant and the rule is one name, so that no setting reaches another decision. Without
# `strict-builtin-errors`, an error of a built-in function would only remove one reason, and the other reasons could
# approve.
_PATH: Final = "/v1/data/lakegate/changes/{rule}?strict-builtin-errors=true"

# OPA's status for errors of built-in functions and for conflicts, such as two values of one rule.
_EVALUATION_FAILED: Final = 500


class _Input(msgspec.Struct, frozen=True):
    input: Question


class _Result(msgspec.Struct, frozen=True):
    """A response of OPA's data API. OPA adds fields such as `decision_id`."""

    result: Answer | msgspec.UnsetType = msgspec.UNSET


class OpaRule:
    """A verifier that is a rule in OPA. `rule` is the rule's name: letters, digits and `_`. `token` is the gateway's
    token.
    """

    def __init__(
        self,
        name: str,
        endpoint: str,
        rule: str,
        *,
        token: str | None,
        timeout: float,
        connections: int,
        concern: Concern = EVERY_CHANGE,
        documents: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if not (rule.isascii() and rule.isidentifier()):
            raise ValueError(f"{rule!r} is no name of a rule in Rego")
        self._name = name
        self._concern = concern
        self._documents = documents
        self._post = JsonPost(
            endpoint.rstrip("/") + _PATH.format(rule=rule),
            timeout=timeout,
            connections=connections,
            headers={"Authorization": f"Bearer {token}"} if token else None,
            tls=tls,
        )

    @property
    def name(self) -> str:
        """Return the name in the settings."""
        return self._name

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True if, by the settings, changes of this kind on this type of objects are sent to the rule."""
        return self._concern.covers(change_kind, object_type)

    async def verify(self, change: ProposedChange) -> Verdict:
        """Return the verdict of the rule.

        Raises RefusedByRule, InvalidAnswer, QuestionTooLarge, TimeoutError, and the errors of the connection.
        """
        try:
            body = await self._post(encoded(_Input(question_of(change, documents=self._documents))))
        except ErrorStatus as error:
            if error.status == _EVALUATION_FAILED:
                raise RefusedByRule("OPA cannot evaluate the rule for this change") from error
            raise
        refuse_repeated_members(body)
        try:
            found = msgspec.json.decode(body, type=_Result, strict=True).result
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise RefusedByRule("the rule has not the form of a verdict") from None
        if isinstance(found, msgspec.UnsetType):
            raise RefusedByRule("the rule is undefined for this change")
        return understood(found)

    async def close(self) -> None:
        """Close the connections."""
        await self._post.close()
