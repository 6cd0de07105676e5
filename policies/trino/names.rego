# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: What Trino's names mean
# description: |
#   From catalogs, schemas and tables of Trino to warehouses, namespaces, tables and views. A blank or missing name means
#   nothing, and nothing is allowed on it.
package trino.names

import data.trino.settings

# METADATA
# description: The tables of Trino that tell about the data of a table and are read with the right to read that.
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
#   The catalog that something is in, whatever the thing is. The function of a table's procedure names none, so the table
#   comes first.
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
# description: The schema that something is or lies in, as Trino writes it.
schema_of(thing) := thing.schema.schemaName if {
	thing.schema
} else := thing.table.schemaName if {
	thing.table
} else := thing.function.schemaName

# METADATA
# description: The warehouse that it lies in; undefined for what the gateway knows nothing of.
warehouse(thing) := {"warehouse-id": settings.warehouse_of[catalog_of(thing)]}

# METADATA
# description: The namespace that it is or lies in; the levels of a schema's name are separated by dots.
namespace(thing) := object.union(warehouse(thing), {"namespace": levels}) if {
	levels := split(schema_of(thing), ".")
	every level in levels { trim_space(level) != "" }
}

# METADATA
# description: What a new schema is created in, the namespace above it or the warehouse.
above(thing) := {"kind": "warehouse", "on": warehouse(thing)} if {
	count(namespace(thing).namespace) == 1
} else := {"kind": "namespace", "on": object.union(warehouse(thing), {"namespace": parent})} if {
	levels := namespace(thing).namespace
	count(levels) > 1
	parent := array.slice(levels, 0, count(levels) - 1)
}

# METADATA
# description: The table or view by its own name, which has no dollar in it.
plain(thing) := object.union(namespace(thing), {"name": thing.table.tableName}) if {
	trim_space(thing.table.tableName) != ""
	not contains(thing.table.tableName, "$")
}

# METADATA
# description: The table or view that is read, which is `orders` for `orders$files`.
read(thing) := plain(thing) if {
	plain(thing)
} else := about(thing)

# METADATA
# description: The table that another one tells about, `orders` for `orders$files`.
about(thing) := object.union(namespace(thing), {"name": base}) if {
	[base, about_it] := split(thing.table.tableName, "$")
	trim_space(base) != ""
	about_it in _about_tables
}
