# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: What Trino asks
# description: |
#   The entry points of Trino's access control (`opa.policy.*` of its configuration). Each question of Trino becomes at
#   most one request to the gateway for every thousand things, and what the gateway does not clearly allow is denied.
package trino

import data.trino.gateway
import data.trino.operations

# METADATA
# description: Everything that is not allowed below is denied.
default allow := false

# METADATA
# description: Whether the user may do it (`opa.policy.uri`).
# entrypoint: true
allow if {
	not startswith(_operation, "Filter")
	0 in _allowed([object.get(input.action, "resource", {})])
}

# METADATA
# description: Which of many things the user may see (`opa.policy.batched-uri`), by their places in the list.
# entrypoint: true
default batch := []

batch := [index | some index, _ in input.action.filterResources; index in _allowed(input.action.filterResources)] if {
	startswith(_operation, "Filter")
	_operation != "FilterColumns"
}

# METADATA
# description: Of columns the places are those in the list of columns, and the thing is their one table.
batch := [index | some index, name in input.action.filterResources[0].table.columns; _within(name, extent)] if {
	_operation == "FilterColumns"
	count(input.action.filterResources) == 1
	extent := _extents(input.action.filterResources)[0]
}

# METADATA
# description: Which rows the user may see (`opa.policy.row-filters-uri`), which are all or none.
# entrypoint: true
default row_filters := [{"expression": "false"}]

row_filters := [] if {
	_operation == "GetRowFilters"
	0 in _allowed([input.action.resource])
}

# METADATA
# description: What stands in place of a column (`opa.policy.column-masking-uri`); null for what may not be read.
# entrypoint: true
default column_mask := {"expression": "NULL"}

column_mask := {} if {
	_is_readable(input.action.resource)
} else := _null(input.action.resource)

# METADATA
# description: The same for all columns of a table at once (`opa.policy.batch-column-masking-uri`).
# entrypoint: true
batch_column_masks := [{"index": index, "viewExpression": _null(thing)} |
	some index, thing in input.action.filterResources
	not _is_readable(thing)
]

# METADATA
# description: The tables of the columns that are asked about, and how far they may be read.
_readable[tables[place]] := extent if {
	_operation == "GetColumnMask"
	single := object.get(input.action, "resource", {})
	things := array.concat([single], object.get(input.action, "filterResources", []))
	tables := [table | some table in {_table_of(thing) | some thing in things}]
	some place, extent in _extents(tables)
}

# METADATA
# description: Whether the column is of such a table, and one that may be read.
_is_readable(thing) if _within(thing.column.columnName, _readable[_table_of(thing)])

# METADATA
# description: The table that a column is in.
_table_of(thing) := {"table": object.remove(thing.column, ["columnName", "columnType"])}

# METADATA
# description: A null of the column's type.
_null(thing) := {"expression": sprintf("CAST(NULL AS %s)", [thing.column.columnType])} if {
	is_string(thing.column.columnType)
} else := {"expression": "NULL"}

# METADATA
# description: What Trino is about to do.
_operation := input.action.operation

# METADATA
# description: |
#   The places of those things that the user may have, with every column that is named. Where some columns may be read a
#   list without any (`count(*)`) tells how many rows there are, and where none may be it tells nothing.
_allowed(things) := {place |
	some place, extent in _extents(things)
	every name in object.get(things[place], ["table", "columns"], []) { _within(name, extent) }
}

# METADATA
# description: How far the user may have each of the things, by its place; what the user may not have is not in it.
_extents(things) := {place: extent | some place, verdict in verdicts; extent := _extent(verdict, holding)} if {
	trim_space(input.context.identity.user) != ""
	verdicts := {place: verdict |
		some place, thing in things
		verdict := operations.verdict(_operation, thing, object.get(input.action, "targetResource", {}))
	}
	asked := {check | some check in verdicts[_].needs[_]}
	holding := gateway.holding(input.context.identity.user, asked)
} else := {}

# METADATA
# description: Whether the column is among those.
_within(name, extent) if {
	extent == "all"
} else if {
	name in extent
}

# METADATA
# description: All of it when all that is needed is there; some columns when one thing is needed that is there for those.
_extent(verdict, holding) := "all" if {
	verdict.free
} else := "all" if {
	every alternatives in verdict.needs {
		some check in alternatives
		holding[check] == "all"
	}
} else := columns if {
	[alternatives] := verdict.needs
	columns := union({holding[check] | some check in alternatives})
	count(columns) > 0
}
