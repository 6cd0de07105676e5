# SPDX-License-Identifier: Apache-2.0
package gateway_test.guardrails.credentials

import data.gateway.guardrails.credentials

# METADATA
# description: The obligations for this resource under these rules.
asked(resource, rules) := {obligation | some obligation in found[_]} if {
	found := credentials.obligations with input as {"questions": [{"resource": resource}]}
		with data.policy_data.credentials as {"rules": rules}
}

# METADATA
# description: True if these rules are valid.
readable(rules) if {
	found := credentials.denials with input as {"questions": [{}]}
		with data.policy_data.credentials as {"rules": rules}
	found == {}
}

# METADATA
# description: A table of the warehouse main.
table(namespace, name) := {"type": "table", "warehouse": "main", "namespace": namespace, "name": name}

# METADATA
# description: A maximum lifetime of 900 seconds.
short := {"max_credential_seconds": 900}

test_a_rule_without_a_place_applies_everywhere if {
	asked(table(["sales"], "orders"), [{"ask": short}]) == {short}
}

test_a_rule_for_a_warehouse_applies_in_that_warehouse if {
	rules := [{"warehouse": "main", "ask": {"no_vending": true}}]
	asked(table(["sales"], "orders"), rules) == {{"no_vending": true}}
	asked(object.union(table(["sales"], "orders"), {"warehouse": "main2"}), rules) == set()
	asked(object.union(table(["sales"], "orders"), {"warehouse": "MAIN"}), rules) == {{"no_vending": true}}
}

test_a_rule_for_a_namespace_applies_to_it_and_below_and_not_beside_or_above if {
	rules := [{"namespace": ["sales", "emea"], "ask": {"append_only": true}}]
	asked(table(["sales", "emea"], "orders"), rules) == {{"append_only": true}}
	asked(table(["sales", "emea", "deep"], "orders"), rules) == {{"append_only": true}}
	asked(table(["Sales", "EMEA"], "orders"), rules) == {{"append_only": true}}
	asked(table(["sales"], "orders"), rules) == set()
	asked(table(["sales", "apac"], "orders"), rules) == set()
	asked(table(["emea", "sales"], "orders"), rules) == set()
	asked(table(["sales.emea"], "orders"), rules) == set()
}

test_a_star_stands_for_anything_in_a_name if {
	rules := [{"namespace": ["pii*"], "table": "*_raw", "ask": short}]
	asked(table(["pii_eu"], "orders_raw"), rules) == {short}
	asked(table(["pii.eu"], "a.b_raw"), rules) == {short}
	asked(table(["pii_eu"], "orders"), rules) == set()
	asked(table(["public"], "orders_raw"), rules) == set()
}

test_what_has_no_known_name_is_guarded if {
	rules := [{"warehouse": "main", "namespace": ["pii"], "table": "people", "ask": short}]
	asked({"type": "table", "warehouse": null, "namespace": ["pii"], "name": "people"}, rules) == {short}
	asked({"type": "table", "warehouse": "main", "namespace": null, "name": "people"}, rules) == {short}
	asked({"type": "table", "warehouse": "main", "namespace": ["pii"], "name": null}, rules) == {short}
}

test_a_rule_for_a_table_is_kept_for_its_namespace_where_the_table_is_to_be_made if {
	rules := [{"namespace": ["pii"], "table": "people", "ask": short}]
	asked({"type": "namespace", "warehouse": "main", "namespace": ["pii"], "name": "pii"}, rules) == {short}
	asked({"type": "namespace", "warehouse": "main", "namespace": ["sales"], "name": "people"}, rules) == set()
}

test_each_rule_asks_for_itself_and_each_question_is_judged_alone if {
	found := credentials.obligations with input as {"questions": [
		{"resource": table(["a"], "t")},
		{"resource": table(["b"], "t")},
	]}
		with data.policy_data.credentials as {"rules": [
			{"namespace": ["b"], "ask": {"no_vending": true}},
			{"ask": short},
		]}
	found == {0: {short}, 1: {short, {"no_vending": true}}}
}

# METADATA
# description: The id of a table.
table_id := "00000000-0000-4000-8000-0000000000a1"

# METADATA
# description: The id of its warehouse.
warehouse_id := "00000000-0000-4000-8000-0000000000b1"

# METADATA
# description: The id of the upper of its two namespaces.
top_id := "00000000-0000-4000-8000-0000000000c1"

# METADATA
# description: The id of its direct parent namespace.
deep_id := "00000000-0000-4000-8000-0000000000c2"

# METADATA
# description: The id of another table.
other_id := "00000000-0000-4000-8000-0000000000f1"

# METADATA
# description: A table with ids. The table was renamed and moved, and its namespace was renamed.
renamed := {
	"type": "table",
	"id": table_id,
	"warehouse": "main",
	"warehouse_id": warehouse_id,
	"namespace": ["open", "deep"],
	"namespace_ids": [top_id, deep_id],
	"name": "harmless",
	"former_names": [["open", "deep", "middle"], ["pii", "people"]],
	"former_namespaces": [["secret"], ["secret", "deep"]],
	"former_names_complete": true,
}

test_a_rule_for_ids_applies_to_the_thing_and_all_that_lies_in_it if {
	every id in [table_id, top_id, deep_id, warehouse_id] {
		asked(renamed, [{"ids": [other_id, id], "ask": short}]) == {short}
	}
	asked(renamed, [{"ids": [other_id], "ask": short}]) == set()
	asked(renamed, [{"ids": [table_id], "warehouse": "other", "ask": short}]) == set()
	warehouse := {"type": "warehouse", "id": warehouse_id, "warehouse_id": warehouse_id, "warehouse": "main", "namespace": null, "namespace_ids": null, "name": "main"}
	asked(warehouse, [{"ids": [warehouse_id], "ask": short}]) == {short}
	asked(warehouse, [{"ids": [other_id], "ask": short}]) == set()
	asked(object.union(renamed, {"id": null}), [{"ids": [other_id], "ask": short}]) == {short}
}

test_a_rule_for_ids_applies_where_ids_are_not_sent if {
	rules := [{"ids": [other_id], "ask": short}]
	every part in ["id", "namespace_ids", "warehouse_id"] {
		every type in ["namespace", "table", "view", "generic_table"] {
			resource := object.union(renamed, {"type": type})
			asked(resource, rules) == set()
			asked(object.remove(resource, [part]), rules) == {short}
			asked(object.union(resource, {part: null}), rules) == {short}
		}
	}
	asked(object.remove(renamed, ["namespace_ids"]), [{"ids": [other_id], "warehouse": "other", "ask": short}]) == set()
}

test_a_rule_for_ids_does_not_apply_to_what_lies_in_no_namespace if {
	every type in ["server", "project", "warehouse", "user", "role"] {
		resource := {"type": type, "id": table_id, "name": "x", "namespace": null, "warehouse": null}
		asked(resource, [{"ids": [other_id], "ask": short}]) == set()
		asked(resource, [{"ids": [table_id], "ask": short}]) == {short}
	}
}

test_a_rule_for_a_table_applies_under_its_former_names if {
	every name in ["people", "middle", "harmless", "PEOPLE"] {
		asked(renamed, [{"table": name, "ask": short}]) == {short}
	}
	asked(renamed, [{"namespace": ["pii"], "table": "people", "ask": short}]) == {short}
	asked(renamed, [{"table": "deep", "ask": short}]) == set()
	asked(object.union(renamed, {"type": "generic_table"}), [{"table": "people", "ask": short}]) == {short}
}

test_a_rule_for_a_namespace_applies_under_its_former_names if {
	every levels in [["open"], ["open", "deep"], ["secret"], ["secret", "deep"], ["pii"]] {
		asked(renamed, [{"namespace": levels, "ask": short}]) == {short}
	}
	asked(renamed, [{"namespace": ["pii", "people"], "ask": short}]) == set()
	asked(renamed, [{"namespace": ["other"], "ask": short}]) == set()
}

test_more_former_names_than_are_known_match_every_name if {
	often := object.union(renamed, {"former_names_complete": false})
	asked(often, [{"namespace": ["other"], "table": "other", "ask": short}]) == {short}
	asked(often, [{"ids": [other_id], "ask": short}]) == set()
}

test_rules_that_can_be_read_deny_nothing if {
	readable([])
	readable([{"ask": short}])
	readable([{"warehouse": "w", "namespace": ["a", "b*"], "table": "t", "ask": {"no_vending": true, "append_only": false}}])
	readable([{"ask": {"max_credential_seconds": 0}}])
	readable([{"ids": [table_id, other_id], "ask": short}])
}

test_rules_that_cannot_be_read_deny_everything if {
	not readable(null)
	not readable({"ask": short})
	every rule in [
		{},
		"rule",
		{"ask": {}},
		{"ask": ["no_vending"]},
		{"ask": {"max_credential_seconds": -1}},
		{"ask": {"max_credential_seconds": 1.5}},
		{"ask": {"max_credential_seconds": "900"}},
		{"ask": {"no_vending": "true"}},
		{"ask": {"append_only": 1}},
		{"ask": {"read_only": true}},
		{"ask": {"no_vending": true, "read_only": true}},
		{"warehouse": ["main"], "ask": short},
		{"namespace": "sales", "ask": short},
		{"namespace": [["sales"]], "ask": short},
		{"table": null, "ask": short},
		{"tables": "people", "ask": short},
		{"ids": table_id, "ask": short},
		{"ids": {"a": table_id}, "ask": short},
		{"ids": {table_id}, "ask": short},
		{"ids": [1], "ask": short},
		{"ids": null, "ask": short},
		{"ids": false, "ask": short},
		{"ids": [], "ask": short},
		{"ids": [""], "ask": short},
		{"ids": ["sales"], "ask": short},
		{"ids": [upper(table_id)], "ask": short},
		{"ids": [concat("", [" ", table_id])], "ask": short},
		{"ids": [concat("", [table_id, " "])], "ask": short},
		{"ids": [concat("", [table_id, "\n"])], "ask": short},
		{"ids": [replace(table_id, "-", "")], "ask": short},
		{"ids": [table_id, upper(other_id)], "ask": short},
	] {
		not readable([rule])
		not readable([{"ask": short}, rule])
	}
}

test_each_question_is_denied_while_rules_are_missing if {
	found := credentials.denials with input as {"questions": [{}, {}]} with data.policy_data.credentials as {}
	object.keys(found) == {0, 1}
	{denial.code | some denial in found[_]} == {"credential_rules_unreadable"}
}

test_as_shipped_nothing_is_asked_for if {
	found := credentials.obligations with input as {"questions": [{"resource": table(["sales"], "orders")}]}
	found == {}
	credentials.denials == {} with input as {"questions": [{}]}
}
