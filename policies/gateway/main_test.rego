# SPDX-License-Identifier: Apache-2.0
package gateway_test

import data.gateway
import data.gateway.output

# METADATA
# description: A question that no guardrail denies.
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
# description: A guardrail that returns the obligations in its parameter.
guardrail(denials, obligations) := {"denials": denials, "obligations": obligations}

# METADATA
# description: A denial with this code.
denial(code) := {"code": code, "message": "because"}

test_a_question_that_no_guardrail_minds_is_allowed_without_obligations if {
	answer := gateway.decisions with input as request([question("load_table")]) with data.policy_data.memory as {}
	answer == {"decisions": [{"allow": true, "reasons": [], "obligations": {}}]}
}

test_no_questions_have_no_answers if {
	gateway.decisions == {"decisions": []} with input as request([]) with data.policy_data.memory as {}
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

test_a_life_leaves_opa_as_a_whole_number if {
	# All of them differ, because OPA would return the cached result of an equal call.
	every number, seconds in {"900": 600 * 1.5, "901": 901.0, "902": 9.02e2, "903": json.unmarshal("903.00")} {
		answer := judged(obliging({"max_credential_seconds": seconds}))
		json.marshal(answer.obligations) == sprintf(`{"max_credential_seconds":%s}`, [number])
	}
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

_no_row := {"type": "constant", "value": false}

_named := {"type": "is-null", "column": {"name": "a"}, "negated": true}

_mask := {"column": "b", "action": "mask-alphanum"}

test_row_filters_and_masks_add_up if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.gateway.guardrails as {
			"first": guardrail({}, {0: {{"row_filters": [_no_row], "column_masks": ["a: sha-256-global", _mask]}}}),
			"second": guardrail({}, {0: {{"row_filters": {_no_row, _named}}}}),
		}
	answer.decisions[0].obligations == {
		"column_masks": ["a: sha-256-global", _mask],
		"row_filters": [_named, _no_row],
	}
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

test_only_a_malformed_question_is_denied if {
	answer := gateway.decisions with input as request([question("load_table"), {"operation": ""}])
	[one.allow | some one in answer.decisions] == [true, false]
	[reason.code | some reason in answer.decisions[1].reasons] == ["question_not_understood"]
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
# description: Policy data that limits the caching of answers to this number of seconds.
lasting(seconds) := {"memory": {"answers_last_seconds": seconds}, "contractors": {"users": ["oidc~c"], "roles": []}}

test_as_shipped_an_answer_lasts_for_a_second if {
	answer := gateway.decisions with input as request([question("load_table")])
	answer.valid_until == "2026-03-04T10:00:01Z"
}

test_with_no_seconds_no_answer_lasts if {
	every data_of_memory in [{"answers_last_seconds": 0}, {}] {
		answer := gateway.decisions with input as request([question("load_table")])
			with data.policy_data.memory as data_of_memory
		not answer.valid_until
	}
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

# METADATA
# description: The answer to one question while this is the only guardrail.
judged(rules) := answer.decisions[0] if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.gateway.guardrails as {"one": rules}
}

# METADATA
# description: The fault in the only reason.
fault(rules) := trim_suffix(trim_prefix(reason.message, "The package gateway.guardrails.one is invalid: "), ".") if {
	answer := judged(rules)
	answer.allow == false
	answer.obligations == {}
	[reason] := answer.reasons
	reason.code == "guardrail_invalid"
}

# METADATA
# description: A guardrail that returns these obligations for the first question.
obliging(obligation) := guardrail({}, {0: {obligation}})

test_a_guardrail_with_an_unknown_rule_denies if {
	fault({"denial": {0: {denial("a")}}, "obligations": {}}) == "unknown rule denial (helpers begin with _)"
	fault({"denials": {}, "deny": {}}) == "unknown rule deny (helpers begin with _)"
	fault({"denials": {}, "limits": false}) == "unknown rule limits (helpers begin with _)"
	fault({"denials": {}, "below": {"denials": {}}}) == "unknown rule below (helpers begin with _)"
}

test_helpers_may_have_any_value if {
	judged({"denials": {}, "_limits": false, "_denials": {0: {denial("a")}}}).allow == true
	judged({"denials": {}, "_names": {"denials", "steady"}, "_list": ["obligations"], "_text": "denials"}).allow == true
	judged({"denials": {}, "_by_name": {"denial": true}}).allow == true
}

test_a_package_that_is_read_as_a_helper_denies if {
	every rule, value in {"denials": {0: {denial("a")}}, "obligations": {}, "steady": false} {
		fault({"denials": {}, "_deny": {rule: value}}) == sprintf("_deny has the rule %s, which a helper cannot have", [rule])
	}
	fault({"denials": {}, "_deny": {"denials": null}}) == "_deny has the rule denials, which a helper cannot have"
}

test_a_guardrail_with_an_underscore_is_a_guardrail if {
	answer := gateway.decisions with input as request([question("load_table")])
		with data.gateway.guardrails as {"_one": guardrail({0: {denial("a")}}, {})}
	answer.decisions[0].reasons == [denial("a")]
}

test_a_guardrail_without_denials_and_obligations_denies if {
	fault({}) == "neither denials nor obligations is defined"
	fault({"steady": true, "_denials": {}}) == "neither denials nor obligations is defined"
}

test_a_guardrail_that_is_no_package_denies if {
	judged("denials").reasons[0].message == "The package gateway.guardrails.one is invalid: it is not a package of rules."
	judged("denials").allow == false
}

test_a_rule_of_the_wrong_type_denies if {
	judged({"denials": {}, "obligations": [{"no_vending": true}]}).allow == false
	fault({"denials": {}, "obligations": []}) == "the type of obligations is not object"
	fault({"denials": set(), "obligations": {}}) == "the type of denials is not object"
	fault({"denials": {}, "steady": "true"}) == "the type of steady is not boolean"
	fault({"denials": {}, "obligations": null}) == "the type of obligations is not object"
}

test_what_is_given_for_no_question_denies if {
	fault({"denials": {"0": {denial("a")}}}) == "denials[0] is not the index of a question"
	fault({"denials": {1: {denial("a")}}}) == "denials[1] is not the index of a question"
	fault(guardrail({}, {"all": {{"no_vending": true}}})) == "obligations[all] is not the index of a question"
	fault(guardrail({}, {-1: {{"no_vending": true}}})) == "obligations[-1] is not the index of a question"
}

test_an_unknown_obligation_denies if {
	fault(obliging({"no_vendng": true})) == "unknown field no_vendng in obligations"
	fault(obliging({"no_vending": true, "read_only": true})) == "unknown field read_only in obligations"
}

test_an_obligation_of_the_wrong_type_denies if {
	every name, values in {
		"append_only": ["true", 1, null, {}, [true]],
		"no_vending": ["true", 0, null],
		"max_credential_seconds": ["900", -1, 1.5, null, true, [900]],
		"hide_operations": ["drop_table", null, [1], {"drop_table": "x"}, [null], {1}],
		"row_filters": ["region = 'EU'", null, [1], ["region = 'EU'"], [{"value": true}], {"type": "constant"}, [null]],
		"column_masks": [
			"email: sha-256-global", null, [1], [{"column": "a"}], [{"action": "mask-alphanum"}],
			[{"column": "a", "action": "blur"}], [{"column": 1, "action": "mask-alphanum"}],
			[{"column": "a", "action": "mask-alphanum", "rows": "all"}], ["a: mask-alphanum", null],
		],
	} {
		every value in values {
			fault(obliging({name: value})) == sprintf("field %s of the wrong type or value in obligations", [name])
		}
	}
}

test_obligations_that_are_no_set_of_objects_deny if {
	fault(guardrail({}, {0: {"no_vending": true}})) == "obligations for a question is not a set"
	fault(guardrail({}, {0: [{"no_vending": true}]})) == "obligations for a question is not a set"
	fault(guardrail({}, {0: {"no_vending"}})) == "an entry that is not an object in obligations"
}

test_a_denial_of_the_wrong_form_denies_and_is_replaced_by_the_fault if {
	fault(guardrail({0: "no"}, {})) == "denials for a question is not a set"
	fault(guardrail({0: {"no"}}, {})) == "an entry that is not an object in denials"
	fault(guardrail({0: {{"code": "a"}}}, {})) == "missing field message in denials"
	fault(guardrail({0: {{"code": 1, "message": "b"}}}, {})) == "field code of the wrong type or value in denials"
	fault(guardrail({0: {{"code": "a", "message": "b", "why": "c"}}}, {})) == "unknown field why in denials"
}

test_an_invalid_guardrail_denies_beside_valid_ones_and_their_denials_stay if {
	answer := gateway.decisions with input as request([question("load_table"), question("drop_table")])
		with data.gateway.guardrails as {
			"good": guardrail({1: {denial("a")}}, {0: {{"no_vending": true}}}),
			"wrong": {"denials": {}, "denails": {}},
		}
	[{reason.code | some reason in one.reasons} | some one in answer.decisions] == [
		{"guardrail_invalid"},
		{"a", "guardrail_invalid"},
	]
	every one in answer.decisions {
		one.allow == false
	}
}

test_an_invalid_obligation_denies_only_its_question if {
	answer := gateway.decisions with input as request([question("load_table"), question("load_table")])
		with data.gateway.guardrails as {"one": guardrail({}, {1: {{"no_vendng": true}}})}
	[one.allow | some one in answer.decisions] == [true, false]
}

test_every_obligation_of_the_schema_reaches_the_answer if {
	properties := output.schema.properties.obligations.patternProperties["^[0-9]+$"].items.properties
	samples := {"boolean": true, "integer": 7, "array": ["a"]}
	every name, property in properties {
		sample := object.get({"row_filters": [_no_row]}, name, samples[property.type])
		judged(obliging({name: sample})) == {
			"allow": true,
			"reasons": [],
			"obligations": {name: sample},
		}
	}
	count(properties) > 3
}

test_hidden_operations_may_be_a_set if {
	judged(obliging({"hide_operations": {"b", "a"}})).obligations == {"hide_operations": ["a", "b"]}
}

test_without_guardrails_nothing_is_denied if {
	answer := gateway.decisions with input as request([question("load_table")]) with data.gateway.guardrails as {}
	answer.decisions[0].allow == true
}

test_a_guardrail_that_is_not_steady_keeps_answers_from_lasting if {
	every steady in [false, "true", 1] {
		answer := gateway.decisions with input as request([question("load_table")])
			with data.gateway.guardrails as {"one": {"denials": {}, "steady": steady}}
			with data.policy_data as lasting(60)
		not answer.valid_until
	}
}
