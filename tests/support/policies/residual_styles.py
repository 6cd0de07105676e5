# SPDX-License-Identifier: Apache-2.0
"""Guardrails in many styles of Rego, callers, and requests, to compare partial with full evaluation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.access.decisions.policy import PolicyActor

_NO = '{"code": "no", "message": "No."}'
_EACH = "some index, question in input.questions\n"


@dataclass(frozen=True)
class Style:
    """A guardrail. `silent_for` are the ids of callers for which partial evaluation must prove silence."""

    text: str
    silent_for: frozenset[str] = frozenset()
    package: str = "gateway.guardrails.style"

    @property
    def module(self) -> str:
        """Return the module."""
        return f"package {self.package}\n\n{self.text}\n"


def denies(condition: str, more: str = "", *, silent_for: str = "") -> Style:
    """Return a guardrail that denies each question that meets the condition."""
    return Style(f"denials[index] contains {_NO} if {{\n{_EACH}{condition}\n}}\n{more}", frozenset(silent_for.split()))


def obliges(condition: str, more: str = "", *, silent_for: str = "") -> Style:
    """Return a guardrail that obliges each question that meets the condition."""
    text = f'obligations[index] contains {{"no_vending": true}} if {{\n{_EACH}{condition}\n}}\n{more}'
    return Style(text, frozenset(silent_for.split()))


def rules(text: str, *, silent_for: str = "") -> Style:
    """Return a guardrail with these rules."""
    return Style(text, frozenset(silent_for.split()))


_IS_BOB = 'input.actor.id == "bob"'
_OTHERS = "alice carol dan"

STYLES: dict[str, Style] = {
    "the caller": denies(_IS_BOB, silent_for=_OTHERS),
    "the caller after the question": denies(f'question.operation == "drop_table"; {_IS_BOB}', silent_for=_OTHERS),
    "the caller before the question": rules(
        f"denials[index] contains {_NO} if {{ {_IS_BOB}; some index, _ in input.questions }}", silent_for=_OTHERS
    ),
    "the question only": denies('question.operation == "drop_table"'),
    "iteration over roles": denies('some role in input.actor.roles; role == "r1"', silent_for="alice dan"),
    "iteration over facts": denies('some name, _ in question.facts; name == "purge"'),
    "iteration with a variable key": denies('question[key] == "drop_table"; key != "x"'),
    "iteration over the input": denies('some key, _ in input; key == "questions"'),
    "iteration over keys of the input": denies('input[key]; key == "context"'),
    "a variable path": denies('input[part].user_agent == "spark"; part != "x"'),
    "a whole input": denies("is_object(input); count(input) > 2"),
    "a walk over the question": denies('walk(question, [_, value]); value == "drop_table"'),
    "a walk over the input": denies('walk(input, [_, value]); value == "drop_table"'),
    "a walk over the caller": denies('walk(input.actor, [_, value]); value == "r1"', silent_for="alice dan"),
    "a function of the question": denies(
        "_drops(question)", '_drops(asked) if asked.operation == "drop_table"\n_drops(asked) if asked.facts.purge'
    ),
    "a function of caller and question": denies(
        "_bad(input.actor, question)",
        '_bad(actor, asked) if { asked.operation == "drop_table"; actor.id == "bob" }',
        silent_for=_OTHERS,
    ),
    "a function with a result": denies(
        '_kind(input.actor) == "odd"', '_kind(actor) := "odd" if actor.id == "bob"\nelse := "even"', silent_for=_OTHERS
    ),
    "a function of the input": denies("_seen(input)", '_seen(given) if given.questions[_].operation == "drop_table"'),
    "object.get of the input": denies('object.get(input, ["context", "user_agent"], "x") == "spark"'),
    "object.get of a question": denies('object.get(question, "operation", "") == "drop_table"'),
    "object.get of a caller": denies('object.get(input.actor, "engine", null) == "trino"', silent_for="alice bob dan"),
    "object.get of an unknown default": denies(
        'object.get(input.actor, "nothing", question.operation) == "drop_table"'
    ),
    "not the question": denies('not question.operation == "load_table"'),
    "not the caller": denies('not input.actor.id in {"alice", "carol", "dan"}', silent_for=_OTHERS),
    "not a rule of the caller": denies("not _known", '_known if input.actor.id != "bob"', silent_for=_OTHERS),
    "not a rule of the question": denies("not _load", '_load if input.questions[_].operation == "load_table"'),
    "not a rule of the question and the caller": denies(
        "not _load", f'_load if {{ input.questions[_].operation == "load_table"; {_IS_BOB} }}'
    ),
    "not not": denies(
        "not _fine", "_fine if not _odd\n_odd if { input.questions[_].facts.purge; input.actor.assumed_role == null }"
    ),
    "not not not": denies(
        "not _a", '_a if not _b\n_b if not _c\n_c if { some q in input.questions; lower(q.operation) == "load_table" }'
    ),
    "a missing field of the caller": denies('not input.actor.nothing == "x"'),
    "a missing field of the context": denies('not input.context.nothing == "x"'),
    "every question": denies('every each in input.questions { each.operation != "load_table" }'),
    "every role": denies('every role in input.actor.roles { role == "r1" }'),
    "every role and question": denies("every role in input.actor.roles { question.facts.role == role }"),
    "not every": denies("not _all", "_all if { every each in input.questions { not each.facts.purge } }"),
    "a default rule": denies("_flag", f"default _flag := false\n_flag if {_IS_BOB}", silent_for=_OTHERS),
    "a default rule that is true": denies("_flag", 'default _flag := true\n_flag := false if input.actor.id != "bob"'),
    "a default rule of the question": denies(
        "_flag", 'default _flag := true\n_flag := false if input.questions[_].operation == "load_table"'
    ),
    "a default function": denies(
        "_flag(question)", 'default _flag(_) := true\n_flag(asked) := false if asked.operation == "load_table"'
    ),
    "else": denies(
        '_level == "high"', f'_level := "low" if input.context.user_agent == "spark"\nelse := "high" if {_IS_BOB}'
    ),
    "else of the question": denies(
        '_level == "high"', '_level := "low" if input.questions[_].operation == "load_table"\nelse := "high"'
    ),
    "a comprehension over questions": denies('"drop_table" in {each.operation | some each in input.questions}'),
    "an empty comprehension over questions": denies(
        'count([each | some each in input.questions; each.operation == "load_table"]) == 0'
    ),
    "a comprehension over roles": denies('count({role | some role in input.actor.roles; role == "r1"}) > 0'),
    "a comprehension of objects": denies("{k: v | some k, v in question.facts}.purge == true"),
    "a partial object": denies(
        "_by_operation[question.operation]", '_by_operation[name] := true if some name in ["drop_table", "commit"]'
    ),
    "a partial object of the question": denies(
        '_by_type.table == "drop_table"',
        "_by_type[each.resource.type] := each.operation if some each in input.questions",
    ),
    "a partial set": denies("question.operation in _bad", f'_bad contains "drop_table" if {_IS_BOB}'),
    "a partial set of the question": denies(
        '"drop_table" in _asked', "_asked contains each.operation if some each in input.questions"
    ),
    "counting questions": denies("count(input.questions) > 1"),
    "counting roles": denies("count(input.actor.roles) > 1", silent_for="alice carol dan"),
    "the clock of OPA": denies("time.now_ns() > 0"),
    "the clock of OPA and the caller": denies(f"time.now_ns() > 0; {_IS_BOB}", silent_for=_OTHERS),
    "not the clock of OPA": denies("not time.now_ns() < 0"),
    "the time of the input": denies("time.parse_rfc3339_ns(input.context.time) > 0"),
    "a refused call": denies(
        'http.send({"method": "GET", "url": "http://127.0.0.1:9/", "raise_error": false}).status_code != 200'
    ),
    "not a refused call": denies(
        'not http.send({"method": "GET", "url": "http://127.0.0.1:9/", "raise_error": false}).status_code == 200'
    ),
    "the environment": denies('opa.runtime().env.LAKEGATE_STYLE == "on"'),
    "not the environment": denies('not opa.runtime().env.LAKEGATE_STYLE == "off"'),
    "a random number": denies('rand.intn("x", 3) >= 0'),
    "set operations": denies('count({"r1", "r9"} & {r | some r in input.actor.roles}) > 0'),
    "set operations with the question": denies('{"drop_table"} - {question.operation} == set()'),
    "array operations": denies('array.concat([question.operation], input.actor.roles)[_] == "drop_table"'),
    "object operations": denies('object.union(input.actor, question).operation == "drop_table"'),
    "object keys": denies('"operation" in object.keys(question)'),
    "json.filter": denies('json.filter(input, ["questions"]).questions[0].operation == "drop_table"'),
    "json.marshal of the input": denies('contains(json.marshal(input), "drop_table")'),
    "a text of caller and question": denies(
        'sprintf("%s/%s", [input.actor.id, question.operation]) == "bob/drop_table"'
    ),
    "text operators of the caller": denies('startswith(input.actor.id, "bo")'),
    "a glob of the caller": denies('glob.match("b*", [], input.actor.id)'),
    "a regular expression of the caller": denies('regex.match("^b", input.actor.id)'),
    "with another question": denies(
        '_drops with input.questions as [{"operation": "drop_table"}]',
        '_drops if input.questions[_].operation == "drop_table"',
    ),
    "with another caller": denies('_bob with input.actor as {"id": "bob"}', f"_bob if {_IS_BOB}"),
    "with another context": denies(
        '_spark with input.context.user_agent as "spark"', '_spark if input.context.user_agent == "spark"'
    ),
    "policy data": denies("input.actor.id in data.policy_data.contractors.users", silent_for="alice bob carol dan"),
    "policy data by question": denies("data.policy_data[question.facts.role]"),
    "missing policy data": denies("data.policy_data.nothing[input.actor.id]", silent_for="alice bob carol dan"),
    "not missing policy data": denies("not data.policy_data.nothing[input.actor.id]"),
    "another package": denies("data.gateway.guardrails.credentials.steady == question.facts.purge"),
    # Partial evaluation drops these: a text is compared with null below `not`, or given to a function of texts.
    "not of another type": denies("role := lower(question.facts.role); not input.actor.assumed_role == role"),
    "not of another type in a rule": denies(
        "_differs(question)",
        "_differs(asked) if { role := lower(asked.facts.role); not input.actor.assumed_role == role }",
    ),
    "not not of another type": denies(
        "not _same",
        "_same if { some q in input.questions; role := lower(q.facts.role); not input.actor.engine == role }",
    ),
    "not not not of another type": denies(
        "not _a",
        "_a if not _b\n"
        "_b if { some q in input.questions; role := lower(q.facts.role); not input.actor.engine == role }",
    ),
    "unequal of another type": denies("input.actor.assumed_role != lower(question.facts.role)"),
    # Partial evaluation does not find a known key in an object with unknown keys.
    "an object with a key of the question": denies('{question.operation: true}["drop_table"]'),
    "an object in a variable": denies('names := {question.operation: true}; names["drop_table"]'),
    "an object below an object": denies('names := {"a": {question.operation: true}}; names.a.drop_table'),
    "an object in a list": denies("names := [{question.operation: true}]; some each in names; each.drop_table"),
    "an object in a rule": denies("_names.drop_table", "_names := {input.questions[0].operation: true}"),
    "an object of a function": denies("_names(question).drop_table", "_names(asked) := {asked.operation: true}"),
    "an object as a pattern": denies("_drops({question.operation: 1})", '_drops({"drop_table": _})'),
    "an object that is equal": denies('{question.operation: true} == {"drop_table": true}'),
    "an object that unifies": denies('{question.operation: true} = {"drop_table": true}'),
    "a set in a list": denies('names := [{question.operation}]; names[0]["drop_table"]'),
    # It drops an expression by its types in a function below `with`, without a failure.
    "a function with other data": denies(
        "_differs(question) with data.nothing as 1",
        "_differs(asked) if { role := lower(asked.facts.role); not input.actor.assumed_role == role }",
    ),
    "a function with another context": denies(
        "_differs(question) with input.context.nothing as 1",
        "_differs(asked) if { role := lower(asked.facts.role); not input.actor.assumed_role == role }",
    ),
    # Two values are an error in a decision.
    "a function with two values": denies(
        'question.operation == "drop_table"; _level(input.actor) == 3',
        '_level(actor) := 1 if actor.kind == "user"\n_level(actor) := 2 if actor.id == "alice"',
        silent_for="bob carol dan",
    ),
    "a function with a value for each role": denies(
        'question.operation == "drop_table"; _level(input.actor) == 3',
        '_level(actor) := count(role) if some role in actor.roles\n_level(actor) := 5 if actor.id == "bob"',
        silent_for="alice carol dan",
    ),
    "a rule with two values by the question": denies(
        "_level == 3",
        '_level := 1 if input.questions[_].operation == "drop_table"\n'
        '_level := 2 if input.context.user_agent == "spark"',
    ),
    "a helper that another guardrail also has": denies(
        "input.actor.id in _known_kinds", '_known_kinds := {"bob"}', silent_for=_OTHERS
    ),
    "steady that is false": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\nsteady := false", silent_for=_OTHERS
    ),
    "an ignored error below not": denies(
        'not _low; input.actor.id == "bob"',
        '_low if { _level == "none"; input.questions[_].operation == "drop_table" }\n'
        '_level := "one" if input.actor.kind == "user"\n_level := "two" if input.actor.id == "alice"',
        silent_for="carol dan",
    ),
    # An error of a built-in function fails a decision.
    "an error of policy data": denies("time.parse_rfc3339_ns(data.policy_data.contractors.hours.timezone) > 0"),
    "an error of the caller": denies('question.operation == "drop_table"; to_number(input.actor.id) > 5'),
    "an error in a comprehension": denies("count([n | some role in input.actor.roles; n := to_number(role)]) > 0"),
    "an error in a function": denies("_number(input.actor.id) > 5", "_number(text) := to_number(text)"),
    "an error below not": denies("not _ok", "_ok if not to_number(input.actor.id) > 5"),
    "a type error of the question": denies("startswith(question.facts.role, input.actor.assumed_role)"),
    # Obligations.
    "an obligation for the caller": obliges(_IS_BOB, silent_for=_OTHERS),
    "an obligation for the question": obliges('question.operation == "load_table"'),
    "an obligation without a condition": obliges("true"),
    "a computed obligation": rules(
        f'obligations[index] contains _limit if {{ {_EACH} }}\n_limit := {{"max_credential_seconds": 60}} if {_IS_BOB}',
        silent_for=_OTHERS,
    ),
    "an unknown obligation": rules(
        f'obligations[index] contains {{"no_vendng": true}} if {{ {_EACH} {_IS_BOB} }}', silent_for=_OTHERS
    ),
    "denials and obligations": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\n"
        f'obligations[index] contains {{"append_only": true}} if {{ {_EACH} input.actor.id == "carol" }}\n'
        "steady := true",
        silent_for="alice dan",
    ),
    # Rules of another form, and faults.
    "a constant index": rules(f"denials[0] contains {_NO} if {_IS_BOB}"),
    "an index of no question": rules(f"denials[99] contains {_NO} if {_IS_BOB}"),
    "a complete rule": rules(f"denials := {{index: {{{_NO}}} | some index, q in input.questions; q.facts.purge}}"),
    "an empty complete rule": rules("denials := {}"),
    "an empty list": rules("obligations := []"),
    "a text": rules('denials := "no"'),
    "a text for one caller": rules(
        f'denials := "no" if {_IS_BOB}\n'
        f"obligations[index] contains {{}} if {{ some index, _ in input.questions; {_IS_BOB} }}",
        silent_for=_OTHERS,
    ),
    "a number by the question": rules(
        'denials := 5 if input.questions[_].operation == "drop_table"\nobligations[0] contains {} if false',
        silent_for="",
    ),
    "a number beside an empty set": rules(
        "denials := 5\nobligations[index] contains {} if { some index, _ in input.questions; false }"
    ),
    "null": rules("denials := null"),
    "an undefined complete rule": rules('denials := {} if input.questions[_].operation == "drop_table"'),
    "a default complete rule": rules("default denials := {}"),
    "a misspelt rule": rules(f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\ndenails := {{}}"),
    "a misspelt rule by the question": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\n"
        f"denial[index] contains {_NO} if {{ {_EACH} question.facts.purge }}"
    ),
    "a misspelt rule for one caller": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\nlimit := 5 if {_IS_BOB}", silent_for=_OTHERS
    ),
    "no rule": rules("steady := true\n_names := {1}"),
    "a function only": rules("_f(x) := x"),
    "a public function": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\nlate(x) := x", silent_for=_OTHERS
    ),
    "steady of another type": rules(f'denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\nsteady := "yes"'),
    "steady of another type by the question": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\nsteady := input.questions[0].operation"
    ),
    "steady by the question": rules(
        f'denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\nsteady if input.questions[0].operation == "x"',
        silent_for=_OTHERS,
    ),
    "a helper with a public rule": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\n"
        '_more[name] := true if { some name in ["denials"] }'
    ),
    "a helper with a public rule by the question": rules(
        f"denials[index] contains {_NO} if {{ {_EACH} {_IS_BOB} }}\n"
        "_more[q.operation] := true if some q in input.questions"
    ),
    "a helper package": Style(
        f"denials[index] contains {_NO} if {{ {_EACH} true }}", package="gateway.guardrails.style._more"
    ),
    "a package below": Style(
        f"denials[index] contains {_NO} if {{ {_EACH} true }}", package="gateway.guardrails.style.more"
    ),
    "a package of helpers elsewhere": Style(
        "bad if input.questions[_].facts.purge", frozenset(["alice", "bob"]), "lib.style"
    ),
    "a value in the place of a package": Style("style := 5", package="gateway.guardrails"),
}

#: The callers, by their ids.
CALLERS = {
    "alice": PolicyActor(id="alice", kind="user"),
    "bob": PolicyActor(id="bob", kind="user", roles=("r1", "r2"), assumed_role="r1", groups_known=False),
    "carol": PolicyActor(id="carol", kind="user", roles=("r1",), engine="trino", subject_proven=False),
    "dan": PolicyActor(id="dan", kind="role", assumed_role="r2", asked_by="bob"),
    "7": PolicyActor(id="7", kind="system"),
    "": PolicyActor(id="", kind="odd"),
}

_OPERATIONS = ("load_table", "drop_table", "commit", "denials", "DROP_TABLE")


def requests_of(actor: PolicyActor, source: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield requests of this caller. Questions are well-formed; everything else about them varies."""
    sent = msgspec.to_builtins(actor)
    for each in range(number):
        yield {
            "actor": sent,
            "context": {
                "request_id": str(each),
                "time": f"2026-03-0{source.randint(1, 9)}T{source.randint(10, 23)}:00:00Z",
                "user_agent": source.choice([None, "spark", "trino"]),
                "client_address": source.choice([None, "127.0.0.1"]),
            },
            "questions": [_question(source) for _ in range(source.choice([0, 1, 1, 1, 2, 3]))],
        }


def _question(source: random.Random) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if source.random() < 0.8:
        facts["role"] = source.choice(["r1", "r2", "R2", "", "contractors", "trino"])
    if source.random() < 0.5:
        facts["purge"] = source.choice([True, False])
    return {
        "operation": source.choice(_OPERATIONS),
        "resource": {
            "type": source.choice(["table", "view", "namespace"]),
            "id": source.choice([None, "t"]),
            "name": source.choice([None, "orders", "denials"]),
            "namespace": source.choice([None, ["a"], ["a", "b"]]),
        },
        "facts": facts,
    }
