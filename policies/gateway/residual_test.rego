# SPDX-License-Identifier: Apache-2.0
package gateway.residual_test

import data.gateway.residual

# METADATA
# description: A request with one question.
request := {
	"actor": {"id": "oidc~alice", "kind": "user", "assumed_role": null, "roles": []},
	"context": {"request_id": "r", "time": "2026-03-04T10:00:00Z", "user_agent": null, "client_address": null},
	"questions": [{"operation": "load_table", "resource": {"type": "table"}}],
}

# METADATA
# description: The members of `speaks` while this is the only guardrail.
spoken(rules) := speaks if {
	speaks := residual.speaks with input as request with data.gateway.guardrails as {"one": rules}
}

test_each_entry_speaks if {
	every entries in [{"a"}, false, null, {}, set()] {
		"entry" in spoken({"denials": {0: entries}})
		"entry" in spoken({"obligations": {"x": entries}})
	}
	not "entry" in spoken({"denials": {}, "obligations": {}, "steady": true})
}

test_an_unknown_rule_speaks if {
	every value in [false, null, {}, "x"] {
		"unknown rule" in spoken({"denials": {}, "denails": value})
	}
	not "unknown rule" in spoken({"denials": {}, "obligations": {}, "steady": false, "_names": 1})
}

test_a_rule_of_a_helper_speaks if {
	every value in [false, null, {}] {
		"rule of a helper" in spoken({"denials": {}, "_deny": {"denials": value}})
		"rule of a helper" in spoken({"denials": {}, "_deny": {"steady": value}})
	}
	not "rule of a helper" in spoken({"denials": {"denials": 1}, "_names": {"a": "denials"}, "_list": ["steady"]})
}

test_steady_of_another_type_speaks if {
	every value in ["true", null, 1, {"a"}] {
		"steady of another type" in spoken({"denials": {}, "steady": value})
	}
	every value in [true, false] {
		not "steady of another type" in spoken({"denials": {}, "steady": value})
	}
}

test_a_guardrail_without_rules_speaks if {
	every rules in [{}, {"steady": true}, "text", 5, null] {
		"neither rule" in spoken(rules)
	}
}

test_a_complete_rule_of_any_type_speaks if {
	every value in [null, true, 5, "text", [], set(), {}] {
		"complete rule" in spoken({"denials": value})
		"complete rule" in spoken({"obligations": value})
	}
}

test_without_lasting_answers_every_caller_is_asked_about if {
	every seconds in [0, -1, "60", null, true] {
		"no answer lasts" in residual.speaks with input as request
			with data.policy_data.memory as {"answers_last_seconds": seconds}
	}
	"no answer lasts" in residual.speaks with input as request with data.policy_data.memory as {}
	not "no answer lasts" in residual.speaks with input as request
		with data.policy_data.memory as {"answers_last_seconds": 0.5}
}

# METADATA
# description: The only member that is always true.
revision_in(speaks) := revision if {
	some member in speaks
	[_, revision] := split(member, "revision ")
}

test_the_revision_is_that_of_the_bundles_and_of_the_data if {
	bundles := {"p": {"manifest": {"revision": "1"}}}
	named := residual.speaks with input as request with data.system.bundles as bundles
	current := data.system.revision.current with data.system.bundles as bundles
	revision_in(named) == current
}

test_without_bundles_the_revision_is_that_of_the_data if {
	named := residual.speaks with input as request
	current := data.system.revision.current with opa.runtime as {"env": {"LAKEGATE_OPA_REVISION": "1"}}
	[_, rules_data] := split(revision_in(named), "unknown.")
	split(current, ".")[1] == rules_data
}

test_a_text_is_compared_with_values_of_any_type if {
	residual._text("any") == "2026-03-04t10:00:00z" with input as request
	residual._text("none") == {}
}

test_an_expression_that_should_fail_and_does_not_speaks if {
	not "errors are not reported" in spoken({})
	"errors are not reported" in residual.speaks with input as request with to_number as 1
}
