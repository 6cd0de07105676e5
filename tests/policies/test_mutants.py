# SPDX-License-Identifier: Apache-2.0
"""Mutants of the policies, one change each: the policy tests must fail for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.policies.conftest import Run

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
    "a guardrail that does not say so is steady": (MAIN, "not rules.steady == true", "rules.steady == false"),
    "an unknown rule is dropped": (MAIN, "\tnot output.schema.properties[rule]\n", "\tfalse\n"),
    "a helper is an unknown rule": (MAIN, '\tnot startswith(rule, "_")\n', ""),
    "a package below a guardrail is a helper": (MAIN, '\ttype_name(value[rule]) != ""\n', "\tfalse\n"),
    "a helper that is a set of names is a package": (MAIN, "\tis_object(value)\n", ""),
    "a life leaves OPA with a fraction": (MAIN, "round(min(asked))", "min(asked)"),
    "an undefined guardrail allows": (MAIN, "\tnot rules.denials\n", "\tfalse\n"),
    "a guardrail that only obliges is invalid": (MAIN, "\tnot rules.obligations\n", ""),
    "a guardrail that is no package is dropped": (MAIN, "\tnot is_object(rules)\n", "\tfalse\n"),
    "the type of a rule is not looked at": (MAIN, "\ttype_name(rules[rule]) != property.type\n", "\tfalse\n"),
    "what is about no question is dropped": (MAIN, "\tnot index in _indexes\n", "\tfalse\n"),
    "faults of guardrails do not deny": (MAIN, "union({_faults, ", "union({"),
    "a quiet question passes an invalid guardrail": (MAIN, "\tcount(_faults) == 0\n", ""),
    "faults of one question do not deny": (MAIN, ", _faults_at(index)})", "})"),
    "malformed denials leave OPA": (MAIN, "\tcount(_misfits(_entry.denials, denial)) == 0\n", ""),
    "what is given for a question need not be a set": (MAIN, "\tnot is_set(given)\n", "\tfalse\n"),
    "an entry need not be an object": (MAIN, "\tnot is_object(entry)\n", "\tfalse\n"),
    "an unknown field is dropped": (
        MAIN,
        "some name in (object.keys(entry) - object.keys(schema.properties))",
        "some name in (object.keys(entry) - object.keys(entry))",
    ),
    "a denial needs no message": (MAIN, "not name in object.keys(entry)", "false"),
    "the type of a field is not looked at": (MAIN, "\t\tnot _fits(property, value)\n", "\t\tfalse\n"),
    "half a second is a life": (MAIN, "\tvalue == round(value)\n", ""),
    "a negative life is a life": (MAIN, "\tvalue >= property.minimum\n", ""),
    "a text is a number": (MAIN, "\tis_number(value)\n\tvalue == round(value)\n", "\tvalue != null\n"),
    "anything is a switch": (MAIN, "\ttype_name(value) == property.type\n", ""),
    "an object is a list": (MAIN, '\ttype_name(value) in {"array", "set"}\n', ""),
    "a list may have anything in it": (MAIN, "\t\tis_string(item)\n", "\t\titem != 0\n"),
    "denials of a question are not looked at": (MAIN, "in _guardrails[_].denials", "in _guardrails[_].nothing"),
    "obligations of a question are not looked at": (
        MAIN,
        "in _guardrails[_].obligations",
        "in _guardrails[_].nothing",
    ),
    "the hours of contractors are steady": (CONTRACTORS, "steady if not _is_contractor", "steady := true"),
    "the data is not part of the revision": (REVISION, "[_rules, data.policy_data]", "[_rules]"),
    "the rules are not part of the revision": (REVISION, "[_rules, data.policy_data]", "[data.policy_data]"),
    "a bundle needs no revision": (REVISION, 'bundle.manifest.revision != ""', "bundle.manifest"),
    "one denial is not enough": (MAIN, "count(_reasons(index)) > 0", "count(_reasons(index)) > 1"),
    "always allow": (MAIN, '"allow": false', '"allow": true'),
    "the denial of any question counts": (MAIN, "rules.denials[index]", "rules.denials[_]"),
    "the longest life counts": (MAIN, "min(asked)", "max(asked)"),
    "a switch somebody leaves off is on": (MAIN, " if true in asked", " if count(asked) > 0"),
    "a switch that one guardrail leaves off is off": (MAIN, " if true in asked", " if asked == {true}"),
    "the obligations of any question count": (MAIN, "rules.obligations[index]", "rules.obligations[_]"),
    "lists are forgotten": (MAIN, '_strictest("array", asked)', '_strictest("list", asked)'),
    "questions need not be a list": (MAIN, "\tis_array(input.questions)\n", ""),
    "anonymous callers are known": (ACTORS, '{"user", "role", "system"}', '{"user", "role", "system", "anonymous"}'),
    "unknown kinds pass": (ACTORS, "\tnot _known\n", "\t_known\n"),
    "an undefined kind passes": (ACTORS, "\tnot _known\n", "\tnot input.actor.kind in _known_kinds\n"),
    "a blank operation passes": (QUESTIONS, 'trim_space(question.operation) != ""', 'question.operation != ""'),
    "any type of thing passes": (QUESTIONS, "question.resource.type in _known_types", "question.resource.type"),
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
        '_covers(object.get(rule, "namespace", []), levels)',
        "levels",
    ),
    "the table is not looked at": (
        CREDENTIALS,
        '_matches(object.get(rule, "table", "*"), name)',
        "name",
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
        '- {"ids", "warehouse", "namespace", "table", "ask"} == set()',
        "== object.keys(rule)",
    ),
    "ids are not looked at": (CREDENTIALS, "\t_identified(rule, resource)\n", ""),
    "ids of ancestors do not count": (CREDENTIALS, "\tid in resource.namespace_ids\n", "\tid == 1\n"),
    "the id of the warehouse does not count": (CREDENTIALS, '["id", "warehouse_id"]', '["id"]'),
    "its own id does not count": (CREDENTIALS, '["id", "warehouse_id"]', '["warehouse_id"]'),
    "an unknown id is not guarded": (CREDENTIALS, '"id", null) == null\n', '"id", null) == 1\n'),
    "former names of namespaces do not count": (CREDENTIALS, "former := above | own", "former := own"),
    "namespaces in former names do not count": (CREDENTIALS, "former := above | own", "former := above"),
    "former names of tables do not count": (CREDENTIALS, "name[count(name) - 1] |", "resource.name |"),
    "many renames escape a rule for a table": (
        CREDENTIALS,
        "} else := {null} if {\n\tresource.former_names_complete == false\n",
        "} else := {null} if {\n\tresource.former_names_complete == 1\n",
    ),
    "many renames escape a rule for a namespace": (
        CREDENTIALS,
        "_namespaces(resource) := {null} if {\n\tresource.former_names_complete == false\n",
        "_namespaces(resource) := {null} if {\n\tresource.former_names_complete == 1\n",
    ),
    "ids need not be a list": (CREDENTIALS, "\tis_array(rule.ids)\n", ""),
    "ids may be left empty": (CREDENTIALS, "\tcount(rule.ids) > 0\n", ""),
    "ids may be any text": (CREDENTIALS, "\t\tregex.match(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id)\n", ""),
    "ids may have upper case": (CREDENTIALS, "`^[0-9a-f]{8}", "`(?i)^[0-9a-f]{8}"),
    "ids may begin with a space": (CREDENTIALS, "`^[0-9a-f]{8}", "`[0-9a-f]{8}"),
    "ids may end with a space": (CREDENTIALS, "[0-9a-f]{12}$`", "[0-9a-f]{12}`"),
    "an id that is not sent is not guarded": (CREDENTIALS, 'object.get(resource, "id", null)', "resource.id"),
    "unknown ids of namespaces are not guarded": (
        CREDENTIALS,
        '["namespace_ids", "warehouse_id"]',
        '["warehouse_id"]',
    ),
    "an unknown id of a warehouse is not guarded": (
        CREDENTIALS,
        '["namespace_ids", "warehouse_id"]',
        '["namespace_ids"]',
    ),
    "an id of a namespace that is not sent is not guarded": (
        CREDENTIALS,
        "object.get(resource, part, null)",
        "resource[part]",
    ),
    "every type lies in a namespace": (CREDENTIALS, "\tnot resource.type in _types_outside_namespaces\n", ""),
    "a warehouse lies in a namespace": (CREDENTIALS, '"project", "warehouse", "user"', '"project", "user"'),
    "anybody is the gateway": (AUTHZ, "crypto.sha256(input.identity) == crypto.sha256(token)", "input.identity"),
    "an empty token is a token": (AUTHZ, '\ttoken != ""\n', ""),
    "the gateway may use any method": (AUTHZ, '\tinput.method == "POST"\n', ""),
    "the gateway may ask below its path": (
        AUTHZ,
        'input.path == ["v1", "data", "gateway", "decisions"]',
        'array.slice(input.path, 0, 4) == ["v1", "data", "gateway", "decisions"]',
    ),
    "the gateway may ask for explanations": (
        AUTHZ,
        'object.get(input, "params", {}) in [{}, {"strict-builtin-errors": ["true"]}]',
        "true",
    ),
    "the gateway may ask for the revision with parameters": (AUTHZ, "\t_no_parameters\n", ""),
    "the gateway may turn errors off": (AUTHZ, '["true"]}]', '["true"]}, {"strict-builtin-errors": ["false"]}]'),
    "errors cannot be reported": (AUTHZ, 'in [{}, {"strict-builtin-errors": ["true"]}]', "in [{}]"),
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
def test_a_policy_mutant_fails_its_tests(opa: Run, policies: Path, tmp_path: Path, name: str) -> None:
    file, right, wrong = MUTANTS[name]
    copy = shutil.copytree(policies, tmp_path / "policies")
    text = (copy / file).read_text(encoding="utf-8")
    assert right in text, f"the mutant changes nothing any more: {right!r}"
    (copy / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    # The Trino bridge is a separate program: its mutants are in test_trino_mutants.py.
    done = opa("test", "--ignore=schemas", "--ignore=trino", copy)
    assert done.returncode == 2, f"expected failing tests, got {done.returncode}: {done.stdout[-500:]}{done.stderr}"
