# SPDX-License-Identifier: Apache-2.0
package trino.gateway_test

import data.trino
import data.trino.gateway
import data.trino.world_test as world

# METADATA
# description: Checks in the bridge's notation.
checks(count_) := {{"table": {"warehouse-id": "w", "namespace": ["sales"], "table": format_int(n, 10), "action": {"action": "drop"}}} |
	some n in numbers.range(1, count_)
}

# METADATA
# description: An answer that allows everything. Tests change parts of it.
yes(request) := {"status_code": 200, "body": {"results": [{"id": each.id, "allowed": true} | some each in request.body.checks]}}

refusing(request) := object.union(yes(request), {"status_code": 403})

silent(_) := {"status_code": 0, "error": {"message": "timeout"}}

empty(_) := {"status_code": 200}

texts(_) := {"status_code": 200, "body": "yes", "raw_body": "yes"}

short(request) := {"status_code": 200, "body": {"results": array.slice(yes(request).body.results, 0, 2)}}

long(request) := {"status_code": 200, "body": {"results": array.concat(yes(request).body.results, yes(request).body.results)}}

mixed_up(request) := {"status_code": 200, "body": {"results": array.reverse(yes(request).body.results)}}

nameless(request) := {"status_code": 200, "body": {"results": [{"allowed": true} | some each in request.body.checks]}}

unclear(request) := {"status_code": 200, "body": {"results": [{"id": each.id, "allowed": "true"} | some each in request.body.checks]}}

null_(request) := {"status_code": 200, "body": {"results": [{"id": each.id, "allowed": null} | some each in request.body.checks]}}

# METADATA
# description: The result if every check is allowed for the whole object.
whole(asked) := {check: {"columns": "all", "filters": set(), "masks": {}} | some check in asked}

test_a_whole_answer_allows_what_it_allows if {
	gateway.holding("alice", checks(3)) == whole(checks(3)) with http.send as yes with opa.runtime as world.opa
	gateway.holding("alice", set()) == {} with http.send as yes with opa.runtime as world.opa
}

test_no_answer_and_an_odd_answer_allow_nothing if {
	gateway.holding("alice", checks(3)) == {} with http.send as refusing with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as silent with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as empty with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as texts with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as short with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as long with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as mixed_up with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as nameless with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as unclear with opa.runtime as world.opa
	gateway.holding("alice", checks(3)) == {} with http.send as null_ with opa.runtime as world.opa
}

# METADATA
# description: Checks; the first is about the columns of a table.
of_columns := {{"table": {"warehouse-id": "w", "namespace": ["sales"], "table": "0", "action": {"action": "read_columns"}}}}

# METADATA
# description: An answer that allows everything, with `data.told` added to each result.
beside(request) := object.union(yes(request), {"body": {"results": [object.union(each, data.told) |
	some each in yes(request).body.results
]}})

test_columns_are_told_as_names if {
	some check in of_columns
	some_ := {"columns": {"a", "b"}, "filters": set(), "masks": {}}
	gateway.holding("alice", of_columns) == {check: some_} with http.send as beside
		with data.told as {"columns": ["a", "B"]}
		with opa.runtime as world.opa
	gateway.holding("alice", of_columns) == whole(of_columns) with http.send as beside
		with data.told as {}
		with opa.runtime as world.opa
	gateway.holding("alice", of_columns) == {} with http.send as beside
		with data.told as {"columns": []}
		with opa.runtime as world.opa
	gateway.holding("alice", of_columns) == {} with http.send as beside
		with data.told as {"columns": ["a"], "allowed": false}
		with opa.runtime as world.opa
}

test_odd_columns_allow_nothing_of_the_whole_answer if {
	every odd in [null, "a", {"a": true}, [7], ["a", null], [["a"]], true] {
		gateway.holding("alice", of_columns | checks(2)) == {} with http.send as beside
			with data.told as {"columns": odd}
			with opa.runtime as world.opa
	}

	every odd in [null, "a", {"a": true}, [7], ["a", null], [["a"]], true] {
		gateway.holding("alice", of_columns) == {} with http.send as beside
			with data.told as {"columns": odd}
			with opa.runtime as world.opa
	}

	# That check is not about columns.
	gateway.holding("alice", checks(1)) == {} with http.send as beside
		with data.told as {"columns": ["a"]}
		with opa.runtime as world.opa
}

# METADATA
# description: A check about the columns of a table that requests restrictions.
of_restrictions := {{"table": {
	"warehouse-id": "w",
	"namespace": ["sales"],
	"table": "0",
	"restrictions": "trino",
	"action": {"action": "read_columns"},
}}}

# METADATA
# description: The result of the check and of another one, if the gateway adds these members.
restricted_by(told, asked) := result if {
	result := gateway.holding("alice", asked | checks(1)) with http.send as odd_first
		with data.told as told
		with opa.runtime as world.opa
}

# METADATA
# description: An answer that allows everything, with `data.told` added to results about columns.
odd_first(request) := {"status_code": 200, "body": {"results": [object.union({"id": each.id, "allowed": true}, more) |
	some each in request.body.checks
	more := {true: data.told, false: {}}[each.operation.table.action.action == "read_columns"]
]}}

masked := [{"column": "Ssn", "expression": "'x'"}, {"column": "b", "expression": "NULL"}]

test_restrictions_are_a_filter_and_masks_by_column if {
	some check in of_restrictions
	every told, extent in {
		{"row-filter": "a > 1"}: {"filters": {"a > 1"}, "masks": {}},
		{"column-masks": masked}: {"filters": set(), "masks": {"ssn": "'x'", "b": "NULL"}},
		{"column-masks": [], "row-filter": "false"}: {"filters": {"false"}, "masks": {}},
		{}: {"filters": set(), "masks": {}},
	} {
		found := restricted_by({"columns": ["a", "B"], "restrictions": told}, of_restrictions)
		found[check] == object.union(extent, {"columns": {"a", "b"}})
		count(found) == 2
	}
}

test_restrictions_that_are_invalid_or_not_requested_allow_nothing_of_the_whole_answer if {
	every odd in [
		null, "a > 1", [], true, {"row-filter": null}, {"row-filter": ""}, {"row-filter": " "}, {"row-filter": true},
		{"row-filter": ["a > 1"]}, {"column-masks": null}, {"column-masks": {"a": "NULL"}},
		{"row-filter": "a > 1", "column-masks": null}, {"column-masks": [{"column": "a"}]},
		{"column-masks": [{"expression": "NULL"}]}, {"column-masks": [{"column": "a", "expression": null}]},
		{"column-masks": [{"column": "a", "expression": ""}]}, {"column-masks": [{"column": "", "expression": "NULL"}]},
		{"column-masks": [{"column": 7, "expression": "NULL"}]}, {"column-masks": ["a"]},
		{"column-masks": [{"column": "a", "expression": "NULL", "identity": "x"}]},
		{"column-masks": [{"column": "a", "expression": "1"}, {"column": "A", "expression": "a"}]},
		{"row-filter": "a > 1", "limit": 7},
		{"row-filter": "a > 1", "column-masks": {}},
	] {
		restricted_by({"columns": ["a"], "restrictions": odd}, of_restrictions) == {}
	}
	right := {"row-filter": "a > 1"}
	count(restricted_by({"columns": ["a"], "restrictions": right}, of_restrictions)) == 2

	# Without columns, a column under a former name would have no mask.
	restricted_by({"restrictions": right}, of_restrictions) == {}
	restricted_by({"restrictions": right, "columns": null}, of_restrictions) == {}

	# The check did not request them.
	restricted_by({"restrictions": right, "columns": ["a"]}, of_columns) == {}
}

# METADATA
# description: A gateway that accepts only requests with `data.takes` checks.
counting(request) := yes(request) if count(request.body.checks) in data.takes

test_a_thousand_checks_are_one_request_and_more_are_few if {
	gateway.holding("alice", checks(1000)) == whole(checks(1000)) with http.send as counting
		with data.takes as {1000}
		with opa.runtime as world.opa
	gateway.holding("alice", checks(2001)) == whole(checks(2001)) with http.send as counting
		with data.takes as {1000, 1}
		with opa.runtime as world.opa
}

test_a_thousand_columns_are_one_check if {
	columns := [{"column": {"catalogName": "ice", "schemaName": "s", "tableName": "t", "columnName": format_int(n, 10), "columnType": "int"}} |
		some n in numbers.range(1, 1000)
	]
	masks := trino.batch_column_masks with input as world.input_of(
		"alice",
		{"operation": "GetColumnMask", "filterResources": columns},
	)
		with http.send as counting
		with data.takes as {2}
		with opa.runtime as world.opa
	masks == []
}

# METADATA
# description: |
#   A gateway that accepts only requests with two checks. Of the table, only columns are readable: a thousand, of which a
#   hundred are masked.
masking(request) := {"status_code": 200, "body": {"results": [object.union({"id": each.id, "allowed": reads}, more) |
	some each in request.body.checks
	reads := object.get(each.operation, ["table", "action", "action"], "") == "read_columns"
	more := {true: a_hundred_masks, false: {}}[reads]
]}} if {
	count(request.body.checks) == 2
}

a_hundred_masks := {
	"columns": [format_int(n, 10) | some n in numbers.range(1, 1000)],
	"restrictions": {"column-masks": [{"column": format_int(n, 10), "expression": "'x'"} |
		some n in numbers.range(1, 100)
	]},
}

test_a_hundred_masks_of_a_thousand_columns_are_one_request if {
	columns := [{"column": {"catalogName": "ice", "schemaName": "s", "tableName": "t", "columnName": format_int(n, 10), "columnType": "int"}} |
		some n in numbers.range(1, 1000)
	]
	masks := trino.batch_column_masks with input as world.input_of(
		"alice",
		{"operation": "GetColumnMask", "filterResources": columns},
	)
		with http.send as masking
		with opa.runtime as world.opa
	masks == [{"index": index, "viewExpression": {"expression": "'x'"}} | some index in numbers.range(0, 99)]
}

test_a_thousand_tables_are_one_request if {
	tables := [{"table": {"catalogName": "ice", "schemaName": "s", "tableName": format_int(n, 10)}} |
		some n in numbers.range(1, 1000)
	]
	seen := trino.batch with input as world.input_of("alice", {"operation": "FilterTables", "filterResources": tables})
		with http.send as counting
		with data.takes as {1000}
		with opa.runtime as world.opa
	count(seen) == 1000
}

test_each_request_says_who_asks_and_can_be_found_again if {
	request := gateway._request("alice", [{"x": 1}]) with opa.runtime as world.opa with uuid.rfc4122 as "an-id"
	request.headers == {"Authorization": "Bearer token-of-the-bridge", "X-Request-ID": "an-id"}
	request.body == {
		"delegated": true,
		"checks": [{"id": "0", "identity": {"user": "oidc~alice"}, "operation": {"x": 1}}],
	}
	request.raise_error == false
	request.enable_redirect == false
	request.max_retry_attempts == 0
	not request.force_cache
	not request.cache
}

# METADATA
# description: The id of the user at the gateway, with these providers.
named(user, providers) := id if {
	id := gateway.principal(user) with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_PROVIDERS": providers})
}

test_with_one_provider_everybody_is_of_that_one if {
	named("alice", `["oidc"]`) == "oidc~alice"
	named("okta~alice", `["oidc"]`) == "oidc~okta~alice"
	named("oidc~alice", `["oidc"]`) == "oidc~oidc~alice"
	not named(" ", `["oidc"]`)
}

test_with_several_providers_a_name_says_which if {
	named("okta~alice", `["oidc", "okta"]`) == "okta~alice"
	named("okta~a~b", `["oidc", "okta"]`) == "okta~a~b"
	every user in {"alice", "other~alice", "okta~", "~alice", "okta~ ", ""} {
		not named(user, `["oidc", "okta"]`)
	}
	not named("oidc~alice", `[]`)
}
