# SPDX-License-Identifier: Apache-2.0
package trino_test

import data.trino
import data.trino.recording_test as recording
import data.trino.world_test as world

# METADATA
# description: |
#   The checks that each recorded operation needs; one of each inner list is enough. `statement` distinguishes requests
#   of one operation.
takes := {
	"AccessCatalog": [["warehouse get_config"]],
	"AddColumn": [["table sales.t1 commit"]],
	"AlterColumn": [["table sales.t1 commit"]],
	"CreateFunction": [["namespace sales create_view"]],
	"CreateMaterializedView": [["namespace sales create_view"], ["namespace sales create_table"]],
	"CreateSchema": [["warehouse create_namespace"]],
	"CreateTable": [["namespace sales create_table"]],
	"CreateView": [["namespace sales create_view"]],
	"CreateViewWithSelectFromColumns": [
		["table sales.orders read_columns", "owned view sales.orders select"],
		["table sales.orders grant_select", "owned view sales.orders grant_select"],
	],
	"DeleteFromTable": [["table sales.orders write_data"], ["table sales.orders commit"]],
	"DropColumn": [["table sales.t1 commit"]],
	"DropSchema": [["namespace tmp1 delete"]],
	"DropTable": [["table sales.orders drop"]],
	"DropView": [["view sales.v2 drop"]],
	"ExecuteProcedure": [["warehouse delete"]],
	"ExecuteTableProcedure": [["table sales.t1 write_data"], ["table sales.t1 commit"]],
	"FilterCatalogs": [["warehouse get_config"]],
	"FilterColumns": [["tabular sales.orders get_metadata", "table sales.orders read_columns"]],
	"GetColumnMask": [["table sales.orders read_columns", "view sales.orders select"]],
	"GetRowFilters": [["table sales.orders read_columns", "view sales.orders select"]],
	"InsertIntoTable": [["append table sales.orders write_data"], ["append table sales.orders commit"]],
	"RenameColumn": [["table sales.t1 commit"]],
	"RenameSchema": [["namespace tmp1 move"], ["warehouse create_namespace"], ["warehouse accept_moved_namespace"]],
	"RenameTable": [["table sales.t1 rename"]],
	"RenameView": [["view sales.v1 rename"]],
	"SelectFromColumns": [["table sales.orders read_columns", "view sales.orders select"]],
	"SetCatalogSessionProperty": [["warehouse get_config"]],
	"SetColumnComment": [["table sales.t1 commit", "view sales.t1 commit"]],
	"SetSchemaAuthorization": [["namespace tmp1 change_ownership"]],
	"SetTableAuthorization": [["table sales.t1 change_ownership"]],
	"SetTableComment": [["table sales.t1 commit"]],
	"SetTableProperties": [["table sales.t1 commit"]],
	"SetViewAuthorization": [["view sales.v1 change_ownership"], ["view sales.v1 commit"]],
	"SetViewComment": [["view sales.v1 commit"]],
	"ShowColumns": [[
		"table sales.orders get_metadata",
		"view sales.orders get_metadata",
		"table sales.orders read_columns",
	]],
	"ShowCreateSchema": [["namespace sales get_metadata"]],
	"ShowCreateTable": [["table sales.orders get_metadata", "view sales.orders get_metadata"]],
	"ShowFunctions": [["namespace sales get_metadata"]],
	"ShowSchemas": [["warehouse list_namespaces"]],
	"ShowTables": [["namespace sales list_tables"]],
	"TruncateTable": [["table sales.t1 write_data"], ["table sales.t1 commit"]],
	"UpdateTableColumns": [["table sales.orders write_data"], ["table sales.orders commit"]],
}

# METADATA
# description: The checks that this request needs. Metadata tables need the right to read the whole table.
needed_by(request) := [["table sales.orders read_data"]] if {
	contains(object.get(request.input.action, ["resource", "table", "tableName"], ""), "$")
} else := takes[request.input.action.operation]

# METADATA
# description: |
#   The checks that each recorded operation needs; one of each inner list is enough. `statement` distinguishes requests
#   of one operation.
by_name := {
	"CreateCatalog": {"otto"},
	"DropCatalog": {"otto"},
	"ExecuteQuery": {"alice", "bob", "otto"},
	"ImpersonateUser": set(),
	"KillQueryOwnedBy": {"bob", "otto"},
	"ReadSystemInformation": {"otto"},
	"SetSystemSessionProperty": {"alice", "bob", "otto"},
	"ViewQueryOwnedBy": {"bob", "otto"},
	"WriteSystemInformation": {"otto"},
}

# METADATA
# description: Recorded operations in open catalogs, or on several objects.
elsewhere := {
	"CreateViewWithExecuteFunction",
	"DropFunction",
	"ExecuteFunction",
	"FilterFunctions",
	"FilterSchemas",
	"FilterTables",
	"FilterViewQueryOwnedBy",
	"ShowCreateFunction",
}

# METADATA
# description: The answer of the entry point of this request to the user.
answer(request) := trino.allow if {
	request.endpoint == "allow"
} else := trino.batch if {
	request.endpoint == "batch"
} else := trino.row_filters if {
	request.endpoint == "rowFilters"
} else := trino.batch_column_masks if {
	request.endpoint == "batchColumnMasks"
}

# METADATA
# description: The answer to the recorded request for this user, while alice has these rights.
asked(request, user, holds) := result if {
	result := answer(request) with input as as_user(request, user)
		with data.holds as holds
		with opa.runtime as world.opa
		with http.send as world.gateway
}

# METADATA
# description: The recorded input with another user.
as_user(request, user) := object.union(request.input, {"context": {"identity": {"user": user, "groups": []}}})

# METADATA
# description: The answer that allows everything.
all_of(request) if {
	request.endpoint == "allow"
} else := numbers.range(0, count(request.input.action.filterResources[0].table.columns) - 1) if {
	request.input.action.operation == "FilterColumns"
} else := numbers.range(0, count(request.input.action.filterResources) - 1) if {
	request.endpoint == "batch"
} else := []

# METADATA
# description: The answer that denies everything.
none_of(request) := false if {
	request.endpoint == "allow"
} else := [] if {
	request.endpoint == "batch"
} else := [{"expression": "false"}] if {
	request.endpoint == "rowFilters"
} else := [{"index": index, "viewExpression": {"expression": sprintf("CAST(NULL AS %s)", [each.column.columnType])}} |
	some index, each in request.input.action.filterResources
]

# METADATA
# description: True if the request names a location for the object that it creates.
places(request) if request.input.action.resource[_].properties.location

# METADATA
# description: The recorded requests about one object in the warehouse.
governed contains request if {
	some request in recording.requests
	takes[request.input.action.operation]
	not places(request)
}

test_every_recorded_operation_is_in_the_tests_and_in_the_table if {
	recorded := {request.input.action.operation | some request in recording.requests}
	count(recorded) == 59
	recorded == (object.keys(takes) | object.keys(by_name)) | elsewhere
	recorded - object.keys(trino.operations.table) == set()
}

test_each_recorded_operation_is_allowed_to_who_holds_just_what_it_takes if {
	count(governed) == 45
	every request in governed {
		needed := needed_by(request)
		first := {alternatives[0] | some alternatives in needed}
		asked(request, "alice", first) == all_of(request)
		last := {alternatives[count(alternatives) - 1] | some alternatives in needed}
		asked(request, "alice", last) == all_of(request)
	}
}

test_each_recorded_operation_is_denied_to_who_lacks_one_of_what_it_takes if {
	every request in governed {
		needed := needed_by(request)
		every index, _ in needed {
			others := {one | some at, alternatives in needed; at != index; some one in alternatives}
			asked(request, "alice", others) == none_of(request)
		}
		asked(request, "eve", {one | some one in needed[_]}) == none_of(request)
	}
}

test_recorded_operations_that_nothing_is_asked_about_are_for_those_named if {
	every request in recording.requests {
		for_whom := object.get(by_name, request.input.action.operation, null)
		every user in {"alice", "bob", "otto", ""} {
			asked_of_nobody(request, user, for_whom)
		}
	}
}

# METADATA
# description: True if the answer is the expected one for this user.
asked_of_nobody(_, _, null)

asked_of_nobody(request, user, for_whom) if {
	is_set(for_whom)
	wanted := user in for_whom
	asked(request, user, set()) == wanted
}

test_a_place_of_ones_own_is_nobodys if {
	located := [request | some request in recording.requests; places(request)]
	count(located) == 2
	every request in located {
		every user in {"alice", "otto"} {
			asked(request, user, {one | some one in takes[request.input.action.operation][_]}) == false
		}
	}
}

test_what_is_in_a_catalog_without_warehouse_is_denied_unless_it_is_open if {
	functions := [request | some request in recording.requests; request.input.action.operation in elsewhere; contains(request.statement, "mem")]
	count(functions) == 5
	every request in functions {
		asked(request, "alice", {"namespace default get_metadata"}) == none_of(request)
		all_of(request) == answer(request) with input as as_user(request, "alice")
			with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_OPEN_CATALOGS": `["mem"]`})
			with http.send as world.gateway
	}
}

# ---- single operations ----------------------------------------------------------------------------------------------

# METADATA
# description: An object in the catalog of the warehouse.
table(schema, name) := {"table": {"catalogName": "ice", "schemaName": schema, "tableName": name}}

# METADATA
# description: An object with columns.
columns(schema, name, names) := object.union(table(schema, name), {"table": {"columns": names}})

# METADATA
# description: A function.
called(catalog, schema, name) := {"function": {"catalogName": catalog, "schemaName": schema, "functionName": name}}

# METADATA
# description: True if the operation is allowed while alice has these rights.
may(user, operation, resource, holds) := result if {
	result := trino.allow with input as world.input_of(user, {"operation": operation, "resource": resource})
		with data.holds as holds
		with opa.runtime as world.opa
		with http.send as world.gateway
}

# METADATA
# description: The target of a move.
moved(operation, resource, target, holds) := result if {
	action := {"operation": operation, "resource": resource, "targetResource": target}
	result := trino.allow with input as world.input_of("alice", action)
		with data.holds as holds
		with opa.runtime as world.opa
		with http.send as world.gateway
}

# METADATA
# description: The objects that alice sees while she has these rights.
sees(operation, things, holds) := result if {
	result := trino.batch with input as world.input_of("alice", {"operation": operation, "filterResources": things})
		with data.holds as holds
		with opa.runtime as world.opa
		with http.send as world.gateway
}

test_an_operation_nobody_knows_is_denied if {
	every operation in {"", "GrantTablePrivilege", "CreateRole", "allow", "selectfromcolumns", null, 7} {
		not may("otto", operation, table("sales", "orders"), {"table sales.orders read_data"})
	}
	not trino.allow with input as {} with opa.runtime as world.opa with http.send as world.gateway
	trino.batch == [] with input as {} with opa.runtime as world.opa
	trino.row_filters == [{"expression": "false"}] with input as {} with opa.runtime as world.opa
	trino.column_mask == {"expression": "NULL"} with input as {} with opa.runtime as world.opa
}

test_a_question_put_to_another_entry_point_is_denied if {
	holds := {"table sales.orders read_columns", "tabular sales.orders include_in_list"}
	not may("alice", "FilterTables", table("sales", "orders"), holds)
	sees("SelectFromColumns", [columns("sales", "orders", ["id"])], holds) == []
	[{"expression": "false"}] == trino.row_filters with input as world.input_of(
		"alice",
		{"operation": "SelectFromColumns", "resource": columns("sales", "orders", [])},
	)
		with data.holds as holds
		with opa.runtime as world.opa
		with http.send as world.gateway
}

test_somebody_without_a_name_may_nothing if {
	every user in {"", "  ", null} {
		not may(user, "ExecuteQuery", {}, set())
		not may(user, "ViewQueryOwnedBy", {"user": {"user": user}}, set())
	}
}

test_counting_takes_the_right_to_read if {
	may("alice", "SelectFromColumns", columns("sales", "orders", []), {"table sales.orders read_columns"})
	not may("alice", "SelectFromColumns", columns("sales", "orders", []), {"table sales.orders get_metadata"})
	not may("alice", "SelectFromColumns", table("sales", "orders"), {"table sales.orders read_columns"})
}

test_what_tells_about_a_table_is_read_by_who_reads_the_table if {
	every about in {"files", "partitions", "snapshots", "history", "manifests", "refs", "properties", "entries"} {
		name := concat("$", ["orders", about])
		may("alice", "SelectFromColumns", columns("sales", name, ["x"]), {"table sales.orders read_data"})
		not may("alice", "SelectFromColumns", columns("sales", name, ["x"]), {"table sales.orders get_metadata"})
		not may("alice", "SelectFromColumns", columns("sales", name, ["x"]), {"table sales.orders read_columns"})
		not may("alice", "DropTable", table("sales", name), {"table sales.orders drop"})
	}
	every name in {"orders$secrets", "orders$", "$files", " $files", "orders$files$files"} {
		not may("alice", "SelectFromColumns", columns("sales", name, ["x"]), {"table sales.orders read_data"})
	}
}

test_changes_of_a_table_are_read_by_who_reads_the_table if {
	may("alice", "ExecuteFunction", called("ice", "system", "table_changes"), {"warehouse get_config"})
	not may("alice", "ExecuteFunction", called("ice", "system", "table_changes"), set())
	not may("alice", "ExecuteFunction", called("ice", "system", "other"), {"warehouse get_config"})
	not may("alice", "CreateViewWithExecuteFunction", called("ice", "system", "table_changes"), {"warehouse get_config"})
	changed := columns("sales", "orders", ["id", "_change_type", "_change_ordinal"])
	may("alice", "SelectFromColumns", changed, {"table sales.orders read_columns"})
	not may("alice", "SelectFromColumns", changed, {"warehouse get_config"})

	# Trino checks all columns of the table and of the function, regardless of the query.
	not restricted("allow", {"operation": "SelectFromColumns", "resource": changed}, ["id", "region"])
}

test_functions_in_a_schema_are_run_by_who_sees_it if {
	every operation in {"ExecuteFunction", "CreateViewWithExecuteFunction", "ShowCreateFunction"} {
		may("alice", operation, called("ice", "sales", "f"), {"namespace sales get_metadata"})
		not may("alice", operation, called("ice", "sales", "f"), set())
		may("eve", operation, called("system", "builtin", "f"), set())
	}
	may("alice", "DropFunction", called("ice", "sales", "f"), {"namespace sales update_properties"})
	not may("alice", "DropFunction", called("ice", "sales", "f"), {"namespace sales get_metadata"})
	not may("alice", "DropFunction", called("system", "builtin", "f"), set())
	functions := [called("ice", "sales", "f"), called("ice", "hr", "g"), called("system", "builtin", "h")]
	sees("FilterFunctions", functions, {"namespace hr get_metadata"}) == [1, 2]
}

test_procedures_take_what_they_do if {
	every name in {"register_table", "unregister_table", "flush_metadata_cache"} {
		may("alice", "ExecuteProcedure", called("ice", "system", name), {"warehouse get_config"})
		not may("alice", "ExecuteProcedure", called("ice", "system", name), {"warehouse delete"})
		not may("alice", "ExecuteProcedure", called("ice", "sales", name), {"warehouse get_config"})
	}
	not may("alice", "ExecuteProcedure", called("ice", "system", "migrate"), {"warehouse delete", "warehouse get_config"})
	may("eve", "ExecuteProcedure", called("system", "runtime", "kill_query"), set())
	not may("eve", "ExecuteProcedure", called("system", "runtime", "other"), set())
	not may("eve", "ExecuteProcedure", called("system", "jdbc", "kill_query"), set())
}

test_files_from_elsewhere_are_added_by_nobody if {
	holds := {"table sales.t write_data", "table sales.t commit"}
	every name in {"OPTIMIZE", "EXPIRE_SNAPSHOTS", "remove_orphan_files", "rollback_to_snapshot"} {
		may("alice", "ExecuteTableProcedure", object.union(table("sales", "t"), {"function": {"functionName": name}}), holds)
	}
	every name in {"ADD_FILES", "add_files_from_table", "", "unheard_of"} {
		not may("alice", "ExecuteTableProcedure", object.union(table("sales", "t"), {"function": {"functionName": name}}), holds)
	}
	not may("alice", "ExecuteTableProcedure", table("sales", "t"), holds)
}

test_no_property_chooses_a_place if {
	every name in {"location", "LOCATION", "data_location"} {
		located := {"table": object.union(table("sales", "t").table, {"properties": {"format": "ORC", name: null}})}
		not may("alice", "CreateTable", located, {"namespace sales create_table"})
		not may("alice", "SetTableProperties", located, {"table sales.t commit"})
		not may("alice", "CreateMaterializedView", located, {"namespace sales create_table", "namespace sales create_view"})
	}
}

test_properties_without_names_are_refused if {
	every properties in [["location"], "location", 7] {
		odd := {"table": object.union(table("sales", "t").table, {"properties": properties})}
		not may("alice", "CreateTable", odd, {"namespace sales create_table"})
		not may("alice", "SetTableProperties", odd, {"table sales.t commit"})
	}
}

# METADATA
# description: True if any entry point allows anything for this request while the user holds every right.
given(request) if {
	trino.allow with input as request
		with opa.runtime as world.opa
		with http.send as everything
}

# METADATA
# description: A gateway that allows everything.
everything(request) := {"status_code": 200, "body": {"results": [{"id": check.id, "allowed": true} |
	some check in request.body.checks
]}}

# Trino queries OPA without strict errors. An error of a built-in function makes a rule undefined, which must deny.
test_a_value_of_another_type_is_a_no if {
	every operation, action in {
		"SelectFromColumns": object.union(table("sales", "t"), {"table": {"columns": []}}),
		"CreateTable": table("sales", "t"),
		"ShowSchemas": {"catalog": {"name": "ice"}},
		"DropSchema": {"schema": {"catalogName": "ice", "schemaName": "sales"}},
	} {
		asked := world.input_of("alice", {"operation": operation, "resource": action})
		given(asked)
		paths := {path | walk(asked, [path, value]); is_string(value); path[0] == "action"}
		count(paths) > 1
		users := {["context", "identity", "user"]}
		every path in paths | users {
			every wrong in [7, null, true, [], {}] {
				not given(json.patch(asked, [{"op": "replace", "path": path, "value": wrong}]))
			}
		}
	}
}

test_a_session_may_not_shorten_what_is_kept if {
	every name in {"expire_snapshots_min_retention", "remove_orphan_files_min_retention"} {
		property := {"catalogSessionProperty": {"catalogName": "ice", "propertyName": name}}
		not may("alice", "SetCatalogSessionProperty", property, {"warehouse get_config"})
	}
	statistics := {"catalogSessionProperty": {"catalogName": "ice", "propertyName": "statistics_enabled"}}
	not may("alice", "SetCatalogSessionProperty", statistics, {"warehouse get_config"})
	every name in [7, null, ["x"], {}] {
		nameless := {"catalogSessionProperty": {"catalogName": "ice", "propertyName": name}}
		not may("alice", "SetCatalogSessionProperty", nameless, {"warehouse get_config"})
	}
	other := {"catalogSessionProperty": {"catalogName": "other", "propertyName": "x"}}
	not may("alice", "SetCatalogSessionProperty", other, {"warehouse get_config"})
}

test_what_moves_takes_the_rights_to_leave_and_to_arrive if {
	holds := {"table sales.t rename", "table sales.t move", "namespace hr create_table"}
	every one in holds { not moved("RenameTable", table("sales", "t"), table("hr", "t"), holds - {one}) }
	moved("RenameTable", table("sales", "t"), table("hr", "t"), holds)
	not moved("RenameTable", table("sales", "t"), table("hr", "t"), {"table sales.t rename"})
	not moved("RenameTable", table("sales", "t"), table("hr", "t"), {"namespace hr create_table"})
	moved("RenameTable", table("sales", "t"), table("SALES", "t2"), {"table sales.t rename"})
	views := {"view sales.v rename", "view sales.v move", "namespace hr create_view"}
	every one in views { not moved("RenameView", table("sales", "v"), table("hr", "v"), views - {one}) }
	moved("RenameView", table("sales", "v"), table("SALES", "w"), {"view sales.v rename"})
	moved("RenameView", table("sales", "v"), table("hr", "v"), views)
	moved("RenameMaterializedView", table("sales", "v"), table("hr", "v"), views)
	not moved("RenameView", table("sales", "v"), table("hr", "v"), {"view sales.v rename"})
	not moved("RenameMaterializedView", table("sales", "v"), table("hr", "v"), {"view sales.v rename"})
	every target in [{}, table("hr", ""), table("sales", ""), table("sales", "a$files"), table("", "t")] {
		not moved("RenameTable", table("sales", "t"), target, holds)
	}
	elsewhere_ := {"table": {"catalogName": "scratch", "schemaName": "hr", "tableName": "t"}}
	not moved("RenameTable", table("sales", "t"), elsewhere_, holds)
	not moved("RenameTable", elsewhere_, table("hr", "t"), holds)
	lab := {"table": {"catalogName": "lab", "schemaName": "hr", "tableName": "t"}}
	not moved("RenameTable", table("sales", "t"), lab, holds | {"lab namespace hr create_table"})
	moved("RenameTable", lab, lab, {"lab table hr.t rename"})
	moved("RenameTable", elsewhere_, elsewhere_, set())
}

test_a_schema_moves_to_what_is_above_its_new_name if {
	to := {"schema": {"catalogName": "ice", "schemaName": "hr.people"}}
	from := {"schema": {"catalogName": "ice", "schemaName": "tmp"}}
	holds := {"namespace tmp move", "namespace hr create_namespace", "namespace hr accept_moved_namespace"}
	moved("RenameSchema", from, to, holds)
	every one in holds { not moved("RenameSchema", from, to, holds - {one}) }
	every catalog in {"scratch", "lab"} {
		elsewhere_ := {"schema": {"catalogName": catalog, "schemaName": "hr.people"}}
		not moved("RenameSchema", from, elsewhere_, holds | {sprintf("lab %s", [one]) | some one in holds})
	}
}

test_a_nested_schema_is_made_in_the_one_above if {
	schema := {"schema": {"catalogName": "ice", "schemaName": "a.b.c", "properties": {}}}
	may("alice", "CreateSchema", schema, {"namespace a.b create_namespace"})
	not may("alice", "CreateSchema", schema, {"warehouse create_namespace"})
	may("alice", "ShowTables", {"schema": {"catalogName": "ice", "schemaName": "a.b"}}, {"namespace a.b list_tables"})
}

test_blank_and_missing_names_mean_nothing if {
	holds := {"table sales.orders drop", "table orders drop", "table . drop", "warehouse get_config", "table sales drop"}
	every thing in [
		table("", "orders"),
		table(" ", "orders"),
		table("sales", ""),
		table("sales", " "),
		table("sales.", "orders"),
		table(".sales", "orders"),
		{"table": {"catalogName": "ice", "tableName": "orders"}},
		{"table": {"catalogName": "ice", "schemaName": "sales"}},
		{"table": {"schemaName": "sales", "tableName": "orders"}},
		{"table": {"catalogName": "", "schemaName": "sales", "tableName": "orders"}},
		{"table": {"catalogName": "other", "schemaName": "sales", "tableName": "orders"}},
		{"table": null},
		{},
	] {
		not may("alice", "DropTable", thing, holds)
	}
	not may("alice", "AccessCatalog", {"catalog": {"name": ""}}, holds)
	not may("alice", "AccessCatalog", {"catalog": {}}, holds)
	sees("FilterTables", [table("", "orders"), {}], {"tabular orders include_in_list"}) == []
}

test_materialized_views_are_views if {
	every operation, action in {
		"RefreshMaterializedView": "commit",
		"SetMaterializedViewProperties": "commit",
		"DropMaterializedView": "drop",
	} {
		may("alice", operation, table("sales", "mv"), {concat(" ", ["view sales.mv", action])})
		not may("alice", operation, table("sales", "mv"), {"view sales.mv get_metadata", "table sales.mv drop"})
	}
}

test_what_trino_keeps_in_a_catalog_is_looked_at_by_who_may_use_it if {
	holds := {"warehouse get_config"}
	may("alice", "SelectFromColumns", columns("information_schema", "tables", []), holds)
	not may("alice", "SelectFromColumns", columns("information_schema", "tables", []), set())
	may("alice", "ShowTables", {"schema": {"catalogName": "ice", "schemaName": "information_schema"}}, holds)
	not may("alice", "SelectFromColumns", columns("system", "iceberg_tables", []), holds)
	may("alice", "SelectFromColumns", columns("system", "iceberg_tables", []), {"warehouse list_everything"})
	not may("alice", "CreateTable", table("information_schema", "t"), holds | {"namespace information_schema create_table"})
	not may("alice", "CreateViewWithSelectFromColumns", columns("information_schema", "t", []), holds)
}

# METADATA
# description: A table of the system catalog.
of_system(schema, name) := {"table": {"catalogName": "system", "schemaName": schema, "tableName": name, "columns": []}}

test_the_system_catalog_is_open_as_far_as_trino_asks_about_each_thing if {
	every user in {"eve", "otto"} {
		may(user, "AccessCatalog", {"catalog": {"name": "system"}}, set())
		may(user, "ShowTables", {"schema": {"catalogName": "system", "schemaName": "runtime"}}, set())
		may(user, "SelectFromColumns", of_system("runtime", "queries"), set())
		may(user, "SelectFromColumns", of_system("jdbc", "tables"), set())
		may(user, "SelectFromColumns", of_system("metadata", "catalogs"), set())
		not may(user, "DropTable", of_system("jdbc", "tables"), set())
		not may(user, "DropTable", of_system("runtime", "queries"), set())
		not may(user, "SelectFromColumns", of_system("elsewhere", "queries"), set())
		not may(user, "CreateView", of_system("jdbc", "tables"), set())
	}
	may("otto", "SelectFromColumns", of_system("runtime", "nodes"), set())
	not may("eve", "SelectFromColumns", of_system("runtime", "nodes"), set())
	not may("otto", "DropSchema", {"schema": {"catalogName": "system", "schemaName": "runtime"}}, set())
	not may("otto", "DropTable", of_system("runtime", "nodes"), set())
	not may("otto", "SetCatalogSessionProperty", {"catalogSessionProperty": {"catalogName": "system"}}, set())
}

test_lists_tell_of_each_thing_apart if {
	schemas := [{"schema": {"catalogName": "ice", "schemaName": each}} | some each in ["information_schema", "a", "b"]]
	sees("FilterSchemas", schemas, {"warehouse get_config", "namespace b include_in_list"}) == [0, 2]
	tables := [table("sales", "t"), table("sales", "u"), table("hr", "t")]
	sees("FilterTables", tables, {"tabular sales.u include_in_list", "tabular hr.t include_in_list"}) == [1, 2]
	own := [table("information_schema", "tables"), table("system", "iceberg_tables")]
	sees("FilterTables", own, {"warehouse get_config"}) == [0]
	catalogs := [{"catalog": {"name": each}} | some each in ["ice", "system", "scratch", "other"]]
	sees("FilterCatalogs", catalogs, {"warehouse get_config"}) == [0, 1, 2]
	sees("FilterCatalogs", catalogs, set()) == [1, 2]
	sees("FilterColumns", [columns("sales", "t", ["a"]), columns("sales", "t", ["b"])], {"tabular sales.t get_metadata"}) == []
	queries := [{"user": {"user": "alice"}}, {"user": {"user": "bob"}}]
	sees("FilterViewQueryOwnedBy", queries, set()) == [0]
}

test_masks_are_null_where_reading_is_denied if {
	column := {"column": {
		"catalogName": "ice",
		"schemaName": "sales",
		"tableName": "t",
		"columnName": "c",
		"columnType": "timestamp(3) with time zone",
	}}
	unclear := {"column": object.remove(column.column, ["columnType"])}
	every each, expression in {column: "CAST(NULL AS timestamp(3) with time zone)", unclear: "NULL"} {
		action := {"operation": "GetColumnMask", "resource": each}
		{"expression": expression} == trino.column_mask with input as world.input_of("alice", action)
			with data.holds as {"table sales.t get_metadata"}
			with opa.runtime as world.opa
			with http.send as world.gateway
		{} == trino.column_mask with input as world.input_of("alice", action)
			with data.holds as {"table sales.t read_columns"}
			with opa.runtime as world.opa
			with http.send as world.gateway
		{"expression": expression} == trino.column_mask with input as world.input_of("alice", object.union(action, {"operation": "X"}))
			with data.holds as {"table sales.t read_columns"}
			with opa.runtime as world.opa
			with http.send as world.gateway
	}
}

test_of_columns_of_two_tables_those_of_the_unreadable_one_are_masked if {
	things := [{"column": {"catalogName": "ice", "schemaName": "sales", "tableName": each, "columnName": "c", "columnType": "int"}} |
		some each in ["t", "u", ""]
	]
	result := trino.batch_column_masks with input as world.input_of(
		"alice",
		{"operation": "GetColumnMask", "filterResources": array.concat(things, [{}])},
	)
		with data.holds as {"view sales.t select"}
		with opa.runtime as world.opa
		with http.send as world.gateway
	[each.index | some each in result] == [1, 2, 3]
	result[2].viewExpression.expression == "NULL"
}

test_groups_of_trino_give_nothing_and_take_nothing if {
	every request in recording.requests {
		every user in {"alice", "eve", "otto"} {
			every holds in [set(), {one | some one in takes[request.input.action.operation][_]}] {
				in_groups(request, user, holds, []) == in_groups(request, user, holds, ["admins", "owners", "denied"])
			}
		}
	}
}

# METADATA
# description: The answer to a user in these groups of Trino.
in_groups(request, user, holds, groups) := result if {
	result := answer(request) with input as object.union(as_user(request, user), {"context": {"identity": {"groups": groups}}})
		with data.holds as holds
		with opa.runtime as world.opa
		with http.send as world.gateway
}

# ---- access to some columns ---------------------------------------------------------------------------------------

# METADATA
# description: The answer to alice, who may read only these columns of `sales.orders`.
restricted(entry, action, names) := result if {
	result := data.trino[entry] with input as world.input_of("alice", action)
		with data.holds as {"table sales.orders read_columns"}
		with data.columns as {"table sales.orders read_columns": names}
		with opa.runtime as world.opa
		with http.send as world.gateway
}

# METADATA
# description: True if alice may select these columns while she may read those.
selects(asked_for, names) if {
	restricted("allow", {"operation": "SelectFromColumns", "resource": columns("sales", "orders", asked_for)}, names)
}

test_granted_columns_are_read_and_no_others if {
	selects(["id"], ["id", "region"])
	selects(["region", "id"], ["id", "region"])
	not selects(["ssn"], ["id", "region"])
	not selects(["id", "ssn"], ["id", "region"])
	every hidden in {"$path", "$partition", "$file_modified_time", "", null, "ID"} {
		not selects(["id", hidden], ["id", "region"])
	}
}

test_rows_are_counted_by_who_reads_some_column_and_by_nobody_else if {
	selects([], ["id"])
	not selects([], [])
	not selects(null, ["id"])
	not selects("id", ["id"])
}

test_names_of_columns_are_compared_as_trino_writes_them if {
	selects(["region"], ["ReGion"])
	selects(["straße", "größe"], ["Straße", "GRÖSSE", "GRÖßE"])

	# In lower case, Java writes this letter as two, OPA as one.
	not selects(["id"], ["\u0130d"])

	# At the end of a word, Java uses another lower-case sigma.
	not selects(["\u03b1\u03c3"], ["\u0391\u03a3"])
	selects(["id"], ["id", "\u0130d"])
}

test_who_reads_some_columns_is_told_of_those_alone if {
	listed := {"operation": "FilterColumns", "filterResources": [columns("sales", "orders", ["id", "ssn", "region", "$path"])]}
	restricted("batch", listed, ["region", "id"]) == [0, 2]
	restricted("batch", listed, []) == []
	all_ := [0, 1, 2, 3]
	all_ == trino.batch with input as world.input_of("alice", listed)
		with data.holds as {"tabular sales.orders get_metadata", "table sales.orders read_columns"}
		with data.columns as {"table sales.orders read_columns": ["id"]}
		with opa.runtime as world.opa
		with http.send as world.gateway
	about := {"operation": "FilterColumns", "filterResources": [columns("sales", "orders$files", ["id", "file_path"])]}
	restricted("batch", about, ["id", "file_path"]) == []
	restricted("allow", {"operation": "ShowColumns", "resource": table("sales", "orders")}, ["id"])
	not restricted("allow", {"operation": "ShowColumns", "resource": table("sales", "orders")}, [])
	not restricted("allow", {"operation": "ShowColumns", "resource": table("sales", "orders$files")}, ["id"])
	not restricted("allow", {"operation": "ShowCreateTable", "resource": table("sales", "orders")}, ["id"])
}

test_what_is_not_granted_of_a_table_is_null if {
	asked_about := [{"column": {
		"catalogName": "ice",
		"schemaName": "sales",
		"tableName": name,
		"columnName": column,
		"columnType": "varchar(7)",
	}} |
		some [name, column] in [["orders", "id"], ["orders", "ssn"], ["orders", "$path"], ["orders$files", "id"], ["t", "id"]]
	]
	action := {"operation": "GetColumnMask", "filterResources": asked_about}
	null_ := {"expression": "CAST(NULL AS varchar(7))"}
	restricted("batch_column_masks", action, ["id"]) == [{"index": index, "viewExpression": null_} | some index in [1, 3, 4]]
	restricted("batch_column_masks", action, []) == [{"index": index, "viewExpression": null_} |
		some index in [0, 1, 2, 3, 4]
	]
	restricted("column_mask", {"operation": "GetColumnMask", "resource": asked_about[0]}, ["id"]) == {}
	restricted("column_mask", {"operation": "GetColumnMask", "resource": asked_about[1]}, ["id"]) == null_
}

test_rows_are_not_filtered_for_who_reads_some_columns if {
	every name, filters in {"orders": [], "orders$files": [{"expression": "false"}], "t": [{"expression": "false"}]} {
		restricted("row_filters", {"operation": "GetRowFilters", "resource": table("sales", name)}, ["id"]) == filters
	}
	all_rows := {"operation": "GetRowFilters", "resource": table("sales", "orders")}
	restricted("row_filters", all_rows, []) == [{"expression": "false"}]
}

test_reading_some_columns_is_no_other_right if {
	reading := {"FilterColumns", "GetColumnMask", "GetRowFilters", "SelectFromColumns", "ShowColumns"}
	done := {operation |
		some operation, row in trino.operations.table
		row.needs
		not startswith(operation, "Filter")
		thing := {
			"table": {
				"catalogName": "ice",
				"schemaName": "sales",
				"tableName": "orders",
				"columns": ["id"],
			},
			"function": {"functionName": "optimize"},
		}
		restricted("allow", {"operation": operation, "resource": thing, "targetResource": table("sales", "u")}, ["id"])
	}
	done - reading == set()
	"SelectFromColumns" in done
}

test_an_ownerless_view_within_one_that_runs_as_its_owner_is_not_read if {
	within := columns("sales", "v", ["id"])
	not may("alice", "CreateViewWithSelectFromColumns", within, {"view sales.v select", "view sales.v grant_select"})
	owned := {"owned view sales.v select", "owned view sales.v grant_select"}
	may("alice", "CreateViewWithSelectFromColumns", within, owned)
}

test_columns_of_a_view_are_read_by_who_may_select_from_it if {
	holds := {"view sales.v select"}
	may("alice", "SelectFromColumns", columns("sales", "v", ["id"]), holds)
	not may("alice", "SelectFromColumns", columns("sales", "v", ["id"]), {"table sales.v read_data"})
}

# ---- tables with row filters and masks ---------------------------------------------------------------------------

# METADATA
# description: |
#   The answer to alice, who may read `sales.orders` with a row filter, and with masks of `ssn` and `city`. All other
#   rights that she has are in `holds`.
governed_by(entry, action, holds) := result if {
	result := data.trino[entry] with input as world.input_of("alice", action)
		with data.holds as {"table sales.orders read_columns"} | holds
		with data.columns as {"table sales.orders read_columns": ["id", "SSN", "city"]}
		with data.restrictions as {"table sales.orders read_columns": {
			"row-filter": "id < 5 OR city = 'Oslo'",
			"column-masks": [
				{"column": "SSN", "expression": "'***'"},
				{"column": "city", "expression": "CAST(NULL AS varchar)"},
			],
		}}
		with opa.runtime as world.opa
		with http.send as world.gateway
}

# METADATA
# description: True if alice may do the operation with the restricted table.
governed_may(operation, thing, holds) if governed_by("allow", {"operation": operation, "resource": thing}, holds)

# METADATA
# description: A column of a table.
column_of(name, column) := {"column": {
	"catalogName": "ice",
	"schemaName": "sales",
	"tableName": name,
	"columnName": column,
	"columnType": "varchar",
}}

# METADATA
# description: True if a view of alice may show these columns of the restricted table, or of another table, to others.
lends(name, names, holds) if governed_may("CreateViewWithSelectFromColumns", columns("sales", name, names), holds)

test_a_view_of_a_restricted_owner_shows_what_the_owner_may_read_and_grant if {
	granting := {"table sales.orders grant_select"}
	lends("orders", ["id", "ssn"], granting)
	lends("orders", [], granting)
	not lends("orders", ["id"], set())
	not lends("orders", ["id", "born"], granting)
	not lends("orders$partitions", ["id"], granting)
	not lends("t", ["id"], granting)
}

test_a_row_filter_is_evaluated_before_the_predicates_of_the_query if {
	filters := governed_by("row_filters", {"operation": "GetRowFilters", "resource": table("sales", "orders")}, set())
	filters == [
		{"expression": "id < 5 OR city = 'Oslo'"},
		{"expression": "CASE WHEN random() < 2e0 THEN (id < 5 OR city = 'Oslo') ELSE false END"},
	]
	metadata := {"operation": "GetRowFilters", "resource": table("sales", "orders$partitions")}
	governed_by("row_filters", metadata, set()) == [{"expression": "false"}]
	other := {"operation": "FilterTables", "resource": table("sales", "orders")}
	governed_by("row_filters", other, set()) == [{"expression": "false"}]
}

test_masked_columns_have_their_mask_and_unreadable_ones_are_null if {
	things := [column_of("orders", name) | some name in ["id", "ssn", "email", "$path", "city"]]
	masks := governed_by("batch_column_masks", {"operation": "GetColumnMask", "filterResources": things}, set())
	null_ := "CAST(NULL AS varchar)"
	[[mask.index, mask.viewExpression.expression] | some mask in masks] == [[1, "'***'"], [2, null_], [4, null_]]
	ssn := {"operation": "GetColumnMask", "resource": column_of("orders", "ssn")}
	governed_by("column_mask", ssn, set()) == {"expression": "'***'"}
	id := {"operation": "GetColumnMask", "resource": column_of("orders", "id")}
	governed_by("column_mask", id, set()) == {}
	hidden := {"operation": "GetColumnMask", "resource": column_of("orders", "email")}
	governed_by("column_mask", hidden, set()) == {"expression": null_}
}

# METADATA
# description: Columns of a table that Trino adds. They are in no list of readable columns.
of_trino := {"$path", "$partition", "$file_modified_time"}

# METADATA
# description: The masked columns of `sales.orders` if the gateway names these as readable.
masked_of_trino(names) := {asked_about[mask.index].column.columnName | some mask in masks} if {
	asked_about := [column_of("orders", name) | some name in of_trino]
	masks := restricted("batch_column_masks", {"operation": "GetColumnMask", "filterResources": asked_about}, names)
}

test_columns_of_trino_are_masked_only_without_a_valid_answer if {
	masked_of_trino(["id"]) == set()
	masked_of_trino([]) == of_trino
	masked_of_trino([7]) == of_trino
	masked_of_trino(null) == of_trino

	# A column of the table with such a name is masked like any other.
	things := [column_of("orders", "$path"), column_of("orders", "$partition")]
	masks := trino.batch_column_masks with input as world.input_of(
		"alice",
		{"operation": "GetColumnMask", "filterResources": things},
	)
		with data.holds as {"table sales.orders read_columns"}
		with data.columns as {"table sales.orders read_columns": ["id", "$path"]}
		with data.restrictions as {"table sales.orders read_columns": {"column-masks": [{
			"column": "$path",
			"expression": "'x'",
		}]}}
		with opa.runtime as world.opa
		with http.send as world.gateway
	masks == [{"index": 0, "viewExpression": {"expression": "'x'"}}]

	# All columns of another table, and all other unreadable columns, are masked.
	action := {"operation": "GetColumnMask", "filterResources": [column_of("t", "$path"), column_of("orders", "$row_id")]}
	[mask.index | some mask in restricted("batch_column_masks", action, ["id"])] == [0, 1]
}

test_a_restricted_table_is_read_by_its_current_columns_only if {
	governed_may("SelectFromColumns", columns("sales", "orders", ["id", "ssn", "city"]), set())
	governed_may("SelectFromColumns", columns("sales", "orders", []), set())
	every hidden in ["mail", "$path", "$partition", "$file_modified_time", "$row_id", "_change_type"] {
		not governed_may("SelectFromColumns", columns("sales", "orders", ["id", hidden]), set())
	}
	metadata := columns("sales", "orders$files", ["id"])
	not governed_may("SelectFromColumns", metadata, {"table sales.orders commit", "table sales.orders get_metadata"})
}

test_restrictions_of_all_alternatives_apply if {
	verdict := {"needs": [["x", "y", "z"]]}
	holding := {
		"x": {"columns": {"a"}, "filters": {"a > 1"}, "masks": {"a": "1", "b": "2"}},
		"y": {"columns": "all", "filters": {"a > 2"}, "masks": {"a": "3", "b": "2"}},
	}
	trino._extent(verdict, holding) == {
		"columns": "all",
		"filters": {"a > 1", "a > 2"},
		"masks": {"a": {"1", "3"}, "b": {"2"}},
	}
	readable := {trino._table_of(column_of("orders", "a")): trino._extent(verdict, holding)}
	trino._mask(column_of("orders", "a")) == {"expression": "CAST(NULL AS varchar)"} with trino._readable as readable
	trino._mask(column_of("orders", "b")) == {"expression": "2"} with trino._readable as readable
}

test_a_restricted_table_grows_only_where_a_policy_permits_it if {
	append := {"append table sales.orders write_data", "append table sales.orders commit"}
	governed_may("InsertIntoTable", table("sales", "orders"), append)
	every one in append { not governed_may("InsertIntoTable", table("sales", "orders"), append - {one}) }
	changed := object.union(columns("sales", "orders", ["id"]), {"function": {"functionName": "optimize"}})
	every operation in {
		"AddColumn",
		"AlterColumn",
		"DeleteFromTable",
		"DropColumn",
		"ExecuteTableProcedure",
		"RenameColumn",
		"SetTableProperties",
		"TruncateTable",
		"UpdateTableColumns",
	} {
		not governed_may(operation, changed, append)
		governed_may(operation, changed, {"table sales.orders write_data", "table sales.orders commit"})
	}
	whole_table := {"table sales.orders write_data", "table sales.orders commit"}
	not governed_may("InsertIntoTable", table("sales", "orders"), whole_table)
}

test_only_reads_of_columns_request_restrictions if {
	every row in trino.operations.table {
		every need in object.get(row, "needs", []) {
			every alternative in split(need, " | ") {
				[what, action] := split(alternative, " ")
				expected := {true: {"restrictions": "trino"}, false: {}}[action == "read_columns"]
				object.remove(trino.operations._with(what, action), ["append"]) == expected
			}
		}
	}
}

# ---- facts for guardrails --------------------------------------------------------------------------------------------

# METADATA
# description: A gateway that allows checks with exactly the facts in `data.told`.
telling(request) := {"status_code": 200, "body": {"results": [{"id": check.id, "allowed": allowed} |
	some check in request.body.checks
	some on in check.operation
	allowed := on.action in data.told
]}}

# METADATA
# description: True if the bridge checks exactly these actions.
tells(action, told) := result if {
	result := trino.allow with input as world.input_of("alice", action)
		with data.told as told
		with opa.runtime as world.opa
		with http.send as telling
}

test_guardrails_are_told_what_the_gateway_would_tell_them if {
	made := object.union(table("sales", "t"), {"table": {"properties": {"format": "ORC"}}})
	creating := {"action": "create_table", "name": "t", "properties": ["format"], "explicit_location": false}
	tells({"operation": "CreateTable", "resource": made}, {creating})
	not tells({"operation": "CreateTable", "resource": made}, {{"action": "create_table"}})
	viewing := {"action": "create_view", "name": "v", "properties": [], "explicit_location": false}
	tells({"operation": "CreateView", "resource": table("sales", "v")}, {viewing})
	schema := {"schema": {"catalogName": "ice", "schemaName": "a.b", "properties": {"owner": "x"}}}
	nested := {"action": "create_namespace", "namespace": ["a", "b"], "properties": ["owner"]}
	tells({"operation": "CreateSchema", "resource": schema}, {nested})
	set_ := {"operation": "SetTableProperties", "resource": made}
	tells(set_, {{"action": "commit", "updated_properties": ["format"]}})
	renamed := {"operation": "RenameTable", "resource": table("sales", "t"), "targetResource": table("hr", "u")}
	tells(renamed, {
		{"action": "rename", "destination_name": "u", "destination_namespace": ["hr"]},
		{"action": "move", "destination_name": "u", "destination_namespace": ["hr"]},
		{"action": "create_table", "name": "u"},
	})
}
