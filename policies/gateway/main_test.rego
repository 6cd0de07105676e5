# SPDX-License-Identifier: Apache-2.0
package gateway_test

import data.gateway

# METADATA
# description: A question that no guardrail minds.
question(operation) := {
	"operation": operation,
	"resource": {"type": "table", "name": "orders", "namespace": ["sales"], "warehouse": "main"},
	"facts": {},
}

# METADATA
# description: A request of an ordinary user with these questions.
request(questions) := {
	"actor": {"id": "oidc~alice", "kind": "user", "assumed_role": null, "roles": []},
	"context": {"request_id": "r", "time": "2026-03-04T10:00:00Z", "user_agent": null, "client_address": null},
	"questions": questions,
}

# METADATA
# description: A guardrail that asks for what it is told to ask.
guardrail(denials, obligations) := {"denials": denials, "obligations": obligations}

# METADATA
# description: A denial with this code.
denial(code) := {"code": code, "message": "because"}

test_a_question_that_no_guardrail_minds_is_allowed_without_obligations if {
	answer := gateway.decisions with input as request([question("load_table")])
	answer == {"decisions": [{"allow": true, "reasons": [], "obligations": {}}]}
}

test_no_questions_have_no_answers if {
	gateway.decisions == {"decisions": []} with input as request([])
}

test_without_a_list_of_questions_there_is_no_answer if {
	not gateway.decisions with input as object.remove(request([]), ["questions"])
	not gateway.decisions with input as request({"a": question("load_table")})
	not gateway.decisions with input as request(null)
}

test_answers_come_in_the_order_of_the_questions if {
	questions := [question(sprintf("op_%d", [n])) | some n in numbers.range(0, 11)]
	denials := {2: {denial("two")}, 10: {denial("ten")}}
	answer := gateway.decisions with input as request(questions)
		with data.gateway.guardrails as {"one": guardrail(denials, {})}
	[index | some index, one in answer.decisions; not one.allow] == [2, 10]
	answer.decisions[2].reasons == [{"code": "two", "message": "because"}]
	answer.decisions[10].reasons == [{"code": "ten", "message": "because"}]
	count(answer.decisions) == 12
}

test_any_denial_wins_and_all_reasons_are_told if {
	answer := gateway.decisions with input as request([question("drop_table")])
		with data.gateway.guardrails as {
			"quiet": guardrail({}, {}),
			"first": guardrail({0: {denial("a")}}, {}),
			"second": guardrail({0: {denial("b")}}, {}),
		}
	answer.decisions[0].allow == false
	[reason.code | some reason in answer.decisions[0].reasons] == ["a", "b"]
}

test_the_shortest_life_of_all_guardrails_counts if {
	answer := gateway.decisions with input as request([question("load_table"), question("load_table")])
		with data.gateway.guardrails as {
			"first": guardrail({}, {
				0: {{"max_credential_seconds": 1800}, {"max_credential_seconds": 3600}},
				1: {{"max_credential_seconds": 60}},
			}),
			"second": guardrail({}, {0: {{"max_credential_seconds": 900}}}),
		}
	answer.decisions[0].obligations == {"max_credential_seconds": 900}
	answer.decisions[1].obligations == {"max_credential_seconds": 60}
}

test_a_life_of_no_seconds_is_a_life if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.gateway.guardrails as {"one": guardrail({}, {0: {{"max_credential_seconds": 0}}})}
	answer.decisions[0].obligations == {"max_credential_seconds": 0}
}

test_a_switch_is_on_if_any_guardrail_wants_it_on if {
	answer := gateway.decisions with input as request([question("load_table"), question("load_table")])
		with data.gateway.guardrails as {
			"first": guardrail({}, {
				0: {{"no_vending": true, "append_only": false}},
				1: {{"no_vending": false}},
			}),
			"second": guardrail({}, {0: {{"append_only": true}, {"no_vending": false}}}),
		}
	answer.decisions[0].obligations == {"append_only": true, "no_vending": true}
	answer.decisions[1].obligations == {}
}

test_hidden_operations_add_up if {
	answer := gateway.decisions with input as request([question("get_config")])
		with data.gateway.guardrails as {
			"first": guardrail({}, {0: {{"hide_operations": ["drop_table", "rename_table"]}}}),
			"second": guardrail({}, {0: {{"hide_operations": ["drop_table", "commit_table"]}}}),
		}
	answer.decisions[0].obligations == {"hide_operations": ["commit_table", "drop_table", "rename_table"]}
}

test_obligations_do_not_make_a_denial if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.gateway.guardrails as {"one": guardrail({}, {0: {{"no_vending": true}}})}
	answer.decisions[0] == {"allow": true, "reasons": [], "obligations": {"no_vending": true}}
}

test_every_shipped_guardrail_is_asked if {
	asked := {"actor": {"id": "oidc~c", "kind": "alien", "roles": []}, "context": {}, "questions": [{"operation": ""}]}
	answer := gateway.decisions with input as asked with data.policy_data as {"contractors": {}}
	{reason.code | some reason in answer.decisions[0].reasons} == {
		"contractors_unknown",
		"credential_rules_unreadable",
		"question_not_understood",
		"unknown_actor_kind",
	}
}

# METADATA
# description: Answers last for this many seconds at most.
lasting(seconds) := {"memory": {"answers_last_seconds": seconds}, "contractors": {"users": ["oidc~c"], "roles": []}}

test_as_shipped_no_answer_lasts if {
	answer := gateway.decisions with input as request([question("load_table")])
	not answer.valid_until
}

test_answers_of_steady_guardrails_last_as_long_as_the_data_says if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.policy_data as object.union(lasting(60), {"credentials": {"rules": []}})
	answer.valid_until == "2026-03-04T10:01:00Z"
}

test_a_promise_names_the_policies_and_the_data_that_gave_it if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.policy_data as object.union(lasting(60), {"credentials": {"rules": []}})
		with data.system.revision.current as "r"
	answer.revision == "r"
}

test_answers_that_depend_on_the_time_do_not_last if {
	asked := object.union(request([question("load_table")]), {"actor": {"id": "oidc~c"}})
	answer := gateway.decisions with input as asked with data.policy_data as lasting(60)
	not answer.valid_until
}

test_a_guardrail_that_does_not_say_it_is_steady_is_not if {
	asked := request([question("load_table")])
	some_silent := {"one": {"denials": {}, "steady": true}, "two": {"obligations": {}}}
	all_steady := {"one": {"denials": {}, "steady": true}, "two": {"obligations": {}, "steady": true}}
	silent := gateway.decisions with input as asked
		with data.gateway.guardrails as some_silent
		with data.policy_data as lasting(60)
	steady := gateway.decisions with input as asked
		with data.gateway.guardrails as all_steady
		with data.policy_data as lasting(60)
	not silent.valid_until
	steady.valid_until == "2026-03-04T10:01:00Z"
}

test_a_duration_nobody_can_read_is_none if {
	every seconds in ["60", -1, null, true] {
		answer := gateway.decisions with input as request([question("load_table")])
			with data.policy_data as lasting(seconds)
		not answer.valid_until
	}
}
