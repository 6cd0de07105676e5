# SPDX-License-Identifier: Apache-2.0
package system.authz_test

import data.system.authz

# METADATA
# description: OPA's environment with both tokens set.
both := {"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": "token-of-the-gateway", "LAKEGATE_OPA_OPERATOR_TOKEN": "token-of-the-operator"}}

# METADATA
# description: True if a client with this token may send the request, under this environment.
may(token, method, path, environment) if {
	authz.allow with input as {"identity": token, "method": method, "path": path, "params": {}}
		with opa.runtime as environment
}

# METADATA
# description: The path of the decisions.
decisions := ["v1", "data", "gateway", "decisions"]

# METADATA
# description: The path of one document of policy data.
contractors := ["v1", "data", "policy_data", "contractors"]

# METADATA
# description: Paths at which policies, configuration or other documents could be read or changed.
elsewhere := [
	["v1", "policies"],
	["v1", "policies", "gateway", "main.rego"],
	["v1", "data"],
	["v1", "data", "gateway"],
	["v1", "data", "gateway", "guardrails"],
	["v1", "data", "gateway", "decisions", "decisions"],
	["v1", "data", "system", "revision"],
	["v1", "data", "system", "authz", "allow"],
	["v1", "data", "policy_data2"],
	["v0", "data", "gateway", "decisions"],
	["v1", "query"],
	["v1", "compile"],
	["v1", "compile", "gateway", "decisions"],
	["v1", "config"],
	["v1", "status"],
	["metrics"],
	["health", "live"],
	[],
]

test_the_gateway_asks_its_question_and_looks_for_life if {
	may("token-of-the-gateway", "POST", decisions, both)
	may("token-of-the-gateway", "POST", ["v1", "data", "system", "revision", "current"], both)
	may("token-of-the-gateway", "GET", ["health"], both)
}

test_the_gateway_may_do_nothing_else if {
	every method in ["GET", "PUT", "PATCH", "DELETE", "HEAD"] {
		not may("token-of-the-gateway", method, decisions, both)
		not may("token-of-the-gateway", method, contractors, both)
	}
	not may("token-of-the-gateway", "POST", contractors, both)
	not may("token-of-the-gateway", "POST", ["health"], both)
	every path in elsewhere {
		every method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
			not may("token-of-the-gateway", method, path, both)
		}
	}
}

# METADATA
# description: True if the gateway may query this path with these parameters.
may_with(path, params) if {
	authz.allow with input as {"identity": "token-of-the-gateway", "method": "POST", "path": path, "params": params}
		with opa.runtime as both
}

test_the_gateway_may_have_errors_of_builtin_functions_reported_and_nothing_else if {
	may_with(decisions, {"strict-builtin-errors": ["true"]})
	not may_with(["v1", "data", "system", "revision", "current"], {"strict-builtin-errors": ["true"]})
	every params in [
		{"strict-builtin-errors": ["false"]},
		{"strict-builtin-errors": ["true", "true"]},
		{"strict-builtin-errors": []},
		{"strict-builtin-errors": ["true"], "metrics": ["true"]},
		{"metrics": ["true"]},
		{"provenance": ["true"]},
	] {
		not may_with(decisions, params)
	}
}

# METADATA
# description: The parameters that return the trace of a decision as text.
traced := {"strict-builtin-errors": ["true"], "explain": ["full"], "pretty": ["true"]}

# METADATA
# description: True if the client with this token may query the path, with these parameters and this number of questions.
may_trace(token, path, params, questions) if {
	authz.allow with input as {
		"identity": token,
		"method": "POST",
		"path": path,
		"params": params,
		"body": {"input": {"questions": questions}},
	}
		with opa.runtime as both
}

test_the_gateway_may_trace_one_question_and_nothing_else if {
	gateway := "token-of-the-gateway"
	may_trace(gateway, decisions, traced, [{}])
	not may_trace("token-of-the-operator", decisions, traced, [{}])
	not may_trace(gateway, decisions, traced, [])
	not may_trace(gateway, decisions, traced, [{}, {}])
	not may_trace(gateway, ["v1", "data", "system", "revision", "current"], traced, [{}])
	every change in [{"explain": ["notes"]}, {"pretty": ["false"]}, {"metrics": ["true"]}, {"strict-builtin-errors": []}] {
		not may_trace(gateway, decisions, object.union(traced, change), [{}])
	}
}

test_the_gateway_may_query_one_rule_about_changes_and_nothing_else if {
	verdict := ["v1", "data", "lakegate", "changes", "verdict"]
	strict := {"strict-builtin-errors": ["true"]}
	may_with(verdict, strict)
	not may_with(verdict, {})
	not may_with(verdict, {"strict-builtin-errors": ["true"], "metrics": ["true"]})
	every path in [
		["v1", "data", "lakegate"],
		["v1", "data", "lakegate", "changes"],
		["v1", "data", "lakegate", "changes", "verdict", "reasons"],
		["v1", "data", "lakegate", "other", "verdict"],
		["v0", "data", "lakegate", "changes", "verdict"],
	] {
		not may_with(path, strict)
	}
	every method in ["GET", "PUT", "PATCH", "DELETE"] {
		not authz.allow with input as {
			"identity": "token-of-the-gateway",
			"method": method,
			"path": verdict,
			"params": strict,
		}
			with opa.runtime as both
	}
	every token in ["", "token-of-the-operator"] {
		not authz.allow with input as {"identity": token, "method": "POST", "path": verdict, "params": strict}
			with opa.runtime as both
	}
}

# METADATA
# description: The only body of a partial evaluation.
pinned := {
	"query": "data.gateway.residual.speaks[x]",
	"input": {"actor": {"id": "oidc~alice", "kind": "user"}},
	"unknowns": ["input.context", "input.questions"],
}

# METADATA
# description: True if a client with this token may compile this body with these parameters.
may_compile(token, params, body) if {
	authz.allow with input as {"identity": token, "method": "POST", "path": ["v1", "compile"], "params": params, "body": body}
		with opa.runtime as both
}

# METADATA
# description: The only parameters of a partial evaluation.
full := {"explain": ["full"]}

test_the_gateway_may_evaluate_one_query_partially if {
	may_compile("token-of-the-gateway", full, pinned)
	not may_compile("token-of-the-operator", full, pinned)
	not may_compile("", full, pinned)
	every method in ["GET", "PUT", "PATCH", "DELETE"] {
		not authz.allow with input as {
			"identity": "token-of-the-gateway",
			"method": method,
			"path": ["v1", "compile"],
			"params": full,
			"body": pinned,
		}
			with opa.runtime as both
	}
	every path in [["v1", "compile", ""], ["v1", "compile", "gateway", "residual", "speaks"], ["v0", "compile"]] {
		not authz.allow with input as {
			"identity": "token-of-the-gateway",
			"method": "POST",
			"path": path,
			"params": full,
			"body": pinned,
		}
			with opa.runtime as both
	}
}

test_the_gateway_may_not_evaluate_another_body_partially if {
	every changed in [
		{"query": "data.gateway.residual.speaks"},
		{"query": "data.gateway.residual.speaks[x]; y = opa.runtime()"},
		{"query": "opa.runtime().env = x"},
		{"query": ""},
		{"unknowns": []},
		{"unknowns": ["input"]},
		{"unknowns": ["input.context"]},
		{"unknowns": ["input.questions", "input.context"]},
		{"unknowns": ["input.context", "input.questions", "input.actor.roles"]},
		{"unknowns": null},
		{"options": {}},
		{"options": {"nondeterministicBuiltins": true}},
		{"metrics": true},
		{"input": {}},
		{"input": {"actor": {}, "context": {}}},
		{"input": {"actor": {}, "questions": []}},
		{"input": null},
	] {
		not may_compile("token-of-the-gateway", full, object.union(object.remove(pinned, object.keys(changed)), changed))
	}
	every key in object.keys(pinned) {
		not may_compile("token-of-the-gateway", full, object.remove(pinned, [key]))
	}
	every body in [null, [], "", [pinned]] {
		not may_compile("token-of-the-gateway", full, body)
	}
}

test_the_gateway_may_not_evaluate_partially_with_other_parameters if {
	every params in [
		{},
		{"explain": ["fails"]},
		{"explain": ["full", "full"]},
		{"explain": ["full"], "pretty": ["true"]},
		{"explain": ["full"], "instrument": ["true"]},
		{"explain": []},
	] {
		not may_compile("token-of-the-gateway", params, pinned)
	}
}

test_the_gateway_may_not_ask_for_an_explanation if {
	not authz.allow with input as {
		"identity": "token-of-the-gateway",
		"method": "POST",
		"path": decisions,
		"params": {"explain": ["full"]},
	}
		with opa.runtime as both
}

test_the_operator_reads_and_replaces_policy_data if {
	every method in ["GET", "PUT", "PATCH"] {
		may("token-of-the-operator", method, contractors, both)
		may("token-of-the-operator", method, ["v1", "data", "policy_data"], both)
		may("token-of-the-operator", method, ["v1", "data", "policy_data", "credentials", "rules", "0"], both)
	}
	may("token-of-the-operator", "GET", ["health"], both)
}

test_the_operator_may_do_nothing_else if {
	not may("token-of-the-operator", "POST", decisions, both)
	not may("token-of-the-operator", "POST", contractors, both)
	not may("token-of-the-operator", "DELETE", contractors, both)
	not may("token-of-the-operator", "PUT", ["health"], both)
	not may("token-of-the-operator", "PUT", array.concat(contractors, ["..", "..", "gateway"]), both)
	every path in elsewhere {
		every method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
			not may("token-of-the-operator", method, path, both)
		}
	}
}

test_other_tokens_may_do_nothing if {
	every token in ["", "other", "token-of-the-gateway ", null, true] {
		not may(token, "POST", decisions, both)
		not may(token, "GET", ["health"], both)
		not may(token, "PUT", contractors, both)
	}
}

test_no_token_may_do_nothing if {
	not authz.allow with input as {"method": "POST", "path": decisions} with opa.runtime as both
	not authz.allow with input as {"method": "GET", "path": ["health"]} with opa.runtime as both
}

test_an_empty_or_missing_token_in_the_environment_matches_nobody if {
	every environment in [
		{},
		{"env": {}},
		{"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": "", "LAKEGATE_OPA_OPERATOR_TOKEN": ""}},
	] {
		every token in ["", null, "null", "undefined"] {
			not may(token, "POST", decisions, environment)
			not may(token, "GET", ["health"], environment)
			not may(token, "PUT", contractors, environment)
		}
	}
}

test_one_missing_token_leaves_the_other_as_it_is if {
	gateway_only := {"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": "token-of-the-gateway"}}
	may("token-of-the-gateway", "POST", decisions, gateway_only)
	not may("", "PUT", contractors, gateway_only)
	operator_only := {"env": {"LAKEGATE_OPA_OPERATOR_TOKEN": "token-of-the-operator"}}
	may("token-of-the-operator", "PUT", contractors, operator_only)
	not may("", "POST", decisions, operator_only)
}

test_one_token_for_both_is_no_operator if {
	same := {"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": "one", "LAKEGATE_OPA_OPERATOR_TOKEN": "one"}}
	may("one", "POST", decisions, same)
	not may("one", "PUT", contractors, same)
}

test_white_space_around_a_configured_token_is_no_part_of_it if {
	padded := {"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": " one\n", "LAKEGATE_OPA_OPERATOR_TOKEN": "two\r\n"}}
	may("one", "POST", decisions, padded)
	not may(" one\n", "POST", decisions, padded)
	may("two", "PUT", contractors, padded)
	not may("two\r\n", "PUT", contractors, padded)
	equal := {"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": "one\n", "LAKEGATE_OPA_OPERATOR_TOKEN": "one"}}
	not may("one", "PUT", contractors, equal)
	blank := {"env": {"LAKEGATE_OPA_GATEWAY_TOKEN": "\n", "LAKEGATE_OPA_OPERATOR_TOKEN": "\n"}}
	not may("", "POST", decisions, blank)
	not may("", "PUT", contractors, blank)
}
