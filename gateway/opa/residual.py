# SPDX-License-Identifier: Apache-2.0
"""Read OPA's partial evaluation of the guardrails for one caller (`policies/gateway/residual.rego`).

The caller is known, the circumstances and the questions are unknown. If nothing but the first member of `speaks` is
left, no guardrail can deny a question of this caller or add an obligation. A response that is not exactly of this form
proves nothing.

Partial evaluation alone is no proof. It treats an error of a built-in function as false, although such an error fails
a decision. It also drops each expression that cannot be true by its types, even below `not`. The gateway therefore
reads the expressions that failed (`explain=fails`). A failure of a function that may raise an error proves nothing.
Rules of the package contain such a failure at their end, so that the gateway sees that evaluation got there.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gateway.access.policy import PolicyActor

PATH: Final = "/v1/compile?explain=fails"

#: The pinned parts of the request. `policies/system/authz.rego` refuses any other.
_QUERY: Final = "data.gateway.residual.speaks[x]"
_UNKNOWNS: Final = ("input.context", "input.questions")

#: The response contains values of policy data. A longer one would cost more than it saves.
MAX_BYTES: Final = 1 << 20

_REVISION_PREFIX: Final = "revision "
_UNKNOWN_RULES: Final = "unknown"

#: Operators that accept all values and never raise an error.
_TOTAL: Final = frozenset(
    {
        *("eq", "equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3", "type_name"),
        *(f"is_{kind}" for kind in ("array", "boolean", "null", "number", "object", "set", "string")),
    }
)

#: The types of a term that is an expression by itself and calls no function.
_PLAIN_TERMS: Final = frozenset({"ref", "var", "boolean", "null", "number", "string"})

#: The expression of `residual.rego` that always fails with an error. It proves that such failures are reported.
_REPORTED_ERROR: Final = [
    {"type": "ref", "value": [{"type": "var", "value": "to_number"}]},
    {"type": "string", "value": "an error that the gateway must see"},
]


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


class _Expression(msgspec.Struct, frozen=True):
    terms: Any = None


class _Event(msgspec.Struct, frozen=True):
    op: str
    type: str
    node: msgspec.Raw = msgspec.Raw(b"null")


class _Residue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    queries: list[Any]


class _Compiled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    result: _Residue
    explanation: list[_Event]


_decoder = msgspec.json.Decoder(_Compiled)
_expressions = msgspec.json.Decoder(_Expression)


def compile_request(actor: PolicyActor) -> bytes:
    """Return the body of the request that evaluates the guardrails for this caller."""
    return msgspec.json.encode(_Question(_QUERY, _Input(actor), _UNKNOWNS))


def proof_in(body: bytes) -> Proof | None:
    """Return the proof in OPA's response; None if the response proves nothing."""
    try:
        compiled = _decoder.decode(body)
        proof = _only_the_revision(compiled.result.queries)
        return proof if proof is not None and _failures_are_harmless(compiled.explanation) else None
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


def _failures_are_harmless(events: list[_Event]) -> bool:
    """Return True if errors of built-in functions are reported, and none but the expected one can be among these."""
    reported = False
    for event in events:
        if event.op != "fail" or event.type == "rule":
            continue
        if event.type != "expr":
            return False
        terms = _expressions.decode(event.node).terms
        if terms == _REPORTED_ERROR:
            reported = True
        elif not _never_raises(terms):
            return False
    return reported


def _never_raises(terms: Any) -> bool:
    """Return True for an expression without a call, a call of a rule, or a call of an operator that never raises."""
    match terms:
        case {"type": kind}:
            return kind in _PLAIN_TERMS
        case [{"type": "ref", "value": [{"type": "var", "value": "data"}, *_]}, *_]:
            return True
        case [{"type": "ref", "value": list(parts)}, *_]:
            return ".".join(str(part.get("value")) for part in parts) in _TOTAL
    return False
