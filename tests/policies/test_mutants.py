# SPDX-License-Identifier: Apache-2.0
"""Mutants of the policies, one change each: the policy tests must fail for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.policies.conftest import Run

MAIN = "gateway/main.rego"
ACTORS = "gateway/guardrails/actors.rego"
QUESTIONS = "gateway/questions.rego"
CONTRACTORS = "gateway/guardrails/contractors.rego"
CREDENTIALS = "gateway/guardrails/credentials.rego"
AUTHZ = "system/authz.rego"

REVISION = "system/revision.rego"
RESIDUAL = "gateway/residual.rego"

MUTANTS = {
    "decisions are cacheable without configured data": (MAIN, "\tseconds > 0\n", "\tseconds >= 0\n"),
    "decisions of time-dependent guardrails are cacheable": (MAIN, "\tcount(_unsteady) == 0\n", ""),
    "a guardrail without the rule steady counts as steady": (MAIN, "not rules.steady == true", "rules.steady == false"),
    "an unknown rule is ignored": (MAIN, "\tnot output.schema.properties[rule]\n", "\tfalse\n"),
    "a helper counts as an unknown rule": (MAIN, '\tnot startswith(rule, "_")\n', ""),
    "a package below a guardrail counts as a helper": (MAIN, '\ttype_name(value[rule]) != ""\n', "\tfalse\n"),
    "a helper that is a set of names counts as a package": (MAIN, "\tis_object(value)\n", ""),
    "a credential lifetime with a fraction is returned": (MAIN, "round(min(asked))", "min(asked)"),
    "an undefined guardrail allows": (MAIN, "\tnot rules.denials\n", "\tfalse\n"),
    "a guardrail with obligations only is invalid": (MAIN, "\tnot rules.obligations\n", ""),
    "a guardrail that is no package is ignored": (MAIN, "\tnot is_object(rules)\n", "\tfalse\n"),
    "the type of a rule is not checked": (MAIN, "\ttype_name(rules[rule]) != property.type\n", "\tfalse\n"),
    "an entry for a missing question is ignored": (MAIN, "\tnot index in _indexes\n", "\tfalse\n"),
    "faults of guardrails do not deny": (MAIN, "union({_faults, ", "union({"),
    "a question without denials passes an invalid guardrail": (MAIN, "\tcount(_faults) == 0\n", ""),
    "faults of one question do not deny": (MAIN, ", _faults_at(index), ", ", "),
    "malformed questions are allowed": (MAIN, ", object.get(questions.denials, index, set())})", "})"),
    "a malformed question among others is allowed": (MAIN, "in questions.denials", "in questions.nothing"),
    "malformed denials are returned": (MAIN, "\tcount(_misfits(_entry.denials, denial)) == 0\n", ""),
    "the entries of a question need not be a set": (MAIN, "\tnot is_set(given)\n", "\tfalse\n"),
    "an entry need not be an object": (MAIN, "\tnot is_object(entry)\n", "\tfalse\n"),
    "an unknown field is ignored": (
        MAIN,
        "some name in (object.keys(entry) - object.keys(schema.properties))",
        "some name in (object.keys(entry) - object.keys(entry))",
    ),
    "a denial needs no message": (MAIN, "not name in object.keys(entry)", "false"),
    "the type of a field is not checked": (MAIN, "\t\tnot _fits(property, value)\n", "\t\tfalse\n"),
    "half a second is a valid lifetime": (MAIN, "\tvalue == round(value)\n", ""),
    "a negative lifetime is valid": (MAIN, "\tvalue >= property.minimum\n", ""),
    "a text counts as a number": (MAIN, "\tis_number(value)\n\tvalue == round(value)\n", "\tvalue != null\n"),
    "any value counts as a switch": (MAIN, "\ttype_name(value) == property.type\n", ""),
    "an object counts as a list": (MAIN, '\ttype_name(value) in {"array", "set"}\n', ""),
    "a list may contain any value": (MAIN, "\t\tis_string(item)\n", "\t\titem != 0\n"),
    "denials of a question are not validated": (MAIN, "in _guardrails[_].denials", "in _guardrails[_].nothing"),
    "obligations of a question are not validated": (
        MAIN,
        "in _guardrails[_].obligations",
        "in _guardrails[_].nothing",
    ),
    "the guardrail of contractors counts as time-independent": (
        CONTRACTORS,
        "steady if not _is_contractor",
        "steady := true",
    ),
    "the data is not part of the revision": (REVISION, "json.marshal(data.policy_data)", "json.marshal(1)"),
    "the rules are not part of the revision": (REVISION, "json.marshal(_rules)", "json.marshal(_rules != 0)"),
    "a bundle needs no revision": (REVISION, 'bundle.manifest.revision != ""', "bundle.manifest"),
    "one denial does not deny": (MAIN, "count(_reasons(index)) > 0", "count(_reasons(index)) > 1"),
    "always allow": (MAIN, '"allow": false', '"allow": true'),
    "a denial of another question denies": (MAIN, "rules.denials[index]", "rules.denials[_]"),
    "the longest lifetime wins": (MAIN, "min(asked)", "max(asked)"),
    "a switch that is set to false counts as true": (MAIN, " if true in asked", " if count(asked) > 0"),
    "a switch that one guardrail sets to false is false for all": (MAIN, " if true in asked", " if asked == {true}"),
    "obligations of another question apply": (MAIN, "rules.obligations[index]", "rules.obligations[_]"),
    "list obligations are omitted": (MAIN, '_strictest("array", asked)', '_strictest("list", asked)'),
    "questions need not be a list": (MAIN, "\tis_array(input.questions)\n", ""),
    "anonymous callers are a known kind": (
        ACTORS,
        '{"user", "role", "system"}',
        '{"user", "role", "system", "anonymous"}',
    ),
    "unknown kinds of callers are allowed": (ACTORS, "\tnot _known\n", "\t_known\n"),
    "a caller without a kind is allowed": (ACTORS, "\tnot _known\n", "\tnot input.actor.kind in _known_kinds\n"),
    "a blank operation is allowed": (QUESTIONS, 'trim_space(question.operation) != ""', 'question.operation != ""'),
    "any resource type is allowed": (QUESTIONS, "question.resource.type in _known_types", "question.resource.type"),
    "the working hours are not checked": (CONTRACTORS, "\tnot _within_hours\n", "\t_within_hours\n"),
    "every user counts as a contractor": (CONTRACTORS, "\t_is_contractor\n\tnot", "\tnot"),
    "weekdays are not checked": (CONTRACTORS, "in hours.weekdays", ""),
    "the first minute is denied": (CONTRACTORS, ">= _minute_of_day(hours.from)", "> _minute_of_day(hours.from)"),
    "the end minute is allowed": (CONTRACTORS, "< _minute_of_day(hours.until)", "<= _minute_of_day(hours.until)"),
    "minutes are ignored": (CONTRACTORS, "(to_number(hour) * 60) + to_number(minute)", "to_number(hour) * 60"),
    "weekdays are those of UTC": (CONTRACTORS, "time.weekday([now, _zone(hours)])", "time.weekday(now)"),
    "hours are those of UTC": (CONTRACTORS, "time.clock([now, _zone(hours)])", "time.clock(now)"),
    "the zone of the process is accepted": (CONTRACTORS, '{"", "Local"}', '{""}'),
    "a missing zone counts as UTC": (CONTRACTORS, '{"", "Local"}', '{"Local"}'),
    "malformed times are accepted": (
        CONTRACTORS,
        "regex.match(`^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`, written)",
        "written",
    ),
    "roles are not checked": (CONTRACTORS, "some role in input.actor.roles", 'some role in ["nobody"]'),
    "assumed roles are not checked": (CONTRACTORS, "input.actor.assumed_role in", '"nobody" in'),
    "an unreadable list of users allows": (CONTRACTORS, "\tis_array(data.policy_data.contractors.users)\n", ""),
    "an unreadable list of roles allows": (CONTRACTORS, "\tis_array(data.policy_data.contractors.roles)\n", ""),
    "a missing list allows": (CONTRACTORS, "\tnot _known\n", "\tfalse\n"),
    "the warehouse is not checked": (
        CREDENTIALS,
        '_matches(object.get(rule, "warehouse", "*"), resource.warehouse)',
        "true",
    ),
    "the namespace is not checked": (
        CREDENTIALS,
        '_covers(object.get(rule, "namespace", []), levels)',
        "levels",
    ),
    "the table is not checked": (
        CREDENTIALS,
        '_matches(object.get(rule, "table", "*"), name)',
        "name",
    ),
    "a namespace does not cover its descendants": (
        CREDENTIALS,
        "count(pattern) <= count(levels)",
        "count(pattern) == count(levels)",
    ),
    "names are compared with letter case": (
        CREDENTIALS,
        "glob.match(lower(pattern), null, lower(name))",
        "glob.match(pattern, null, name)",
    ),
    "a star does not match a dot": (
        CREDENTIALS,
        "glob.match(lower(pattern), null,",
        'glob.match(lower(pattern), ["."],',
    ),
    "a resource without a name escapes the rule": (
        CREDENTIALS,
        "_matches(_, null) := true",
        "_matches(_, null) := false",
    ),
    "a resource without a namespace escapes the rule": (
        CREDENTIALS,
        "_covers(_, null) := true",
        "_covers(_, null) := false",
    ),
    "a negative lifetime is accepted": (CREDENTIALS, "\tvalue >= 0\n", ""),
    "half a second is accepted": (CREDENTIALS, "\tvalue == round(value)\n", ""),
    "a switch may have any value": (CREDENTIALS, "\tis_boolean(value)\n", ""),
    "a misspelt location field is accepted": (
        CREDENTIALS,
        '- {"ids", "warehouse", "namespace", "table", "ask"} == set()',
        "== object.keys(rule)",
    ),
    "ids are not checked": (CREDENTIALS, "\t_identified(rule, resource)\n", ""),
    "ids of ancestors are ignored": (CREDENTIALS, "\tid in resource.namespace_ids\n", "\tid == 1\n"),
    "the id of the warehouse is ignored": (CREDENTIALS, '["id", "warehouse_id"]', '["id"]'),
    "the id of the resource itself is ignored": (CREDENTIALS, '["id", "warehouse_id"]', '["warehouse_id"]'),
    "a resource without an id escapes the rule": (CREDENTIALS, '"id", null) == null\n', '"id", null) == 1\n'),
    "former names of namespaces are ignored": (CREDENTIALS, "former := above | own", "former := own"),
    "namespaces in former names are ignored": (CREDENTIALS, "former := above | own", "former := above"),
    "former names of tables are ignored": (CREDENTIALS, "name[count(name) - 1] |", "resource.name |"),
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
    "the list of ids may be empty": (CREDENTIALS, "\tcount(rule.ids) > 0\n", ""),
    "ids may be any text": (CREDENTIALS, "\t\tregex.match(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id)\n", ""),
    "ids may have upper case": (CREDENTIALS, "`^[0-9a-f]{8}", "`(?i)^[0-9a-f]{8}"),
    "ids may begin with a space": (CREDENTIALS, "`^[0-9a-f]{8}", "`[0-9a-f]{8}"),
    "ids may end with a space": (CREDENTIALS, "[0-9a-f]{12}$`", "[0-9a-f]{12}`"),
    "a resource with an omitted id escapes the rule": (CREDENTIALS, 'object.get(resource, "id", null)', "resource.id"),
    "a resource with unknown namespace ids escapes the rule": (
        CREDENTIALS,
        '["namespace_ids", "warehouse_id"]',
        '["warehouse_id"]',
    ),
    "a resource with an unknown warehouse id escapes the rule": (
        CREDENTIALS,
        '["namespace_ids", "warehouse_id"]',
        '["namespace_ids"]',
    ),
    "a resource with omitted namespace ids escapes the rule": (
        CREDENTIALS,
        "object.get(resource, part, null)",
        "resource[part]",
    ),
    "every resource type counts as inside a namespace": (
        CREDENTIALS,
        "\tnot resource.type in _types_outside_namespaces\n",
        "",
    ),
    "a warehouse counts as inside a namespace": (CREDENTIALS, '"project", "warehouse", "user"', '"project", "user"'),
    "every client is authenticated as the gateway": (
        AUTHZ,
        "crypto.sha256(input.identity) == crypto.sha256(token)",
        "input.identity",
    ),
    "an empty token is accepted": (AUTHZ, '\ttoken != ""\n', ""),
    "the gateway may use any method": (AUTHZ, '\tinput.method == "POST"\n', ""),
    "the gateway may use paths below its own": (
        AUTHZ,
        'input.path == ["v1", "data", "gateway", "decisions"]',
        'array.slice(input.path, 0, 4) == ["v1", "data", "gateway", "decisions"]',
    ),
    "the gateway may request explanations": (
        AUTHZ,
        'object.get(input, "params", {}) in [{}, {"strict-builtin-errors": ["true"]}]',
        "true",
    ),
    "the gateway may evaluate with any parameters": (
        AUTHZ,
        'object.get(input, "params", {}) == {"explain": ["full"]}',
        "true",
    ),
    "the gateway may send options": (
        AUTHZ,
        'object.keys(input.body) == {"query", "input", "unknowns"}',
        'object.keys(input.body) & {"query", "input", "unknowns"} == {"query", "input", "unknowns"}',
    ),
    "the gateway may evaluate any query": (
        AUTHZ,
        'input.body.query == "data.gateway.residual.speaks[x]"',
        'startswith(input.body.query, "data.gateway.residual.speaks[x]")',
    ),
    "the gateway may choose the unknowns": (
        AUTHZ,
        'input.body.unknowns == ["input.context", "input.questions"]',
        '"input.context" in input.body.unknowns',
    ),
    "the gateway may evaluate with a known context": (AUTHZ, '\tobject.keys(input.body.input) == {"actor"}\n', ""),
    "the gateway may evaluate at any path": (AUTHZ, 'input.path == ["v1", "compile"]', 'input.path[1] == "compile"'),
    "denials do not speak": (
        RESIDUAL,
        'some kind in ["denials", "obligations"]\n\t_',
        'some kind in ["obligations"]\n\t_',
    ),
    "obligations do not speak": (
        RESIDUAL,
        'some kind in ["denials", "obligations"]\n\t_',
        'some kind in ["denials"]\n\t_',
    ),
    "an entry that is false does not speak": (
        RESIDUAL,
        "_ = data.gateway.guardrails[name][kind][_]",
        "data.gateway.guardrails[name][kind][_]",
    ),
    "an unknown rule that is false does not speak": (
        RESIDUAL,
        "_ = data.gateway.guardrails[name][rule]",
        "data.gateway.guardrails[name][rule]",
    ),
    "a rule of a helper that is false does not speak": (
        RESIDUAL,
        "_ = data.gateway.guardrails[name][helper][rule]",
        "data.gateway.guardrails[name][helper][rule]",
    ),
    "every rule is known": (RESIDUAL, "\tnot output.schema.properties[rule]\n", "\tfalse\n"),
    "a helper counts as an unknown rule in the residue": (RESIDUAL, '\tsubstring(rule, 0, 1) != "_"\n', ""),
    "any value of steady counts as a boolean": (RESIDUAL, "\tnot is_boolean(value)\n", "\tis_null(value)\n"),
    "callers are silent while no answer lasts": (RESIDUAL, "if not _may_last", "if false"),
    "a text of seconds lets answers last": (
        RESIDUAL,
        "\tis_number(data.policy_data.memory.answers_last_seconds)\n",
        "",
    ),
    "no seconds let answers last": (RESIDUAL, "answers_last_seconds > 0", "answers_last_seconds >= 0"),
    "the residue does not name the data": (RESIDUAL, "json.marshal(data.policy_data)", "json.marshal(1)"),
    "the residue does not name the bundles": (RESIDUAL, "json.marshal(revisions)", "json.marshal(1)"),
    "the gateway may request the revision with parameters": (AUTHZ, "\t_no_parameters\n", ""),
    "the gateway may disable strict errors": (AUTHZ, '["true"]}]', '["true"]}, {"strict-builtin-errors": ["false"]}]'),
    "the gateway may not enable strict errors": (AUTHZ, 'in [{}, {"strict-builtin-errors": ["true"]}]', "in [{}]"),
    "the gateway may query parts of a rule about changes": (AUTHZ, "\tcount(input.path) == 5\n", ""),
    "the gateway may query other packages of the operator": (
        AUTHZ,
        'array.slice(input.path, 0, 4) == ["v1", "data", "lakegate", "changes"]',
        'array.slice(input.path, 0, 3) == ["v1", "data", "lakegate"]',
    ),
    "the gateway may query changes without strict errors": (
        AUTHZ,
        'object.get(input, "params", {}) == {"strict-builtin-errors": ["true"]}',
        "true",
    ),
    "the operator may reach all data": (
        AUTHZ,
        'array.slice(input.path, 0, 3) == ["v1", "data", "policy_data"]',
        'array.slice(input.path, 0, 2) == ["v1", "data"]',
    ),
    "the operator may delete": (AUTHZ, '{"GET", "PUT", "PATCH"}', '{"GET", "PUT", "PATCH", "DELETE"}'),
    "the operator may use parent segments": (AUTHZ, '\tnot ".." in input.path\n', ""),
    "one token may serve gateway and operator": (AUTHZ, "\t_operator_token != _gateway_token\n", ""),
    "the default is to allow": (AUTHZ, "default allow := false", "default allow := true"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_policy_mutant_fails_its_tests(opa: Run, policies: Path, tmp_path: Path, name: str) -> None:
    file, right, wrong = MUTANTS[name]
    copy = shutil.copytree(policies, tmp_path / "policies")
    text = (copy / file).read_text(encoding="utf-8")
    assert right in text, f"the policy no longer contains the text to change: {right!r}"
    (copy / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    # The Trino bridge is a separate program: its mutants are in test_trino_mutants.py.
    done = opa("test", "--ignore=schemas", "--ignore=trino", copy)
    assert done.returncode == 2, f"expected failing tests, got {done.returncode}: {done.stdout[-500:]}{done.stderr}"
