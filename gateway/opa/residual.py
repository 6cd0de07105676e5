# SPDX-License-Identifier: Apache-2.0
"""Read OPA's partial evaluation of the guardrails for one caller (`policies/gateway/residual.rego`).

The caller is known, the circumstances and the questions are unknown. If nothing but the first member of `speaks` is
left, no guardrail can deny a question of this caller or add an obligation. A response that is not exactly of this form
proves nothing.

Partial evaluation alone is no proof. The gateway therefore reads how OPA got there, too (`explanation`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gateway.access.decisions.policy import PolicyActor
from gateway.opa.explanation import Event, is_trustworthy

PATH: Final = "/v1/compile?explain=full"

#: The pinned parts of the request. `policies/system/authz.rego` refuses any other.
_QUERY: Final = "data.gateway.residual.speaks[x]"
_UNKNOWNS: Final = ("input.context", "input.questions")

#: The response contains each step of the evaluation, and values of policy data. A longer one would cost more than it
#: saves.
MAX_BYTES: Final = 4 << 20

_REVISION_PREFIX: Final = "revision "
_UNKNOWN_RULES: Final = "unknown"


class Proof(msgspec.Struct, frozen=True):
    """A proof that no guardrail can speak about a caller: the hashes of the rules and of the policy data.

    `rules` is None if OPA has no bundles: the revision of its rules is unknown in a partial evaluation.
    """

    rules: str | None
    data: str

    def is_of(self, revision: str) -> bool:
        """Return True if the proof does not contradict the revision that OPA returned."""
        rules, _, data = revision.partition(".")
        return self.data == data and self.rules in (rules, None)


class _Input(msgspec.Struct, frozen=True):
    actor: PolicyActor


class _Question(msgspec.Struct, frozen=True):
    query: str
    input: _Input
    unknowns: tuple[str, ...]


class _Residue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    queries: list[Any]


class _Compiled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    result: _Residue
    explanation: list[Event]


_decoder = msgspec.json.Decoder(_Compiled)


def compile_request(actor: PolicyActor) -> bytes:
    """Return the body of the request that evaluates the guardrails for this caller."""
    return msgspec.json.encode(_Question(_QUERY, _Input(actor), _UNKNOWNS))


def proof_in(body: bytes) -> Proof | None:
    """Return the proof in OPA's response; None if the response proves nothing."""
    try:
        compiled = _decoder.decode(body)
        proof = _only_the_revision(compiled.result.queries)
        return proof if proof is not None and is_trustworthy(compiled.explanation) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _only_the_revision(queries: list[Any]) -> Proof | None:
    """Return the proof if the only remaining query is `x = "revision …"`."""
    match queries:
        case [
            [
                {
                    "index": 0,
                    "terms": [
                        {"type": "ref", "value": [{"type": "var", "value": "eq"}]},
                        {"type": "var", "value": "x"},
                        {"type": "string", "value": str(value)},
                    ],
                    **more,
                }
            ]
        ] if not more and value.startswith(_REVISION_PREFIX):
            rules, _, data = value.removeprefix(_REVISION_PREFIX).partition(".")
            if rules and data:
                return Proof(None if rules == _UNKNOWN_RULES else rules, data)
    return None
