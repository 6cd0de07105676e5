# SPDX-License-Identifier: Apache-2.0
"""Decide from OPA's explanation whether its partial evaluation of the guardrails for one caller can be trusted.

The explanation is OPA's trace of the evaluation. In the evaluation (`policies/gateway/residual.rego`), the caller is
known; the circumstances and the questions are unknown. If nothing but the first member of `speaks` is left, no
guardrail can deny a question of this caller or add an obligation. A response that is not exactly of this form proves
nothing.

Partial evaluation alone is no proof that a decision would have the same result. It differs from a decision in these
ways:

- It treats an error of a built-in function as false. The explanation has such a failure only as a failed expression. A
  failure of a function that may raise an error is therefore not accepted. Rules of the package `gateway.residual`
  contain such a failure at their end, so that the gateway sees that evaluation got there.
- It drops an expression that cannot be true by its types. Below `with` it does so in a function without a trace.
- It looks up a known key in an object or a set whose keys or elements are unknown, and finds nothing.
- It does not notice that a function, or a rule, has two values.
- It ignores an error below `not`.

Therefore every evaluated expression and the head of every evaluated rule must have a form that is known to be evaluated
correctly. A form that is not listed here is not accepted.

One difference is accepted: an error of a built-in function or an object comprehension that depends on the question, in
a rule that cannot apply to the caller for another reason. A decision with this error fails, although nothing is denied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gateway.access.decisions.policy import PolicyActor

#: Operators that accept all values and never raise an error.
_TOTAL: Final = frozenset(
    {
        *("eq", "equal", "neq", "lt", "lte", "gt", "gte", "internal.member_2", "internal.member_3", "type_name"),
        *(f"is_{kind}" for kind in ("array", "boolean", "null", "number", "object", "set", "string")),
    }
)

#: The types of a term that is an expression by itself and calls no function.
_PLAIN_TERMS: Final = frozenset({"ref", "var", "boolean", "null", "number", "string"})

_CONSTANTS: Final = frozenset({"boolean", "null", "number", "string"})

#: The expression of `residual.rego` that always fails with an error. It proves that such failures are reported.
_REPORTED_ERROR: Final = [
    {"type": "ref", "value": [{"type": "var", "value": "to_number"}]},
    {"type": "string", "value": "an error that the gateway must see"},
]

#: The fields of an expression that this module understands: `terms`, `negated`, and two without effect on the meaning.
_FIELDS_OF_EXPRESSIONS: Final = frozenset({"index", "terms", "negated", "generated"})


class Event(msgspec.Struct, frozen=True):
    """One step of an evaluation."""

    op: str
    type: str
    query_id: int = 0
    parent_id: int = 0
    node: msgspec.Raw = msgspec.Raw(b"null")


class _Expression(msgspec.Struct, frozen=True):
    index: int = 0
    terms: Any = None
    negated: bool = False


class _Head(msgspec.Struct, frozen=True):
    value: Any = None


class _Rule(msgspec.Struct, frozen=True):
    head: _Head


_expressions = msgspec.json.Decoder(_Expression)
_rules = msgspec.json.Decoder(_Rule)
_nodes = msgspec.json.Decoder(Any)


def is_trustworthy(events: list[Event]) -> bool:
    """Return True if every step was evaluated as a decision would evaluate it, and errors of built-in functions are
    reported.

    Raises msgspec.DecodeError for a malformed event.
    """
    return (
        _failures_are_harmless(events)
        and _forms_are_known(events)
        and not _error_was_ignored(events)
        and not _value_may_conflict(events)
    )


def _failures_are_harmless(events: Iterable[Event]) -> bool:
    """Return True if errors of built-in functions are reported, and only the expected failure can be one."""
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
    """Return True for an expression that is not a call, or that calls a rule or an operator that never raises an
    error.
    """
    match terms:
        case {"type": kind}:
            return kind in _PLAIN_TERMS
        case [{"type": "ref", "value": [{"type": "var", "value": "data"}, *_]}, *_]:
            return True
        case [{"type": "ref", "value": list(parts)}, *_]:
            return ".".join(str(part.get("value")) for part in parts) in _TOTAL
    return False


def _forms_are_known(events: Iterable[Event]) -> bool:
    """Return True if each evaluated expression, and the head of each evaluated rule, has an accepted form."""
    evaluated = {bytes(event.node) for event in events if event.op == "eval"}
    entered = {bytes(event.node) for event in events if event.op == "enter" and event.type == "rule"}
    return all(_is_known_expression(_nodes.decode(node)) for node in evaluated) and all(
        _is_known_head(_nodes.decode(node)) for node in entered
    )


def _is_known_head(rule: Any) -> bool:
    match rule:
        case {"head": {"ref": list(ref), **head}}:
            terms: list[Any] = [*ref, *(head[part] for part in ("key", "value") if part in head)]
            arguments = head.get("args", [])
            return isinstance(arguments, list) and all(map(_is_known_term, [*terms, *arguments]))
    return False


def _is_known_expression(expression: Any) -> bool:
    """Return True for an expression without `with` that is a call, a term or `every`."""
    if not isinstance(expression, dict) or expression.keys() - _FIELDS_OF_EXPRESSIONS:
        return False
    match expression.get("terms"):
        case list(terms):
            return all(map(_is_known_term, terms))
        case {"type": _} as term:
            return _is_known_term(term)
        case {"domain": domain, "body": list(body), "key": _, "value": _, **more} if not more:
            return _is_known_term(domain) and all(map(_is_known_expression, body))
    return False


def _is_known_term(term: Any) -> bool:
    match term:
        case {"type": str(kind)} if kind in _CONSTANTS or kind == "var":
            return True
        case {"type": "ref" | "array", "value": list(parts)}:
            return all(map(_is_known_term, parts))
        case {"type": "set", "value": list(elements)}:
            return all(map(_is_constant, elements))
        case {"type": "object", "value": list(pairs)}:
            return all(_is_constant(key) and _is_known_term(value) for key, value in pairs)
        case {"type": "arraycomprehension" | "setcomprehension", "value": {"term": head, "body": list(body)}}:
            return _is_known_term(head) and all(map(_is_known_expression, body))
        case {"type": "objectcomprehension", "value": {"key": key, "value": value, "body": list(body)}}:
            return _is_known_term(key) and _is_known_term(value) and all(map(_is_known_expression, body))
    return False


def _is_constant(term: Any) -> bool:
    match term:
        case {"type": str(kind)} if kind in _CONSTANTS:
            return True
        case {"type": "array" | "set", "value": list(parts)}:
            return all(map(_is_constant, parts))
        case {"type": "object", "value": list(pairs)}:
            return all(_is_constant(key) and _is_constant(value) for key, value in pairs)
    return False


def _error_was_ignored(events: Iterable[Event]) -> bool:
    """Return True if an expression neither ended nor failed, because an error stopped its evaluation."""
    open_: set[tuple[int, int]] = set()
    for event in events:
        if event.type != "expr" or event.op not in ("eval", "redo", "fail"):
            continue
        expression = _expressions.decode(event.node)
        if expression.negated:
            # A negated expression that succeeds has no end event. The expressions inside of it have one.
            continue
        at = (event.query_id, expression.index)
        if event.op != "eval":
            open_.discard(at)
        elif at in open_:
            return True
        else:
            open_.add(at)
    return bool(open_)


def _value_may_conflict(events: Iterable[Event]) -> bool:
    """Return True if a function or a rule may have two values in one call.

    A decision with such a conflict would fail.
    """
    calls = _Calls()
    values: dict[int, Any] = {}
    for event in events:
        call = calls.of(event)
        if event.op != "exit" or event.type != "rule":
            continue
        value = _rules.decode(event.node).head.value
        if value is None:
            # A rule with `contains` defines a set and not one value.
            continue
        if call is None or (call in values and not (_is_constant(value) and values[call] == value)):
            return True
        values[call] = value
    return False


class _Calls:
    """Assigns the events of rules to numbered calls.

    A call begins with the event `index` of the calling query. Its rules are evaluated in turn. Between `exit` and
    `redo` of one rule, the calling query continues, perhaps with other calls.
    """

    def __init__(self) -> None:
        self._begun: set[int] = set()
        self._latest: dict[int, int] = {}
        self._by_evaluation: dict[int, int] = {}
        self._number = 0

    def of(self, event: Event) -> int | None:
        """Return the number of the call to which the event of a rule belongs; None if it is not known."""
        caller = event.parent_id
        if event.op == "index":
            self._begun.add(event.query_id)
        elif event.type == "rule" and event.op == "enter":
            if caller in self._begun:
                self._begun.discard(caller)
                self._number += 1
                self._latest[caller] = self._number
            if caller in self._latest:
                self._by_evaluation[event.query_id] = self._latest[caller]
        elif event.type == "rule" and event.op == "redo" and event.query_id in self._by_evaluation:
            self._begun.discard(caller)
            self._latest[caller] = self._by_evaluation[event.query_id]
        return self._by_evaluation.get(event.query_id)


PATH: Final = "/v1/compile?explain=full"

#: `policies/system/authz.rego` permits only requests with this query and these unknowns.
_QUERY: Final = "data.gateway.residual.speaks[x]"
_UNKNOWNS: Final = ("input.context", "input.questions")

#: The response contains each step of the evaluation, and values of policy data. A longer response would cost more than
#: the proof saves.
MAX_BYTES: Final = 4 << 20

_REVISION_PREFIX: Final = "revision "
_UNKNOWN_RULES: Final = "unknown"


class Proof(msgspec.Struct, frozen=True):
    """A proof that no guardrail can restrict a caller: the hashes of the rules and of the policy data.

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
    """Return the proof if the only query that remains is `x = "revision …"`, else None."""
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
