# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: What each operation of Trino takes
# description: |
#   One row for each operation. What is not in here is denied. `needs` are questions to the gateway, all of which must be
#   answered yes; of those with a bar between them one is enough. A question is the kind of a thing and an action of the
#   gateway on it; `into` is the namespace that something is to arrive in, `above` is what a new schema is created in.
#   `may` says who, where nothing is asked: everybody, operators, nobody, or owners (of a query) and operators.
package trino.operations

import data.trino.names
import data.trino.settings

# METADATA
# description: The table.
table := object.union_n([_sessions, _catalogs, _schemas, _tables, _views, _functions, _reading])

# METADATA
# description: |
#   What touches no data. A user who could act as another would be answered by that one's rights, and Trino lends the
#   catalog session of one user to the next after it; so nobody impersonates.
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
# description: A new catalog can reach whatever Trino can, so it is the affair of those who run Trino.
_catalogs := {
	"AccessCatalog": {"needs": ["warehouse get_config"], "looks": true},
	"FilterCatalogs": {"needs": ["warehouse get_config"], "looks": true},
	"ShowSchemas": {"needs": ["warehouse list_namespaces"], "looks": true},
	"CreateCatalog": {"may": "operators"},
	"DropCatalog": {"may": "operators"},
}

# METADATA
# description: |
#   Namespaces. Moving one to another name takes what it takes at the gateway. Who owns a schema is not Trino's to say,
#   which has names of users and no more; the right to change it is asked for all the same.
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
#   Tables. What changes metadata is a commit; what changes rows needs keys that write as well. `UPDATE`, `MERGE` and
#   `DELETE` read too, and Trino asks SelectFromColumns for that.
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
	"InsertIntoTable": {"needs": ["table write_data", "table commit"]},
	"DeleteFromTable": {"needs": ["table write_data", "table commit"]},
	"UpdateTableColumns": {"needs": ["table write_data", "table commit"]},
	"TruncateTable": {"needs": ["table write_data", "table commit"]},
	"ExecuteTableProcedure": {"needs": ["table write_data", "table commit"]},
}

# METADATA
# description: |
#   Views, and materialized views, which are views with a table of their own beside. Behind a view that runs as its owner
#   Trino asks about its owner, and lends whoever reads the view what the owner may read: that is granting, so the owner
#   has to be one who could grant it. A view within it has to run as an owner of its own: Trino would read what an
#   ownerless one names with the outer owner's rights, and other users may replace its SQL.
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
		"read read_data | lent-view select",
		"read grant_select | lent-view grant_select",
	]},
}

# METADATA
# description: |
#   The catalog keeps no functions; who may make a view may make what a view consists of. Procedures name their table in
#   their arguments, which Trino does not tell: see `procedures`.
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
#   Reading. `read_columns` may be answered yes for some columns only, which are then all that is read, listed and not
#   made null. No columns at all (`count(*)`) is reading the table. What tells about a table (`orders$files` has the least
#   and the greatest value of each column) takes the right to read all of it. Filters and masks are asked for what is
#   read, too: who may not read it sees no row and nulls only, should Trino go on.
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
#   Procedures of a catalog. After the first two Trino asks about the table itself. Rolling back names its table where we
#   cannot see it, so it takes the right to change everything in the warehouse; `ALTER TABLE … EXECUTE
#   rollback_to_snapshot` takes the right on that table only.
procedures := {
	"register_table": "warehouse get_config",
	"unregister_table": "warehouse get_config",
	"flush_metadata_cache": "warehouse get_config",
	"rollback_to_snapshot": "warehouse delete",
}

# METADATA
# description: Procedures of a table. What takes files from elsewhere into a table is none of them, as nobody checks where.
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
#   What Trino itself keeps in each of its catalogs. What is listed in `information_schema` Trino asks about thing by
#   thing; `system` lists the tables of a catalog without asking.
_own_schemas := {"information_schema": "warehouse get_config", "system": "warehouse list_everything"}

# METADATA
# description: What everybody may look at in the catalog `system`; Trino asks about what is told there thing by thing.
_system_schemas := {"information_schema", "jdbc", "metadata"}

# METADATA
# description: Where a thing lies is the gateway's to choose; these properties would choose it.
_places := {"data_location", "location"}

# METADATA
# description: |
#   What decides about this thing: `{"free": true}` when nothing has to be asked, or `needs`, a list of lists of checks of
#   `batch-check`, of each list one being enough. Undefined for what is denied.
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
# description: A new name in the same schema is no move.
_stays(need, thing, target) if {
	_moving(need)
	names.catalog_of(thing) == names.catalog_of(target)
	lower(names.schema_of(thing)) == lower(names.schema_of(target))
	names.plain(target)
}

# METADATA
# description: What a move to another schema takes beside the right to rename.
_moving(need) if startswith(need, "into ")

# METADATA
# description: The right to move the table or view itself.
_moving(need) if need in {"table move", "view move"}

# METADATA
# description: Allowed without a question, to everybody.
_free(operation, _, _) if table[operation].may == "everybody"

# METADATA
# description: Allowed to who runs Trino.
_free(operation, _, _) if {
	table[operation].may in {"operators", "owners"}
	input.context.identity.user in settings.operators
}

# METADATA
# description: Allowed to who asked the query.
_free(operation, thing, _) if {
	table[operation].may == "owners"
	thing.user.user == input.context.identity.user
}

# METADATA
# description: Allowed in a catalog that the gateway knows nothing of, and within such ones.
_free(operation, thing, target) if {
	table[operation].needs
	names.catalog_of(thing) in settings.open_catalogs
	every each in {"table", "schema"} {
		object.get(target, [each, "catalogName"], names.catalog_of(thing)) in settings.open_catalogs
	}
}

# METADATA
# description: Allowed in the catalog of Trino itself.
_free(operation, thing, _) if {
	names.catalog_of(thing) == "system"
	_open_in_system(operation, thing)
}

# METADATA
# description: The catalog and its schemas.
_open_in_system(operation, thing) if {
	table[operation].looks
	not thing.table
}

# METADATA
# description: Tables about which Trino asks thing by thing.
_open_in_system(operation, thing) if {
	table[operation].looks
	thing.table.schemaName in _system_schemas
}

# METADATA
# description: The queries, about which Trino asks one by one.
_open_in_system(operation, thing) if {
	table[operation].looks
	thing.table.schemaName == "runtime"
	thing.table.tableName == "queries"
}

# METADATA
# description: What runs where, to who runs Trino.
_open_in_system(operation, thing) if {
	table[operation].looks
	thing.table.schemaName == "runtime"
	input.context.identity.user in settings.operators
}

# METADATA
# description: The functions that Trino brings along.
_open_in_system(operation, thing) if {
	operation in {"CreateViewWithExecuteFunction", "ExecuteFunction", "FilterFunctions", "ShowCreateFunction"}
	thing.function.schemaName == "builtin"
}

# METADATA
# description: Ending a query; whose it is Trino asks next.
_open_in_system("ExecuteProcedure", thing) if {
	thing.function.schemaName == "runtime"
	thing.function.functionName == "kill_query"
}

# METADATA
# description: Not allowed to anybody, a place of one's own choice.
_refused(_, thing) if {
	some name, _ in thing[_].properties
	lower(name) in _places
}

# METADATA
# description: Not allowed to anybody, a table without a name that can be read; guardrails would not receive it.
_refused(_, thing) if {
	thing.table
	not names.read(thing)
}

# METADATA
# description: Not allowed to anybody, properties without names.
_refused(_, thing) if {
	some properties in [given | given := thing[_].properties]
	not is_object(properties)
}

# METADATA
# description: Not allowed to anybody, procedures of a table that are not in the list.
_refused("ExecuteTableProcedure", thing) if not _known_procedure(thing)

# METADATA
# description: Not allowed to anybody, to shorten how long the files of a table are kept at least.
_refused("SetCatalogSessionProperty", thing) if not _harmless_property(thing)

# METADATA
# description: |
#   The property has a name and leaves the retention alone. Trino asks without strict errors, so a refusal must not rest
#   on a built-in function that may fail.
_harmless_property(thing) if {
	is_string(thing.catalogSessionProperty.propertyName)
	not endswith(thing.catalogSessionProperty.propertyName, "_min_retention")
}

# METADATA
# description: Not allowed to anybody, to read without a list of columns; nobody knows what that would be.
_refused("SelectFromColumns", thing) if not _names_columns(thing)

# METADATA
# description: A procedure of a table that is in the list above.
_known_procedure(thing) if lower(thing.function.functionName) in table_procedures

# METADATA
# description: There is a list of columns, if only an empty one.
_names_columns(thing) if is_array(thing.table.columns)

# METADATA
# description: It is or lies in what Trino keeps in a catalog.
_own(thing) if _own_schemas[names.schema_of(thing)]

# METADATA
# description: The questions for this operation on this thing, as in the table.
_needs(operation, thing) := [need] if {
	table[operation].looks
	need := _own_schemas[names.schema_of(thing)]
} else := [need] if {
	operation == "ExecuteProcedure"
	thing.function.schemaName == "system"
	need := procedures[lower(thing.function.functionName)]
} else := ["warehouse get_config"] if {
	# It reads a table, about which Trino asks next.
	operation == "ExecuteFunction"
	thing.function.schemaName == "system"
	thing.function.functionName == "table_changes"
} else := table[operation].needs if not _own(thing)

# METADATA
# description: One check of `batch-check`, from `<what> <action>`.
_check(alternative, thing, target) := {place.kind: object.union(place.on, {"action": told})} if {
	[what, action] := split(alternative, " ")
	place := _place(what, thing, target)
	told := object.union({"action": action}, _told(what, action, thing, target))
}

# METADATA
# description: What is asked about, in the gateway's words.
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
# description: A named thing, its name under the word that the gateway has for it.
_called(kind, place) := object.union(object.remove(place, ["name"]), {kind: place.name})

# METADATA
# description: What guardrails are told beside, by the names that the gateway has for it.
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
	what in {"table", "view"}
	action == "commit"
} else := {
	"destination_name": names.plain(target).name,
	"destination_namespace": names.namespace(target).namespace,
} if {
	what in {"table", "view"}
	action in {"rename", "move"}
} else := {}

# METADATA
# description: The names of the properties that come with the thing.
_properties(thing) := [name | some name, _ in thing[_].properties]
