package gateway_test.guardrails.freeze

import data.gateway.guardrails.freeze

# METADATA
# description: A request of one operation on the table `t`.
request(operation) := {"questions": [{"operation": operation, "resource": {"type": "table", "id": "t"}}]}

test_a_listed_table_cannot_be_changed if {
	every operation in ["commit_table", "commit_transaction", "drop_table", "rename_table"] {
		denials := freeze.denials with input as request(operation) with data.policy_data.freeze as {"tables": ["t"]}
		{each.code | some each in denials[0]} == {"table_frozen"}
	}
}

test_a_listed_table_can_be_read if {
	denials := freeze.denials with input as request("load_table") with data.policy_data.freeze as {"tables": ["t"]}
	denials == {}
}

test_other_tables_can_be_changed if {
	denials := freeze.denials with input as request("drop_table") with data.policy_data.freeze as {"tables": ["u"]}
	denials == {}
}

test_an_unreadable_list_denies_every_request if {
	every unreadable in [{}, {"tables": null}, {"tables": "t"}] {
		denials := freeze.denials with input as request("load_table") with data.policy_data.freeze as unreadable
		{each.code | some each in denials[0]} == {"frozen_tables_unknown"}
	}
}
