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

#: Mutants: (file, original, change, the tests to run, one of which must fail).
MUTANTS = {
    "a failed answer counts": (GATEWAY, "\tanswer.status_code == 200\n", "", ODD),
    "too short an answer counts": (GATEWAY, "count(answer.body.results) == count(checks)", "true", ODD),
    "answers may be mixed up": (GATEWAY, "result.id == format_int(index, 10)", "index >= 0", ODD),
    "an answer may be a text": (GATEWAY, "\t\tis_boolean(result.allowed)\n", "", ODD),
    "a no is a yes": (GATEWAY, "\tresult.allowed\n", "\tis_boolean(result.allowed)\n", RECORDED),
    "odd columns are all columns": (GATEWAY, "\t\t_is_clear(checks[index], result)\n", "", "test_odd_columns"),
    "columns are told of anything": (
        GATEWAY,
        '\tcheck.table.action.action == "read_columns"\n',
        "",
        "test_odd_columns",
    ),
    "a column has any name": (
        GATEWAY,
        "\tevery name in result.columns { is_string(name) }\n",
        "",
        "test_odd_columns",
    ),
    "no column is some": (GATEWAY, "\textent != set()\n", "", "test_columns_are_told"),
    "columns have capitals": (GATEWAY, "{lower(name) |", "{name |", "test_names_of_columns"),
    "letters differ between the two": (
        GATEWAY,
        "; not regex.match(`[\\x{130}\\x{3a3}]`, name)}",
        "}",
        "test_names_of_columns",
    ),
    "the user is not named": (GATEWAY, '"identity": {"user": principal(user)}, ', "", RECORDED),
    "the bridge asks for itself": (GATEWAY, '"delegated": true', '"delegated": false', RECORDED),
    "answers are kept": (
        GATEWAY,
        '\t"method": "POST",',
        '\t"method": "POST",\n\t"force_cache": true,\n\t"force_cache_duration_seconds": 5,',
        RECORDED,
    ),
    "a thousand checks are two requests": (GATEWAY, "_most := 1000", "_most := 999", "test_a_thousand"),
    "a thousand and one are one request": (GATEWAY, "_most := 1000", "_most := 5000", "test_a_thousand"),
    "any provider is believed": (GATEWAY, " in settings.providers", ' != ""', "test_with_several"),
    "a tilde in a name chooses the provider": (
        GATEWAY,
        "\tcount(settings.providers) == 1\n",
        '\tcount(settings.providers) == 1\n\tindexof(user, "~") < 0\n',
        "test_with_one_provider",
    ),
    "a blank user is somebody": (
        MAIN,
        '\ttrim_space(input.context.identity.user) != ""\n',
        "",
        "test_somebody_without",
    ),
    "what is not allowed is allowed": (
        MAIN,
        "default allow := false",
        "default allow := true",
        "test_an_operation_nobody",
    ),
    "one of several needs is enough": (
        MAIN,
        '\tevery alternatives in verdict.needs {\n\t\tsome check in alternatives\n\t\tholding[check] == "all"\n\t}\n',
        '\tsome alternatives in verdict.needs\n\tsome check in alternatives\n\tholding[check] == "all"\n',
        RECORDED,
    ),
    "some columns are all columns": (
        MAIN,
        '\tevery name in object.get(things[place], ["table", "columns"], []) { _within(name, extent) }\n',
        "",
        "test_granted_columns",
    ),
    "all columns of a table are listed": (MAIN, "; _within(name, extent)]", "]", "test_who_reads_some"),
    "all columns of a table are shown": (
        MAIN,
        "_within(thing.column.columnName, _readable[_table_of(thing)])",
        "_readable[_table_of(thing)]",
        "test_what_is_not_granted",
    ),
    "a right on some columns is the right": (
        MAIN,
        '\t\tholding[check] == "all"\n',
        "\t\tholding[check]\n",
        "test_granted_columns",
    ),
    "rows of the unreadable are shown": (
        MAIN,
        'default row_filters := [{"expression": "false"}]',
        'default row_filters := [{"expression": "true"}]',
        RECORDED,
    ),
    "columns of the unreadable are shown": (MAIN, "\tnot _is_readable(thing)\n", "\tfalse\n", RECORDED),
    "a mask is a filter": (MAIN, '\t_operation == "GetRowFilters"\n', "", "test_a_question_put"),
    "columns of two tables are one table's": (
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
    "queries of others are everybody's": (
        TABLE,
        '"KillQueryOwnedBy": {"may": "owners"}',
        '"KillQueryOwnedBy": {"may": "everybody"}',
        "test_recorded_operations_that_nothing",
    ),
    "everybody makes catalogs": (
        TABLE,
        '"CreateCatalog": {"may": "operators"}',
        '"CreateCatalog": {"may": "everybody"}',
        "test_recorded_operations_that_nothing",
    ),
    "dropping takes a look": (
        TABLE,
        '"DropTable": {"needs": ["table drop"]}',
        '"DropTable": {"needs": ["table get_metadata"]}',
        RECORDED,
    ),
    "inserting takes no keys": (
        TABLE,
        '"InsertIntoTable": {"needs": ["table write_data", "table commit"]}',
        '"InsertIntoTable": {"needs": ["table commit"]}',
        RECORDED,
    ),
    "reading takes a look": (
        TABLE,
        '"SelectFromColumns": {"needs": ["table read_columns | about read_data | read-view select"], "looks": true}',
        '"SelectFromColumns": {"needs": ["read get_metadata | read-view get_metadata"], "looks": true}',
        RECORDED,
    ),
    "a view lends what its owner may not grant": (
        TABLE,
        '\t\t"read grant_select | lent-view grant_select",\n',
        "",
        RECORDED,
    ),
    "a place may be chosen": (TABLE, "\tlower(name) in _places\n", '\tname == "nothing"\n', "test_a_place_of_ones_own"),
    "a place may be chosen in capitals": (TABLE, "lower(name) in _places", "name in _places", "test_no_property"),
    "files are added from anywhere": (TABLE, '\t"optimize",\n', '\t"optimize",\n\t"add_files",\n', "test_files_from"),
    "a table needs no name": (TABLE, "\tnot names.read(thing)\n", "\tfalse\n", "test_a_value_of_another_type"),
    "properties need no names": (TABLE, "\tnot is_object(properties)\n", "\tfalse\n", "test_properties_without_names"),
    "a session property needs no name": (
        TABLE,
        "\tis_string(thing.catalogSessionProperty.propertyName)\n\tnot endswith",
        "\tnot endswith",
        "test_a_session_may_not",
    ),
    "retention may be shortened": (TABLE, '"_min_retention")', '"_no_such")', "test_a_session_may_not"),
    "no list of columns is a list": (TABLE, "if is_array(thing.table.columns)", "if true", "test_counting"),
    "arriving takes nothing": (
        TABLE,
        "\tlower(names.schema_of(thing)) == lower(names.schema_of(target))\n",
        "",
        "test_what_moves",
    ),
    "a table leaves for another catalog": (
        TABLE,
        "\tnames.catalog_of(target) == names.catalog_of(thing)\n\tnames.plain(target)\n",
        "\tnames.plain(target)\n",
        "test_what_moves",
    ),
    "open catalogs take in what is governed": (
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
    "the system catalog is written": (
        TABLE,
        "\ttable[operation].looks\n\tthing.table.schemaName in _system_schemas\n",
        "\tthing.table.schemaName in _system_schemas\n",
        "test_the_system_catalog",
    ),
    "all that is listed of files is public": (
        TABLE,
        '"table read_columns | about read_data | read-view select"], "looks": true},\n\t"GetRow',
        '"listed get_metadata"], "looks": true},\n\t"GetRow',
        "test_what_tells_about",
    ),
    "values of all columns are told to who reads some": (
        TABLE,
        "about read_data | read-view",
        "about read_columns | read-view",
        "test_what_tells_about",
    ),
    "rows of what tells about a table are for who reads some columns": (
        TABLE,
        '"GetRowFilters": {"needs": ["table read_columns | about read_data',
        '"GetRowFilters": {"needs": ["read read_columns',
        "test_rows_are_not_filtered",
    ),
    "a view lends what its owner reads in part": (
        TABLE,
        '\t\t"read read_data | lent-view select",\n',
        '\t\t"read read_columns | lent-view select",\n',
        "test_reading_some_columns",
    ),
    "a view lends its owner's rights to an ownerless view": (
        TABLE,
        '_called("view", names.plain(thing)), {"runs-as-owner": true})',
        '_called("view", names.plain(thing)), {})',
        "test_an_ownerless_view",
    ),
    "how a table is made is shown to who reads some columns": (
        TABLE,
        '"ShowCreateTable": {"needs": ["read get_metadata | read-view get_metadata"]}',
        '"ShowCreateTable": {"needs": ["read get_metadata | read-view get_metadata | table read_columns"]}',
        "test_who_reads_some",
    ),
    "any suffix tells about a table": (NAMES, "\tabout_it in _about_tables\n", "\tabout_it\n", "test_what_tells_about"),
    "what tells about a table is a table": (
        NAMES,
        '\tnot contains(thing.table.tableName, "$")\n',
        "",
        "test_what_has_no_whole_name",
    ),
    "a blank table is a name": (
        NAMES,
        '\ttrim_space(thing.table.tableName) != ""\n',
        "",
        "test_what_has_no_whole_name",
    ),
    "a blank level is a name": (
        NAMES,
        '\tevery level in levels { trim_space(level) != "" }\n',
        "",
        "test_what_has_no_whole",
    ),
    "any word is a warehouse": (SETTINGS, "\tregex.match(`^[0-9a-fA-F-]{36}$`, id)\n", "", "test_what_cannot_be_read"),
    "a governed catalog can be open": (SETTINGS, "\tnot catalog in mapped\n", "", "test_what_cannot_be_read"),
    "a failure gives a token": (SETTINGS, "\tfetched.status_code == 200\n", "", "test_no_token"),
    "the token in use is not the given one": (SETTINGS, '\t_env.LAKEGATE_BRIDGE_TOKEN != ""\n', "\tfalse\n", RECORDED),
    "everything of the bridge can be asked": (
        AUTHZ,
        '\tentry in {"allow", "batch", "row_filters", "column_mask", "batch_column_masks"}\n',
        "\tentry\n",
        "test_the_engine_asks",
    ),
    "any method asks": (AUTHZ, '\tinput.method == "POST"\n', "", "test_the_engine_asks"),
    "explanations are given": (AUTHZ, "\t_only_the_key\n", "", "test_another_key"),
    "a header is a certificate": (AUTHZ, "\tcount(input.client_certificates) > 0\n", "", "test_a_certificate"),
    "one of two is enough": (AUTHZ, "\t_certified\n\t_knows_the_key\n", "\t_certified\n", "test_of_both"),
    "without a set-up everybody is the engine": (
        AUTHZ,
        '\tcount({_subject, _key} - {""}) > 0\n',
        "",
        "test_where_nothing",
    ),
    "the environment is written down": (LOG, 'name != "uuid.rfc4122"', 'name == "http.send"', "test_of_what_was"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_trino_bridge_fails_its_tests(opa: Run, policies: Path, tmp_path: Path, name: str) -> None:
    file, right, wrong, tests = MUTANTS[name]
    copy = shutil.copytree(policies / "trino", tmp_path / "trino")
    text = (copy / file).read_text(encoding="utf-8")
    assert right in text, f"the mutant changes nothing any more: {right!r}"
    (copy / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    done = opa("test", "--timeout=60s", f"--run={tests}", copy)
    assert done.returncode == 2, f"expected failing tests, got {done.returncode}: {done.stdout[-500:]}{done.stderr}"
