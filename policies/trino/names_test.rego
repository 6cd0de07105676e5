# SPDX-License-Identifier: Apache-2.0
package trino.names_test

import data.trino.names
import data.trino.world_test as world

# METADATA
# description: A table in the catalog of the warehouse.
table(schema, name) := {"table": {"catalogName": "ice", "schemaName": schema, "tableName": name}}

test_a_schema_is_a_namespace_of_levels if {
	id := "0192d4c6-0000-7000-8000-000000000001"
	names.namespace(table("a.b", "t")) == {"warehouse-id": id, "namespace": ["a", "b"]} with opa.runtime as world.opa
	names.plain(table("a", "t")) == {"warehouse-id": id, "namespace": ["a"], "name": "t"} with opa.runtime as world.opa
	names.read(table("a", "t$files")) == {"warehouse-id": id, "namespace": ["a"], "name": "t"} with opa.runtime as world.opa
}

test_what_has_no_whole_name_is_nothing if {
	every thing in [table("a..b", "t"), table(".", "t"), table("", "t"), table(null, "t"), table(7, "t"), {}] {
		not names.namespace(thing) with opa.runtime as world.opa
	}
	every name in {"", " ", "t$files", null, 7} {
		not names.plain(table("a", name)) with opa.runtime as world.opa
	}
	every name in {"", "$files", "t$", "t$other", "t$files$files", "t$Files"} {
		not names.read(table("a", name)) with opa.runtime as world.opa
	}
}

test_a_new_schema_is_made_in_what_is_above if {
	names.above({"schema": {"catalogName": "ice", "schemaName": "a"}}).kind == "warehouse" with opa.runtime as world.opa
	made := names.above({"schema": {"catalogName": "ice", "schemaName": "a.b.c"}}) with opa.runtime as world.opa
	made.on.namespace == ["a", "b"]
	not names.above({"schema": {"catalogName": "ice", "schemaName": ""}}) with opa.runtime as world.opa
}
