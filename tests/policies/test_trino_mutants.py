# SPDX-License-Identifier: Apache-2.0
"""Mutants of the Trino bridge, one change each: the named test must fail for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.policies.conftest import Run

MAIN, TABLE, NAMES, GATEWAY = "main.rego", "operations.rego", "names.rego", "gateway.rego"
SETTINGS, AUTHZ, LOG = "settings.rego", "authz.rego", "log.rego"

RECORDED = "test_each_recorded_operation_is"
ODD = "test_no_answer_and_an_odd_answer_allow_nothing"
INVALID = "test_restrictions_that_are_invalid"
FILTER = "test_a_row_filter_is_evaluated_before"
MASKS = "test_masked_columns_have_their_mask"
OF_TRINO = "test_columns_of_trino_are_masked"

#: Mutants: (file, original, change, the tests to run, one of which must fail).
MUTANTS = {
    "a response with an error status is accepted": (GATEWAY, "\tanswer.status_code == 200\n", "", ODD),
    "a response with too few results is accepted": (
        GATEWAY,
        "count(answer.body.results) == count(checks)",
        "true",
        ODD,
    ),
    "results in another order are accepted": (GATEWAY, "result.id == format_int(index, 10)", "index >= 0", ODD),
    "a result that is a text is accepted": (GATEWAY, "\t\tis_boolean(result.allowed)\n", "", ODD),
    "a denied check counts as allowed": (GATEWAY, "\tresult.allowed\n", "\tis_boolean(result.allowed)\n", RECORDED),
    "malformed columns count as all columns": (
        GATEWAY,
        "\t\t_is_clear(checks[index], result)\n",
        "",
        "test_odd_columns",
    ),
    "columns are accepted for any check": (
        GATEWAY,
        '\tcheck.table.action.action == "read_columns"\n',
        "",
        "test_odd_columns",
    ),
    "column names that are no text are accepted": (
        GATEWAY,
        "\tevery name in result.columns { is_string(name) }\n",
        "",
        "test_odd_columns",
    ),
    "an empty column list counts as partial access": (GATEWAY, "\tcolumns != set()\n", "", "test_columns_are_told"),
    "column names are not lower-cased": (GATEWAY, "{lower(name) |", "{name |", "test_names_of_columns"),
    "names that Trino and Rego lower-case differently are accepted": (
        GATEWAY,
        "; not regex.match(`[\\x{130}\\x{3a3}]`, name)}",
        "}",
        "test_names_of_columns",
    ),
    "the check does not name the user": (GATEWAY, '"identity": {"user": principal(user)}, ', "", RECORDED),
    "the check is not sent as delegated": (GATEWAY, '"delegated": true', '"delegated": false', RECORDED),
    "columns of Trino are masked though the answer names the readable columns": (
        MAIN,
        "\tnot _is_only_refused(thing)\n",
        "",
        OF_TRINO,
    ),
    "columns of Trino have no mask without a valid answer": (
        MAIN,
        "\tis_set(_readable[_table_of(thing)].columns)\n",
        "",
        OF_TRINO,
    ),
    "a hidden column of the table has no mask": (
        MAIN,
        '{"$file_modified_time", "$partition", "$path"}',
        '{"$file_modified_time", "$partition", "$path", "$row_id"}',
        OF_TRINO,
    ),
    "any unreadable column has no mask": (
        MAIN,
        '\tthing.column.columnName in {"$file_modified_time", "$partition", "$path"}\n',
        "",
        OF_TRINO,
    ),
    "responses are cached": (
        GATEWAY,
        '\t"method": "POST",',
        '\t"method": "POST",\n\t"force_cache": true,\n\t"force_cache_duration_seconds": 5,',
        RECORDED,
    ),
    "a thousand checks are two requests": (GATEWAY, "_most := 1000", "_most := 999", "test_a_thousand"),
    "a thousand and one are one request": (GATEWAY, "_most := 1000", "_most := 5000", "test_a_thousand"),
    "any provider in a user name is accepted": (GATEWAY, " in settings.providers", ' != ""', "test_with_several"),
    "a tilde in a name selects the provider": (
        GATEWAY,
        "\tcount(settings.providers) == 1\n",
        '\tcount(settings.providers) == 1\n\tindexof(user, "~") < 0\n',
        "test_with_one_provider",
    ),
    "a blank user is accepted": (
        MAIN,
        '\ttrim_space(input.context.identity.user) != ""\n',
        "",
        "test_somebody_without",
    ),
    "the default is to allow": (
        MAIN,
        "default allow := false",
        "default allow := true",
        "test_an_operation_nobody",
    ),
    "one of several required checks suffices": (
        MAIN,
        "\tevery alternatives in verdict.needs { _is_whole(alternatives, holding) }\n",
        "\tsome alternatives in verdict.needs\n\t_is_whole(alternatives, holding)\n",
        RECORDED,
    ),
    "partial column access counts as full access": (
        MAIN,
        '\tevery name in object.get(things[place], ["table", "columns"], []) { _within(name, extent) }\n',
        "",
        "test_granted_columns",
    ),
    "all columns of a table are listed despite partial access": (
        MAIN,
        "; _within(name, extent)]",
        "]",
        "test_who_reads_some",
    ),
    "all columns of a table are shown despite partial access": (
        MAIN,
        "_within(thing.column.columnName, _readable[_table_of(thing)])",
        "_readable[_table_of(thing)]",
        "test_what_is_not_granted",
    ),
    "a right on some columns counts as the full right": (
        MAIN,
        '\tholding[check].columns == "all"\n',
        "\tholding[check]\n",
        "test_granted_columns",
    ),
    "rows of unreadable tables are shown": (
        MAIN,
        'default row_filters := [{"expression": "false"}]',
        'default row_filters := [{"expression": "true"}]',
        RECORDED,
    ),
    "columns of unreadable tables are shown": (
        MAIN,
        "_is_masked(thing) if {\n\tnot _is_readable(thing)\n\tnot _is_only_refused(thing)\n}\n",
        "",
        RECORDED,
    ),
    "a mask request gets a row filter": (MAIN, '\t_operation == "GetRowFilters"\n', "", "test_a_question_put"),
    "columns of two tables are filtered as one table's": (
        MAIN,
        "\tcount(input.action.filterResources) == 1\n",
        "",
        "test_lists_tell",
    ),
    "impersonation is allowed to operators": (
        TABLE,
        '"ImpersonateUser": {"may": "nobody"}',
        '"ImpersonateUser": {"may": "operators"}',
        "test_recorded_operations_that_nothing",
    ),
    "every user may end queries of other users": (
        TABLE,
        '"KillQueryOwnedBy": {"may": "owners"}',
        '"KillQueryOwnedBy": {"may": "everybody"}',
        "test_recorded_operations_that_nothing",
    ),
    "every user may create catalogs": (
        TABLE,
        '"CreateCatalog": {"may": "operators"}',
        '"CreateCatalog": {"may": "everybody"}',
        "test_recorded_operations_that_nothing",
    ),
    "dropping needs only visibility": (
        TABLE,
        '"DropTable": {"needs": ["table drop"]}',
        '"DropTable": {"needs": ["table get_metadata"]}',
        RECORDED,
    ),
    "inserting needs no right to write data": (
        TABLE,
        '"InsertIntoTable": {"needs": ["grown write_data", "grown commit"]}',
        '"InsertIntoTable": {"needs": ["grown commit"]}',
        RECORDED,
    ),
    "reading needs only visibility": (
        TABLE,
        '"SelectFromColumns": {"needs": ["table read_columns | about read_data | read-view select"], "looks": true}',
        '"SelectFromColumns": {"needs": ["read get_metadata | read-view get_metadata"], "looks": true}',
        RECORDED,
    ),
    "a view lends rights that its owner may not grant": (
        TABLE,
        '\t\t"read grant_select | lent-view grant_select",\n',
        "",
        RECORDED,
    ),
    "a location may be chosen": (
        TABLE,
        "\tlower(name) in _places\n",
        '\tname == "nothing"\n',
        "test_a_place_of_ones_own",
    ),
    "a location may be chosen with a property in capitals": (
        TABLE,
        "lower(name) in _places",
        "name in _places",
        "test_no_property",
    ),
    "files may be added from any location": (
        TABLE,
        '\t"optimize",\n',
        '\t"optimize",\n\t"add_files",\n',
        "test_files_from",
    ),
    "a table without a name is accepted": (
        TABLE,
        "\tnot names.read(thing)\n",
        "\tfalse\n",
        "test_a_value_of_another_type",
    ),
    "properties without names are accepted": (
        TABLE,
        "\tnot is_object(properties)\n",
        "\tfalse\n",
        "test_properties_without_names",
    ),
    "a session property without a name is accepted": (
        TABLE,
        "\tis_string(thing.catalogSessionProperty.propertyName)\n\tnot endswith",
        "\tnot endswith",
        "test_a_session_may_not",
    ),
    "retention may be shortened": (TABLE, '"_min_retention")', '"_no_such")', "test_a_session_may_not"),
    "a missing column list counts as a list": (TABLE, "if is_array(thing.table.columns)", "if true", "test_counting"),
    "a move to another schema needs no right there": (
        TABLE,
        "\tlower(names.schema_of(thing)) == lower(names.schema_of(target))\n",
        "",
        "test_what_moves",
    ),
    "a table may move to another catalog": (
        TABLE,
        "\tnames.catalog_of(target) == names.catalog_of(thing)\n\tnames.plain(target)\n",
        "\tnames.plain(target)\n",
        "test_what_moves",
    ),
    "governed objects may move to open catalogs": (
        TABLE,
        "names.catalog_of(thing)) in settings.open_catalogs",
        "names.catalog_of(thing)) != null",
        "test_what_moves",
    ),
    "everything in the system catalog is open": (
        TABLE,
        '\tthing.table.tableName == "queries"\n',
        "",
        "test_the_system_catalog",
    ),
    "the system catalog may be written": (
        TABLE,
        "\ttable[operation].looks\n\tthing.table.schemaName in _system_schemas\n",
        "\tthing.table.schemaName in _system_schemas\n",
        "test_the_system_catalog",
    ),
    "metadata tables need only visibility": (
        TABLE,
        '"table read_columns | about read_data | read-view select"], "looks": true},\n\t"GetRow',
        '"listed get_metadata"], "looks": true},\n\t"GetRow',
        "test_what_tells_about",
    ),
    "statistics of all columns are shown to column grantees": (
        TABLE,
        "about read_data | read-view",
        "about read_columns | read-view",
        "test_what_tells_about",
    ),
    "rows of metadata tables are shown to column grantees": (
        TABLE,
        '"GetRowFilters": {"needs": ["table read_columns | about read_data',
        '"GetRowFilters": {"needs": ["read read_columns',
        "test_rows_are_not_filtered",
    ),
    "a view lends the metadata of a table that its owner may read only partly": (
        TABLE,
        '\t\t"table read_columns | about read_data | lent-view select",\n',
        '\t\t"read read_columns | lent-view select",\n',
        "test_a_view_of_a_restricted",
    ),
    "a view lends what its owner may not grant": (
        MAIN,
        "columns := intersection(parts)",
        "columns := union(parts)",
        "test_a_view_of_a_restricted",
    ),
    "a view lends its owner's rights to an ownerless view": (
        TABLE,
        '_called("view", names.plain(thing)), {"runs-as-owner": true})',
        '_called("view", names.plain(thing)), {})',
        "test_an_ownerless_view",
    ),
    "the table definition is shown to column grantees": (
        TABLE,
        '"ShowCreateTable": {"needs": ["read get_metadata | read-view get_metadata"]}',
        '"ShowCreateTable": {"needs": ["read get_metadata | read-view get_metadata | table read_columns"]}',
        "test_who_reads_some",
    ),
    "any suffix counts as a metadata table": (
        NAMES,
        "\tabout_it in _about_tables\n",
        "\tabout_it\n",
        "test_what_tells_about",
    ),
    "a metadata table counts as a table": (
        NAMES,
        '\tnot contains(thing.table.tableName, "$")\n',
        "",
        "test_what_has_no_whole_name",
    ),
    "a blank table name is accepted": (
        NAMES,
        '\ttrim_space(thing.table.tableName) != ""\n',
        "",
        "test_what_has_no_whole_name",
    ),
    "a blank namespace level is accepted": (
        NAMES,
        '\tevery level in levels { trim_space(level) != "" }\n',
        "",
        "test_what_has_no_whole",
    ),
    "any text is accepted as a warehouse id": (
        SETTINGS,
        "\tregex.match(`^[0-9a-fA-F-]{36}$`, id)\n",
        "",
        "test_what_cannot_be_read",
    ),
    "a governed catalog can be open": (SETTINGS, "\tnot catalog in mapped\n", "", "test_what_cannot_be_read"),
    "a token is read from an error response": (SETTINGS, "\tfetched.status_code == 200\n", "", "test_no_token"),
    "the configured token is ignored": (SETTINGS, '\t_env.LAKEGATE_BRIDGE_TOKEN != ""\n', "\tfalse\n", RECORDED),
    "every rule of the bridge can be queried": (
        AUTHZ,
        '\tentry in {"allow", "batch", "row_filters", "column_mask", "batch_column_masks", "diagnosis"}\n',
        "\tentry\n",
        "test_the_engine_asks",
    ),
    "any HTTP method is accepted": (AUTHZ, '\tinput.method == "POST"\n', "", "test_the_engine_asks"),
    "explanations are returned": (AUTHZ, "\t_only_the_key\n", "", "test_another_key"),
    "a header counts as a certificate": (AUTHZ, "\tcount(input.client_certificates) > 0\n", "", "test_a_certificate"),
    "a certificate suffices although a key is configured": (
        AUTHZ,
        "\t_certified\n\t_knows_the_key\n",
        "\t_certified\n",
        "test_of_both",
    ),
    "without configuration every client is the engine": (
        AUTHZ,
        '\tcount({_subject, _key} - {""}) > 0\n',
        "",
        "test_where_nothing",
    ),
    "restrictions are accepted for a check that did not request them": (
        GATEWAY,
        '\tcheck.table.restrictions == "trino"\n',
        "",
        INVALID,
    ),
    "restrictions are accepted without columns": (
        GATEWAY,
        '\t_has_columns(check, result)\n\tcheck.table.restrictions == "trino"\n',
        '\tcheck.table.restrictions == "trino"\n',
        INVALID,
    ),
    "any restrictions are accepted": (GATEWAY, "\t_are_restrictions(result.restrictions)\n", "", INVALID),
    "unknown restrictions are ignored": (GATEWAY, "\tobject.keys(restrictions) - known == set()\n", "", INVALID),
    "a filter that is no text is ignored": (
        GATEWAY,
        '\t_is_filled(object.get(restrictions, "row-filter", "true"))\n',
        "",
        INVALID,
    ),
    "a blank text is an expression": (GATEWAY, '\ttrim_space(value) != ""\n', "", INVALID),
    "masks that are no list are accepted": (GATEWAY, "\tis_array(masks)\n", "", INVALID),
    "a mask without an expression is accepted": (
        GATEWAY,
        '\t\tobject.keys(mask) == {"column", "expression"}\n\t\t_is_filled(mask.column)\n'
        "\t\t_is_filled(mask.expression)\n",
        "\t\t_is_filled(mask.column)\n",
        INVALID,
    ),
    "two masks of one column are accepted": (
        GATEWAY,
        "\tcount({lower(mask.column) | some mask in masks}) == count(masks)\n",
        "",
        INVALID,
    ),
    "the gateway's filter is ignored": (
        GATEWAY,
        '{filter | filter := result.restrictions["row-filter"]}',
        "set()",
        FILTER,
    ),
    "names of masks are not lower-cased": (GATEWAY, "{lower(mask.column): mask", "{mask.column: mask", MASKS),
    "Trino evaluates the predicates of the query before the filter": (
        MAIN,
        "[filter, _first(filter)]",
        "[filter]",
        FILTER,
    ),
    "no file is skipped by the filter": (MAIN, "[filter, _first(filter)]", "[_first(filter)]", FILTER),
    "the evaluated filter is deterministic": (MAIN, "random() < 2e0", "1e0 < 2e0", FILTER),
    "a masked column is shown": (MAIN, "_is_masked(thing) if _masks_of(thing)\n", "", MASKS),
    "one of several masks applies": (
        MAIN,
        "\tcount(_masks_of(thing)) == 1\n\tsome expression in _masks_of(thing)\n",
        "\texpression := max(_masks_of(thing))\n",
        "test_restrictions_of_all",
    ),
    "reads do not request restrictions": (
        TABLE,
        '_with(what, action) := {"restrictions": "trino"} if {',
        "_with(what, action) := {} if {",
        "test_only_reads",
    ),
    "an insert is checked as any change": (
        TABLE,
        '_with(what, action) := {"restrictions": "trino"} if {\n\twhat in {"table", "read"}\n'
        '\taction == "read_columns"\n} else := {"append": true} if {',
        '_with(what, action) := {"restrictions": "trino"} if {\n\twhat in {"table", "read"}\n'
        '\taction == "read_columns"\n} else := {} if {',
        "test_a_restricted_table_grows",
    ),
    "any change is checked as an insert": (
        TABLE,
        '\twhat == "grown"\n} else := {}',
        "\tregex.match(`write_data|commit`, action)\n} else := {}",
        "test_a_restricted_table_grows",
    ),
    "a session shows statistics of hidden rows": (
        TABLE,
        '\tthing.catalogSessionProperty.propertyName != "statistics_enabled"\n',
        "",
        "test_a_session_may_not",
    ),
    "the environment is logged": (LOG, 'name != "uuid.rfc4122"', 'name == "http.send"', "test_of_what_was"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_trino_bridge_fails_its_tests(opa: Run, policies: Path, tmp_path: Path, name: str) -> None:
    file, right, wrong, tests = MUTANTS[name]
    copy = shutil.copytree(policies / "trino", tmp_path / "trino")
    text = (copy / file).read_text(encoding="utf-8")
    assert right in text, f"the policy no longer contains the text to change: {right!r}"
    (copy / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    done = opa("test", "--timeout=60s", f"--run={tests}", copy)
    assert done.returncode == 2, f"expected failing tests, got {done.returncode}: {done.stdout[-500:]}{done.stderr}"
