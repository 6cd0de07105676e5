# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Requirements of Trino's operations
# description: |
#   One row for each operation. Operations without a row are denied. `needs` lists checks by the gateway, which must all
#   be allowed; one of the alternatives between bars is enough. A check is the type of an object and an action of the
#   gateway. `into` is the target namespace, and `above` is the parent of a new schema. `may` names the users for whom
#   no check is needed: everybody, operators, nobody, or owners (the owner of the query, and operators).
package trino.operations

import data.trino.names
import data.trino.settings

# METADATA
# description: The rows of all groups below.
table := object.union_n([_sessions, _catalogs, _schemas, _tables, _views, _functions, _reading])

# METADATA
# description: |
#   Operations on sessions and queries. Impersonation is denied, because Trino would check the rights of the other user,
#   and reuses the catalog session of one user for the next one.
_sessions := {
	"ExecuteQuery": {"may": "everybody"},
	"SetSystemSessionProperty": {"may": "everybody"},
	"SetCatalogSessionProperty": {"needs": ["warehouse get_config"]},
	"ImpersonateUser": {"may": "nobody"},
	"ViewQueryOwnedBy": {"may": "owners"},
	"FilterViewQueryOwnedBy": {"may": "owners"},
	"KillQueryOwnedBy": {"may": "owners"},
	"ReadSystemInformation": {"may": "operators"},
	"WriteSystemInformation": {"may": "operators"},
}

# METADATA
# description: |
#   Catalogs. Only operators create or drop them, because a new catalog can connect to everything that Trino can reach.
_catalogs := {
	"AccessCatalog": {"needs": ["warehouse get_config"], "looks": true},
	"FilterCatalogs": {"needs": ["warehouse get_config"], "looks": true},
	"ShowSchemas": {"needs": ["warehouse list_namespaces"], "looks": true},
	"CreateCatalog": {"may": "operators"},
	"DropCatalog": {"may": "operators"},
}

# METADATA
# description: |
#   Namespaces. A rename needs the rights of a move at the gateway. Trino cannot change the owner of a namespace,
#   because it knows user names without their provider; the right to change it is checked nevertheless.
_schemas := {
	"CreateSchema": {"needs": ["above create_namespace"]},
	"DropSchema": {"needs": ["namespace delete"]},
	"RenameSchema": {"needs": ["namespace move", "into-above create_namespace", "into-above accept_moved_namespace"]},
	"SetSchemaAuthorization": {"needs": ["namespace change_ownership"]},
	"ShowCreateSchema": {"needs": ["namespace get_metadata"]},
	"FilterSchemas": {"needs": ["namespace include_in_list"], "looks": true},
	"ShowTables": {"needs": ["namespace list_tables"], "looks": true},
	"ShowFunctions": {"needs": ["namespace get_metadata"], "looks": true},
}

# METADATA
# description: |
#   Tables. A change of metadata is a commit; a change of rows also needs credentials that can write. `UPDATE`, `MERGE`
#   and `DELETE` also read, which Trino checks by SelectFromColumns. `INSERT` appends to a `grown` table, which a data
#   policy can permit although it restricts the user.
_tables := {
	"CreateTable": {"needs": ["namespace create_table"]},
	"DropTable": {"needs": ["table drop"]},
	"RenameTable": {"needs": ["table rename", "table move", "into create_table"]},
	"SetTableAuthorization": {"needs": ["table change_ownership"]},
	"SetTableProperties": {"needs": ["table commit"]},
	"SetTableComment": {"needs": ["table commit"]},
	"SetColumnComment": {"needs": ["table commit | view commit"]},
	"AddColumn": {"needs": ["table commit"]},
	"AlterColumn": {"needs": ["table commit"]},
	"DropColumn": {"needs": ["table commit"]},
	"RenameColumn": {"needs": ["table commit"]},
	"InsertIntoTable": {"needs": ["grown write_data", "grown commit"]},
	"DeleteFromTable": {"needs": ["table write_data", "table commit"]},
	"UpdateTableColumns": {"needs": ["table write_data", "table commit"]},
	"TruncateTable": {"needs": ["table write_data", "table commit"]},
	"ExecuteTableProcedure": {"needs": ["table write_data", "table commit"]},
}

# METADATA
# description: |
#   Views and materialized views, which have an additional table. For a view that runs as its owner, Trino checks the
#   rights of the owner. Readers of the view get access through the owner, which is a kind of grant; the owner must
#   therefore hold the right to grant it. A view inside it must run as its own owner: Trino would read an ownerless view
#   with the outer owner's rights, and other users may replace its SQL.
_views := {
	"CreateView": {"needs": ["namespace create_view"]},
	"DropView": {"needs": ["view drop"]},
	"RenameView": {"needs": ["view rename", "view move", "into create_view"]},
	"SetViewComment": {"needs": ["view commit"]},
	"SetViewAuthorization": {"needs": ["view change_ownership", "view commit"]},
	"CreateMaterializedView": {"needs": ["namespace create_view", "namespace create_table"]},
	"RefreshMaterializedView": {"needs": ["view commit"]},
	"SetMaterializedViewProperties": {"needs": ["view commit"]},
	"DropMaterializedView": {"needs": ["view drop"]},
	"RenameMaterializedView": {"needs": ["view rename", "view move", "into create_view"]},
	"CreateViewWithSelectFromColumns": {"needs": [
		"table read_columns | about read_data | lent-view select",
		"read grant_select | lent-view grant_select",
	]},
}

# METADATA
# description: |
#   Functions, which the catalog does not store. A user that may create a view may also create a function. Procedures
#   name their table in their arguments, which Trino does not send: see `procedures`.
_functions := {
	"CreateFunction": {"needs": ["namespace create_view"]},
	"DropFunction": {"needs": ["namespace update_properties"]},
	"ShowCreateFunction": {"needs": ["namespace get_metadata"]},
	"FilterFunctions": {"needs": ["namespace get_metadata"]},
	"ExecuteFunction": {"needs": ["namespace get_metadata"]},
	"CreateViewWithExecuteFunction": {"needs": ["namespace get_metadata"]},
	"ExecuteProcedure": {"needs": []},
}

# METADATA
# description: |
#   Reading. If `read_columns` is allowed for some columns only, the user can read and list only those, and the others
#   are masked. A query without columns (`count(*)`) reads the table. Metadata tables need the right to read all
#   columns: `orders$files` contains the minimum and maximum of each column. Row filters and masks are also checked as
#   reads, so that a user without access gets no rows and only NULL values.
_reading := {
	"SelectFromColumns": {"needs": ["table read_columns | about read_data | read-view select"], "looks": true},
	"GetRowFilters": {"needs": ["table read_columns | about read_data | read-view select"], "looks": true},
	"GetColumnMask": {"needs": ["table read_columns | about read_data | read-view select"], "looks": true},
	"ShowColumns": {"needs": ["read get_metadata | read-view get_metadata | table read_columns"], "looks": true},
	"ShowCreateTable": {"needs": ["read get_metadata | read-view get_metadata"]},
	"FilterColumns": {"needs": ["listed get_metadata | table read_columns"], "looks": true},
	"FilterTables": {"needs": ["listed include_in_list"], "looks": true},
}

# METADATA
# description: |
#   Procedures of a catalog. After the first two, Trino checks the table itself. `rollback_to_snapshot` names its table
#   in an argument that Trino does not send. It therefore needs the right to change everything in the warehouse. `ALTER
#   TABLE … EXECUTE rollback_to_snapshot` needs the right on that table only.
procedures := {
	"register_table": "warehouse get_config",
	"unregister_table": "warehouse get_config",
	"flush_metadata_cache": "warehouse get_config",
	"rollback_to_snapshot": "warehouse delete",
}

# METADATA
# description: |
#   Permitted procedures of a table. Procedures that add existing files to a table are not permitted, because no
#   component checks the location of these files.
table_procedures := {
	"drop_extended_stats",
	"expire_snapshots",
	"optimize",
	"optimize_manifests",
	"remove_orphan_files",
	"rollback_to_snapshot",
}

# METADATA
# description: |
#   Schemas that Trino adds to each catalog. Trino checks each object that `information_schema` lists. `system` lists
#   the tables of a catalog without checks.
_own_schemas := {"information_schema": "warehouse get_config", "system": "warehouse list_everything"}

# METADATA
# description: Schemas of the catalog `system` that every user may read. Trino checks each object that they list.
_system_schemas := {"information_schema", "jdbc", "metadata"}

# METADATA
# description: Properties that set a location. They are refused, because the gateway chooses locations.
_places := {"data_location", "location"}

# METADATA
# description: |
#   The requirement of an operation on an object: `{"free": true}` if no check is needed, or `needs`, a list of lists of
#   checks for `batch-check`. One check of each inner list must be allowed. Undefined if the operation is denied.
verdict(operation, thing, target) := {"free": true} if {
	_free(operation, thing, target)
} else := {"needs": needs} if {
	not _refused(operation, thing)
	names.warehouse(thing)
	needs := [[check |
		some alternative in split(need, " | ")
		check := _check(alternative, thing, target)
	] |
		some need in _needs(operation, thing)
		not _stays(need, thing, target)
	]
	count(needs) > 0
	every alternatives in needs { count(alternatives) > 0 }
}

# METADATA
# description: A rename within the same schema needs no right to move.
_stays(need, thing, target) if {
	_moving(need)
	names.catalog_of(thing) == names.catalog_of(target)
	lower(names.schema_of(thing)) == lower(names.schema_of(target))
	names.plain(target)
}

# METADATA
# description: The right that a move needs on the target schema.
_moving(need) if startswith(need, "into ")

# METADATA
# description: The right to move the table or view.
_moving(need) if need in {"table move", "view move"}

# METADATA
# description: Every user may do the operation without a check.
_free(operation, _, _) if table[operation].may == "everybody"

# METADATA
# description: Operators may do the operation.
_free(operation, _, _) if {
	table[operation].may in {"operators", "owners"}
	input.context.identity.user in settings.operators
}

# METADATA
# description: The owner of a query may do the operation.
_free(operation, thing, _) if {
	table[operation].may == "owners"
	thing.user.user == input.context.identity.user
}

# METADATA
# description: Every user may do the operation in open catalogs, and between them.
_free(operation, thing, target) if {
	table[operation].needs
	names.catalog_of(thing) in settings.open_catalogs
	every each in {"table", "schema"} {
		object.get(target, [each, "catalogName"], names.catalog_of(thing)) in settings.open_catalogs
	}
}

# METADATA
# description: Every user may read these objects of the catalog `system`.
_free(operation, thing, _) if {
	names.catalog_of(thing) == "system"
	_open_in_system(operation, thing)
}

# METADATA
# description: The catalog `system` and its schemas.
_open_in_system(operation, thing) if {
	table[operation].looks
	not thing.table
}

# METADATA
# description: Tables for whose rows Trino makes separate checks.
_open_in_system(operation, thing) if {
	table[operation].looks
	thing.table.schemaName in _system_schemas
}

# METADATA
# description: The table of queries. Trino checks each query.
_open_in_system(operation, thing) if {
	table[operation].looks
	thing.table.schemaName == "runtime"
	thing.table.tableName == "queries"
}

# METADATA
# description: The other tables of the schema `runtime`, for operators only.
_open_in_system(operation, thing) if {
	table[operation].looks
	thing.table.schemaName == "runtime"
	input.context.identity.user in settings.operators
}

# METADATA
# description: The built-in functions of Trino.
_open_in_system(operation, thing) if {
	operation in {"CreateViewWithExecuteFunction", "ExecuteFunction", "FilterFunctions", "ShowCreateFunction"}
	thing.function.schemaName == "builtin"
}

# METADATA
# description: The procedure that ends a query. Trino checks the owner of the query next.
_open_in_system("ExecuteProcedure", thing) if {
	thing.function.schemaName == "runtime"
	thing.function.functionName == "kill_query"
}

# METADATA
# description: |
#   Refused: properties that set a location.
_refused(_, thing) if {
	some name, _ in thing[_].properties
	lower(name) in _places
}

# METADATA
# description: |
#   Refused: a table without a readable name, because guardrails would not receive the name.
_refused(_, thing) if {
	thing.table
	not names.read(thing)
}

# METADATA
# description: |
#   Refused: properties that are not an object.
_refused(_, thing) if {
	some properties in [given | given := thing[_].properties]
	not is_object(properties)
}

# METADATA
# description: |
#   Refused: procedures of a table that are not in the list.
_refused("ExecuteTableProcedure", thing) if not _known_procedure(thing)

# METADATA
# description: |
#   Refused: a session property that reduces the minimum retention of files, or that turns on statistics.
_refused("SetCatalogSessionProperty", thing) if not _harmless_property(thing)

# METADATA
# description: |
#   The property has a name and does not change the retention or the use of statistics. `SHOW STATS` and `EXPLAIN` show
#   statistics of all rows, hidden ones included. Trino queries OPA without strict errors, so a refusal must not depend
#   on a built-in function that can fail.
_harmless_property(thing) if {
	is_string(thing.catalogSessionProperty.propertyName)
	not endswith(thing.catalogSessionProperty.propertyName, "_min_retention")
	thing.catalogSessionProperty.propertyName != "statistics_enabled"
}

# METADATA
# description: |
#   Refused: a read without a list of columns, because its extent is unknown.
_refused("SelectFromColumns", thing) if not _names_columns(thing)

# METADATA
# description: The procedure of a table is in the list above.
_known_procedure(thing) if lower(thing.function.functionName) in table_procedures

# METADATA
# description: The request has a list of columns, which may be empty.
_names_columns(thing) if is_array(thing.table.columns)

# METADATA
# description: The object is a schema that Trino adds to a catalog, or lies in one.
_own(thing) if _own_schemas[names.schema_of(thing)]

# METADATA
# description: The checks for this operation on this object, from the table.
_needs(operation, thing) := [need] if {
	table[operation].looks
	need := _own_schemas[names.schema_of(thing)]
} else := [need] if {
	operation == "ExecuteProcedure"
	thing.function.schemaName == "system"
	need := procedures[lower(thing.function.functionName)]
} else := ["warehouse get_config"] if {
	# The function reads a table, which Trino checks next.
	operation == "ExecuteFunction"
	thing.function.schemaName == "system"
	thing.function.functionName == "table_changes"
} else := table[operation].needs if not _own(thing)

# METADATA
# description: One check for `batch-check`, from `<what> <action>`.
_check(alternative, thing, target) := {place.kind: object.union_n([place.on, _with(what, action), {"action": told}])} if {
	[what, action] := split(alternative, " ")
	place := _place(what, thing, target)
	told := object.union({"action": action}, _told(what, action, thing, target))
}

# METADATA
# description: |
#   Members that stand beside the action. Without `restrictions`, the gateway denies reads of a table with row filters or
#   masks for this user. Without `append`, it denies changes of such a table.
_with(what, action) := {"restrictions": "trino"} if {
	what in {"table", "read"}
	action == "read_columns"
} else := {"append": true} if {
	what == "grown"
} else := {}

# METADATA
# description: The object of a check in the notation of the gateway.
_place(what, thing, target) := {"kind": "warehouse", "on": names.warehouse(thing)} if {
	what == "warehouse"
} else := {"kind": "namespace", "on": names.namespace(thing)} if {
	what == "namespace"
} else := names.above(thing) if {
	what == "above"
} else := {"kind": "namespace", "on": names.namespace(target)} if {
	what == "into"
	names.catalog_of(target) == names.catalog_of(thing)
	names.plain(target)
} else := names.above(target) if {
	what == "into-above"
	names.catalog_of(target) == names.catalog_of(thing)
} else := {"kind": what, "on": _called(what, names.plain(thing))} if {
	what in {"table", "view"}
} else := {"kind": "table", "on": _called("table", names.plain(thing))} if {
	what == "grown"
} else := {"kind": "table", "on": _called("table", names.read(thing))} if {
	what == "read"
} else := {"kind": "table", "on": _called("table", names.about(thing))} if {
	what == "about"
} else := {"kind": "view", "on": _called("view", names.plain(thing))} if {
	what == "read-view"
} else := {"kind": "view", "on": object.union(_called("view", names.plain(thing)), {"runs-as-owner": true})} if {
	what == "lent-view"
} else := {"kind": "tabular", "on": names.read(thing)} if {
	what == "listed"
}

# METADATA
# description: A named object, with its name under the gateway's field for this type.
_called(kind, place) := object.union(object.remove(place, ["name"]), {kind: place.name})

# METADATA
# description: Facts for guardrails, in the gateway's fields.
_told(what, action, thing, target) := {
	"name": names.plain(thing).name,
	"properties": _properties(thing),
	"explicit_location": false,
} if {
	what == "namespace"
	action in {"create_table", "create_view"}
} else := {"name": names.plain(target).name} if {
	what == "into"
} else := {"namespace": names.namespace(thing).namespace, "properties": _properties(thing)} if {
	what == "above"
} else := {"updated_properties": _properties(thing)} if {
	what in {"grown", "table", "view"}
	action == "commit"
} else := {
	"destination_name": names.plain(target).name,
	"destination_namespace": names.namespace(target).namespace,
} if {
	what in {"table", "view"}
	action in {"rename", "move"}
} else := {}

# METADATA
# description: The names of the properties in the request.
_properties(thing) := [name | some name, _ in thing[_].properties]
