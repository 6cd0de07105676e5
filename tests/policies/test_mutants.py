# SPDX-License-Identifier: Apache-2.0
"""Changes that would make the policies wrong, one at a time: the tests beside the policies must notice each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

MAIN = "gateway/main.rego"
ACTORS = "gateway/guardrails/actors.rego"
QUESTIONS = "gateway/guardrails/questions.rego"
CONTRACTORS = "gateway/guardrails/contractors.rego"
CREDENTIALS = "gateway/guardrails/credentials.rego"
AUTHZ = "system/authz.rego"

REVISION = "system/revision.rego"

MUTANTS = {
    "answers last although the data says nothing": (MAIN, "\tseconds > 0\n", "\tseconds >= 0\n"),
    "answers of unsteady guardrails last": (MAIN, "\tcount(_unsteady) == 0\n", ""),
    "guardrails that only oblige need not be steady": (
        MAIN,
        "_guardrails contains name if data.gateway.guardrails[name].obligations",
        "_guardrails contains name if data.gateway.guardrails[name].nothing",
    ),
    "guardrails that deny need not be steady": (
        MAIN,
        "_guardrails contains name if data.gateway.guardrails[name].denials",
        "_guardrails contains name if data.gateway.guardrails[name].nothing",
    ),
    "the hours of contractors are steady": (CONTRACTORS, "steady if not _is_contractor", "steady := true"),
    "the data is not part of the revision": (REVISION, "[_rules, data.policy_data]", "[_rules]"),
    "the rules are not part of the revision": (REVISION, "[_rules, data.policy_data]", "[data.policy_data]"),
    "a bundle needs no revision": (REVISION, 'bundle.manifest.revision != ""', "bundle.manifest"),
    "one denial is not enough": (MAIN, "count(_reasons(index)) == 0", "count(_reasons(index)) < 2"),
    "always allow": (MAIN, '"allow": count(_reasons(index)) == 0', '"allow": true'),
    "the denial of any question counts": (MAIN, ".denials[index]", ".denials[_]"),
    "the longest life counts": (MAIN, "min(seconds)", "max(seconds)"),
    "a switch somebody leaves off is on": (MAIN, "asked[name] == true", "asked[name] in {true, false}"),
    "a switch is forgotten": (MAIN, '["append_only", "no_vending"]', '["append_only"]'),
    "the obligations of any question count": (MAIN, ".obligations[index]", ".obligations[_]"),
    "hidden operations are forgotten": (MAIN, ", _hidden_operations(index)]", "]"),
    "questions need not be a list": (MAIN, "\tis_array(input.questions)\n", ""),
    "anonymous callers are known": (ACTORS, '{"user", "role", "system"}', '{"user", "role", "system", "anonymous"}'),
    "unknown kinds pass": (ACTORS, "\tnot _known\n", "\t_known\n"),
    "an undefined kind passes": (ACTORS, "\tnot _known\n", "\tnot input.actor.kind in known_kinds\n"),
    "a blank operation passes": (QUESTIONS, 'trim_space(question.operation) != ""', 'question.operation != ""'),
    "any type of thing passes": (QUESTIONS, "question.resource.type in known_types", "question.resource.type"),
    "hours do not bind": (CONTRACTORS, "\tnot _within_hours\n", "\t_within_hours\n"),
    "everybody is a contractor": (CONTRACTORS, "\t_is_contractor\n\tnot", "\tnot"),
    "weekdays do not count": (CONTRACTORS, "in hours.weekdays", ""),
    "the first minute is lost": (CONTRACTORS, ">= _minute_of_day(hours.from)", "> _minute_of_day(hours.from)"),
    "the last minute counts": (CONTRACTORS, "< _minute_of_day(hours.until)", "<= _minute_of_day(hours.until)"),
    "minutes are not counted": (CONTRACTORS, "(to_number(hour) * 60) + to_number(minute)", "to_number(hour) * 60"),
    "weekdays are those of UTC": (CONTRACTORS, "time.weekday([now, _zone(hours)])", "time.weekday(now)"),
    "hours are those of UTC": (CONTRACTORS, "time.clock([now, _zone(hours)])", "time.clock(now)"),
    "the zone of the process counts": (CONTRACTORS, '{"", "Local"}', '{""}'),
    "no zone is UTC": (CONTRACTORS, '{"", "Local"}', '{"Local"}'),
    "times are read loosely": (
        CONTRACTORS,
        "regex.match(`^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`, written)",
        "written",
    ),
    "roles are not looked at": (CONTRACTORS, "some role in input.actor.roles", 'some role in ["nobody"]'),
    "assumed roles are not looked at": (CONTRACTORS, "input.actor.assumed_role in", '"nobody" in'),
    "unreadable users pass": (CONTRACTORS, "\tis_array(data.policy_data.contractors.users)\n", ""),
    "unreadable roles pass": (CONTRACTORS, "\tis_array(data.policy_data.contractors.roles)\n", ""),
    "a missing list passes": (CONTRACTORS, "\tnot _known\n", "\tfalse\n"),
    "the warehouse is not looked at": (
        CREDENTIALS,
        '_matches(object.get(rule, "warehouse", "*"), resource.warehouse)',
        "true",
    ),
    "the namespace is not looked at": (
        CREDENTIALS,
        '_covers(object.get(rule, "namespace", []), resource.namespace)',
        "true",
    ),
    "the table is not looked at": (
        CREDENTIALS,
        '_matches(object.get(rule, "table", "*"), _table_name(resource))',
        "true",
    ),
    "a namespace does not cover those below": (
        CREDENTIALS,
        "count(pattern) <= count(levels)",
        "count(pattern) == count(levels)",
    ),
    "letter case counts": (
        CREDENTIALS,
        "glob.match(lower(pattern), null, lower(name))",
        "glob.match(pattern, null, name)",
    ),
    "a dot stops a star": (CREDENTIALS, "glob.match(lower(pattern), null,", 'glob.match(lower(pattern), ["."],'),
    "an unknown name is not guarded": (CREDENTIALS, "_matches(_, null) := true", "_matches(_, null) := false"),
    "an unknown namespace is not guarded": (CREDENTIALS, "_covers(_, null) := true", "_covers(_, null) := false"),
    "a negative life passes": (CREDENTIALS, "\tvalue >= 0\n", ""),
    "half a second passes": (CREDENTIALS, "\tvalue == round(value)\n", ""),
    "a switch may be anything": (CREDENTIALS, "\tis_boolean(value)\n", ""),
    "a misspelt place passes": (
        CREDENTIALS,
        '- {"warehouse", "namespace", "table", "ask"} == set()',
        "== object.keys(rule)",
    ),
    "anybody is the gateway": (AUTHZ, "crypto.sha256(input.identity) == crypto.sha256(token)", "input.identity"),
    "an empty token is a token": (AUTHZ, '\ttoken != ""\n', ""),
    "the gateway may use any method": (AUTHZ, '\tinput.method == "POST"\n', ""),
    "the gateway may ask below its path": (
        AUTHZ,
        'input.path == ["v1", "data", "gateway", "decisions"]',
        'array.slice(input.path, 0, 4) == ["v1", "data", "gateway", "decisions"]',
    ),
    "the gateway may ask for explanations": (AUTHZ, "\t_no_parameters\n", ""),
    "the operator may reach all data": (
        AUTHZ,
        'array.slice(input.path, 0, 3) == ["v1", "data", "policy_data"]',
        'array.slice(input.path, 0, 2) == ["v1", "data"]',
    ),
    "the operator may delete": (AUTHZ, '{"GET", "PUT", "PATCH"}', '{"GET", "PUT", "PATCH", "DELETE"}'),
    "the operator may climb": (AUTHZ, '\tnot ".." in input.path\n', ""),
    "the gateway may be the operator": (AUTHZ, "\t_operator_token != _gateway_token\n", ""),
    "what is not allowed is allowed": (AUTHZ, "default allow := false", "default allow := true"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_policy_is_noticed(opa, policies: Path, tmp_path: Path, name: str) -> None:
    file, right, wrong = MUTANTS[name]
    copy = shutil.copytree(policies, tmp_path / "policies")
    text = (copy / file).read_text(encoding="utf-8")
    assert right in text, f"the mutant changes nothing any more: {right!r}"
    (copy / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    # The bridge to Trino is another program: its mutants are in test_trino_mutants.py.
    done = opa("test", "--ignore=schemas", "--ignore=trino", copy)
    assert done.returncode == 2, f"expected failing tests, got {done.returncode}: {done.stdout[-500:]}{done.stderr}"
