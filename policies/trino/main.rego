# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Entry points for Trino
# description: |
#   The entry points of Trino's access control (`opa.policy.*` in its configuration). Each query of Trino causes at most
#   one request to the gateway per thousand checks. The bridge denies everything that the gateway does not clearly
#   allow.
package trino

import data.trino.gateway
import data.trino.operations
import data.trino.setup

# METADATA
# description: Requests that no rule below allows are denied.
default allow := false

# METADATA
# description: True if the user may do the operation (`opa.policy.uri`).
# entrypoint: true
allow if {
	not startswith(_operation, "Filter")
	0 in _allowed([object.get(input.action, "resource", {})])
}

# METADATA
# description: The indexes of the objects that the user may see (`opa.policy.batched-uri`).
# entrypoint: true
default batch := []

batch := [index | some index, _ in input.action.filterResources; index in _allowed(input.action.filterResources)] if {
	startswith(_operation, "Filter")
	_operation != "FilterColumns"
}

# METADATA
# description: |
#   For columns: the indexes in the list of columns of the only table.
batch := [index | some index, name in input.action.filterResources[0].table.columns; _within(name, extent)] if {
	_operation == "FilterColumns"
	count(input.action.filterResources) == 1
	extent := _extents(input.action.filterResources)[0]
}

# METADATA
# description: |
#   The row filters of a table (`opa.policy.row-filters-uri`): those of the user, or one that hides all rows. Trino
#   requires all of them.
# entrypoint: true
default row_filters := [{"expression": "false"}]

row_filters := [{"expression": expression} | some filter in filters; some expression in [filter, _first(filter)]] if {
	_operation == "GetRowFilters"
	filters := _extents([input.action.resource])[0].filters
}

# METADATA
# description: |
#   The mask of a column (`opa.policy.column-masking-uri`): NULL if the user may not read the column.
# entrypoint: true
default column_mask := {"expression": "NULL"}

column_mask := mask if {
	_is_masked(input.action.resource)
	mask := _mask(input.action.resource)
} else := {} if {
	_is_readable(input.action.resource)
}

# METADATA
# description: The masks of all columns of a table (`opa.policy.batch-column-masking-uri`).
# entrypoint: true
batch_column_masks := [{"index": index, "viewExpression": _mask(thing)} |
	some index, thing in input.action.filterResources
	_is_masked(thing)
]

# METADATA
# description: The state of the bridge, for `lakegate trino check`. Trino does not query it.
# entrypoint: true
diagnosis := {"variables": setup.variables, "token": setup.token, "warehouses": setup.warehouses}

# METADATA
# description: The tables of the requested columns, with the extent that the user may read.
_readable[tables[place]] := extent if {
	_operation == "GetColumnMask"
	single := object.get(input.action, "resource", {})
	things := array.concat([single], object.get(input.action, "filterResources", []))
	tables := [table | some table in {_table_of(thing) | some thing in things}]
	some place, extent in _extents(tables)
}

# METADATA
# description: True if the column belongs to one of these tables and is readable.
_is_readable(thing) if _within(thing.column.columnName, _readable[_table_of(thing)])

# METADATA
# description: The column is not readable.
_is_masked(thing) if {
	not _is_readable(thing)
	not _is_only_refused(thing)
}

# METADATA
# description: |
#   Trino's own column of a table with restricted columns. It needs no mask: Trino ignores the mask of a column that
#   `SelectFromColumns` refuses, and spends two requests for each mask to find this out. If that permission changes in
#   between, the user may read the whole table without restrictions, because no other answer allows such a column.
_is_only_refused(thing) if {
	thing.column.columnName in {"$file_modified_time", "$partition", "$path"}
	is_set(_readable[_table_of(thing)].columns)
}

# METADATA
# description: A restriction masks the column.
_is_masked(thing) if _masks_of(thing)

# METADATA
# description: The masks of a readable column, as a set. Undefined without a mask.
_masks_of(thing) := _readable[_table_of(thing)].masks[thing.column.columnName]

# METADATA
# description: The expression that replaces a masked column; NULL if the column is not readable or has several masks.
_mask(thing) := {"expression": expression} if {
	_is_readable(thing)
	count(_masks_of(thing)) == 1
	some expression in _masks_of(thing)
} else := _null(thing)

# METADATA
# description: |
#   The filter as an expression that Trino evaluates before the predicates of the query. Trino moves predicates that are
#   not deterministic before a filter that is not a range of single columns. An error of such a predicate would show
#   values of hidden rows. Trino keeps the order of predicates that are not deterministic. The plain filter stays beside
#   this one, because Trino skips files by it.
_first(filter) := sprintf("CASE WHEN random() < 2e0 THEN (%s) ELSE false END", [filter])

# METADATA
# description: The table of a column.
_table_of(thing) := {"table": object.remove(thing.column, ["columnName", "columnType"])}

# METADATA
# description: A NULL expression of the column's type.
_null(thing) := {"expression": sprintf("CAST(NULL AS %s)", [thing.column.columnType])} if {
	is_string(thing.column.columnType)
} else := {"expression": "NULL"}

# METADATA
# description: The operation that Trino checks.
_operation := input.action.operation

# METADATA
# description: |
#   The indexes of the objects that the user may access, with all requested columns. If only some columns are readable,
#   a query without columns (`count(*)`) is allowed: it reveals the number of rows. If no column is readable, it is
#   denied.
_allowed(things) := {place |
	some place, extent in _extents(things)
	every name in object.get(things[place], ["table", "columns"], []) { _within(name, extent) }
}

# METADATA
# description: The extent that the user may access, by the index of the object. Objects without access are absent.
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
# description: True if the extent contains the column.
_within(name, extent) if {
	extent.columns == "all"
} else if {
	name in extent.columns
}

# METADATA
# description: |
#   The readable columns, the row filters, and the masks by column. All restrictions of all held alternatives apply.
#   Undefined without access.
_extent(verdict, holding) := {"columns": columns, "filters": filters, "masks": masks} if {
	columns := _columns(verdict, holding)
	held := {holding[check] | some check in verdict.needs[_]}
	filters := {filter | some filter in held[_].filters}
	masks := {name: expressions |
		some name in {name | some name, _ in held[_].masks}
		expressions := {expression | some expression in [each.masks[name] | some each in held]}
	}
}

# METADATA
# description: |
#   `"all"` if every need is met completely. Otherwise the columns for which every need is met; undefined without any.
_columns(verdict, holding) := "all" if {
	verdict.free
} else := "all" if {
	every alternatives in verdict.needs { _is_whole(alternatives, holding) }
} else := columns if {
	parts := {union({holding[check].columns | some check in alternatives}) |
		some alternatives in verdict.needs
		not _is_whole(alternatives, holding)
	}
	columns := intersection(parts)
	count(columns) > 0
}

# METADATA
# description: One of the alternatives is held for all columns.
_is_whole(alternatives, holding) if {
	some check in alternatives
	holding[check].columns == "all"
}
