# SPDX-License-Identifier: Apache-2.0
"""The steps of a partial evaluation that make its result untrustworthy."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gateway.opa.explanation import Event, is_trustworthy
from tests.support.policies.opa_questions import REPORTED, X, call, text

Y = {"type": "var", "value": "y"}
NUMBER = {"type": "number", "value": 1}
INPUT = {"type": "ref", "value": [{"type": "var", "value": "input"}, text("actor")]}


def event(op: str, kind: str, node: Any, query: int = 5, parent: int = 4) -> dict[str, Any]:
    return {"op": op, "query_id": query, "parent_id": parent, "type": kind, "locals": [], "node": node}


def evaluated(terms: Any, **more: Any) -> list[dict[str, Any]]:
    node = {"index": 0, "terms": terms, **more}
    return [event("eval", "expr", node), event("redo", "expr", node)]


def rule(value: Any, name: str = "_f", **head: Any) -> dict[str, Any]:
    given = {} if value is None else {"value": value}
    return {"head": {"name": name, "ref": [{"type": "var", "value": name}], **given, **head}, "body": []}


def trusted(*events: Any) -> bool:
    return is_trustworthy(msgspec.json.decode(json.dumps([REPORTED, *events]).encode(), type=list[Event]))


def array(*parts: Any) -> dict[str, Any]:
    return {"type": "array", "value": list(parts)}


def collection(*parts: Any) -> dict[str, Any]:
    return {"type": "set", "value": list(parts)}


def mapping(*pairs: Any) -> dict[str, Any]:
    return {"type": "object", "value": [list(pair) for pair in pairs]}


def comprehension(kind: str, *body: Any) -> dict[str, Any]:
    value = {"key": X, "value": X} if kind == "object" else {"term": X}
    return {"type": f"{kind}comprehension", "value": {**value, "body": [{"index": 0, "terms": each} for each in body]}}


KNOWN = [
    X,
    NUMBER,
    INPUT,
    array(X, INPUT),
    collection(text("a"), array(NUMBER)),
    mapping((text("a"), X)),
    mapping((array(NUMBER), mapping())),
    comprehension("set", call("eq", X, Y)),
    comprehension("array", call("eq", X, Y)),
    comprehension("object", call("eq", X, Y)),
]
UNKNOWN = [
    collection(X),
    collection(array(X)),
    mapping((X, text("a"))),
    mapping((array(INPUT), text("a"))),
    array(mapping((X, text("a")))),
    mapping((text("a"), collection(X))),
    comprehension("set", call("eq", X, collection(Y))),
    comprehension("object", call("eq", X, mapping((Y, Y)))),
    {"type": "templatestring", "value": []},
    {"type": "call", "value": []},
]


@pytest.mark.parametrize("term", KNOWN)
def test_known_forms_are_trusted(term: Any) -> None:
    assert trusted(*evaluated(call("eq", X, term)))
    assert trusted(event("enter", "rule", rule(term, key=term, args=[term])))
    assert trusted(*evaluated({"domain": term, "key": X, "value": Y, "body": [{"index": 0, "terms": term}]}))


@pytest.mark.parametrize("term", UNKNOWN)
def test_other_forms_are_not_trusted(term: Any) -> None:
    assert not trusted(*evaluated(call("eq", X, term)))
    assert not trusted(event("enter", "rule", rule(term)))
    assert not trusted(event("enter", "rule", rule(X, key=term)))
    assert not trusted(event("enter", "rule", rule(X, args=[term])))
    assert not trusted(*evaluated({"domain": term, "key": X, "value": Y, "body": []}))
    assert not trusted(*evaluated({"domain": X, "key": X, "value": Y, "body": [{"index": 0, "terms": term}]}))


@pytest.mark.parametrize(
    "node",
    [
        {"index": 0, "terms": X, "with": []},
        {"index": 0, "terms": X, "new": True},
        {"index": 0},
        {"index": 0, "terms": {"body": [], "explicit_body": True}},
        {"index": 0, "terms": {"lhs": [], "rhs": []}},
        [],
        None,
    ],
)
def test_other_expressions_are_not_trusted(node: Any) -> None:
    assert not trusted(event("eval", "expr", node))


def test_an_evaluation_without_an_end_is_an_error() -> None:
    node = {"index": 0, "terms": INPUT}
    begin, end, failure = (event(op, "expr", node) for op in ("eval", "redo", "fail"))
    assert trusted(begin, end, end, begin, failure, begin, end)
    assert not trusted(begin)
    assert not trusted(begin, begin, end)
    assert not trusted(begin, {**end, "query_id": 6})
    assert not trusted(begin, event("redo", "expr", {**node, "index": 1}))
    assert trusted(event("eval", "expr", {**node, "negated": True}))


CALL = event("index", "expr", {"index": 0, "terms": X}, query=4, parent=0)


def evaluation(value: Any, query: int, *inner: Any) -> list[dict[str, Any]]:
    """Return the events of one rule of a call in query 4; the query continues with the events `inner`."""
    begin, end, again = (event(op, "rule", rule(value), query=query) for op in ("enter", "exit", "redo"))
    return [begin, end, *inner, again]


def test_two_values_of_a_call_are_a_conflict() -> None:
    one, other, unknown = NUMBER, text("a"), X
    assert trusted(CALL, *evaluation(one, 5), *evaluation(one, 6))
    assert not trusted(CALL, *evaluation(one, 5), *evaluation(other, 6))
    assert not trusted(CALL, *evaluation(one, 5), *evaluation(unknown, 6))
    assert not trusted(CALL, *evaluation(unknown, 5), *evaluation(unknown, 6))
    assert not trusted(CALL, *evaluation(one, 5), event("exit", "rule", rule(other), query=5)), "a second solution"
    failed = event("enter", "rule", rule(one), query=7)
    assert not trusted(CALL, *evaluation(one, 5), failed, *evaluation(other, 6))
    assert not trusted(event("exit", "rule", rule(one), query=5)), "its call is unknown"


def test_values_of_different_calls_are_no_conflict() -> None:
    one, other = NUMBER, text("a")
    assert trusted(CALL, *evaluation(one, 5), CALL, *evaluation(other, 6))
    inner = [CALL, *evaluation(other, 6)]
    assert trusted(CALL, *evaluation(one, 5, *inner), *evaluation(one, 7, *inner))
    assert not trusted(CALL, *evaluation(one, 5, *inner), *evaluation(other, 7, *inner))
    several = event("enter", "rule", rule(None, key=X)), event("exit", "rule", rule(None, key=X))
    assert trusted(CALL, *several, *several)
