# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Mapping of Trino's names
# description: |
#   Maps catalogs, schemas and tables of Trino to warehouses, namespaces, tables and views. A blank or missing name is
#   undefined, and undefined names allow nothing.
package trino.names

import data.trino.settings

# METADATA
# description: |
#   Metadata tables of Trino that reveal data of a table. Reading them needs the right to read all data of the table.
_about_tables := {
	"all_entries",
	"all_manifests",
	"entries",
	"files",
	"history",
	"manifests",
	"metadata_log_entries",
	"partitions",
	"properties",
	"refs",
	"snapshots",
}

# METADATA
# description: |
#   The catalog of an object of any type. The function of a table procedure names no catalog, so the table is read
#   first.
catalog_of(thing) := thing.catalog.name if {
	thing.catalog
} else := thing.schema.catalogName if {
	thing.schema
} else := thing.table.catalogName if {
	thing.table
} else := thing.function.catalogName if {
	thing.function
} else := thing.catalogSessionProperty.catalogName

# METADATA
# description: The schema of an object, or the schema itself, in Trino's notation.
schema_of(thing) := thing.schema.schemaName if {
	thing.schema
} else := thing.table.schemaName if {
	thing.table
} else := thing.function.schemaName

# METADATA
# description: The warehouse of the object; undefined for a catalog without a warehouse.
warehouse(thing) := {"warehouse-id": settings.warehouse_of[catalog_of(thing)]}

# METADATA
# description: The namespace of the object, or the schema's own. Dots separate the levels in the name of a schema.
namespace(thing) := object.union(warehouse(thing), {"namespace": levels}) if {
	levels := split(schema_of(thing), ".")
	every level in levels { trim_space(level) != "" }
}

# METADATA
# description: |
#   The parent of a new schema: the namespace above it, or the warehouse.
above(thing) := {"kind": "warehouse", "on": warehouse(thing)} if {
	count(namespace(thing).namespace) == 1
} else := {"kind": "namespace", "on": object.union(warehouse(thing), {"namespace": parent})} if {
	levels := namespace(thing).namespace
	count(levels) > 1
	parent := array.slice(levels, 0, count(levels) - 1)
}

# METADATA
# description: The table or view with this name, which must not contain a dollar sign.
plain(thing) := object.union(namespace(thing), {"name": thing.table.tableName}) if {
	trim_space(thing.table.tableName) != ""
	not contains(thing.table.tableName, "$")
}

# METADATA
# description: |
#   The table or view that a query reads: `orders` for `orders$files`.
read(thing) := plain(thing) if {
	plain(thing)
} else := about(thing)

# METADATA
# description: |
#   The table of a metadata table: `orders` for `orders$files`.
about(thing) := object.union(namespace(thing), {"name": base}) if {
	[base, about_it] := split(thing.table.tableName, "$")
	trim_space(base) != ""
	about_it in _about_tables
}
