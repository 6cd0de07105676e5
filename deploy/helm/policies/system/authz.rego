# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Clients that may call OPA
# description: |
#   OPA runs with --authentication=token --authorization=basic and queries this package for every request. There are two
#   clients, each identified by a token in OPA's environment. The gateway queries decisions. The operator replaces
#   policy data. No client can create, change or remove a policy module, and requests without a token get no
#   information.
package system.authz

# METADATA
# description: Requests that no rule below allows are refused.
default allow := false

# METADATA
# description: |
#   The gateway queries decisions. The only permitted parameter turns an error of a built-in function into an error of
#   the request. Without it, an erroneous rule would deny nothing. Other parameters could return traces of many
#   questions, or metrics.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	input.path == ["v1", "data", "gateway", "decisions"]
	object.get(input, "params", {}) in [{}, {"strict-builtin-errors": ["true"]}]
}

# METADATA
# description: |
#   The gateway queries one decision with its trace, to name the rules behind it. The trace contains policies and policy
#   data. The gateway shows only the names and positions of rules, and only to callers that may read them.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	input.path == ["v1", "data", "gateway", "decisions"]
	object.get(input, "params", {}) == {"strict-builtin-errors": ["true"], "explain": ["full"], "pretty": ["true"]}
	count(input.body.input.questions) == 1
}

# METADATA
# description: |
#   The gateway queries one rule of the package with the operator's verdicts on changes of the catalog. The parameter is
#   required: without it, an erroneous reason would reject nothing.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	count(input.path) == 5
	array.slice(input.path, 0, 4) == ["v1", "data", "lakegate", "changes"]
	object.get(input, "params", {}) == {"strict-builtin-errors": ["true"]}
}

# METADATA
# description: The gateway queries the revision of the policies.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	input.path == ["v1", "data", "system", "revision", "current"]
	_no_parameters
}

# METADATA
# description: |
#   The gateway evaluates one query partially: what the guardrails can have against this caller. The body is pinned: any
#   other query, or any option, could return policies, or the tokens in OPA's environment. The parameter returns the
#   steps of the evaluation, without which the gateway could not know whether to trust the result.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	input.path == ["v1", "compile"]
	object.get(input, "params", {}) == {"explain": ["full"]}
	object.keys(input.body) == {"query", "input", "unknowns"}
	input.body.query == "data.gateway.residual.speaks[x]"
	input.body.unknowns == ["input.context", "input.questions"]
	object.keys(input.body.input) == {"actor"}
}

# METADATA
# description: The gateway queries the health of OPA.
allow if {
	_is(_gateway_token)
	input.method == "GET"
	input.path == ["health"]
}

# METADATA
# description: |
#   The operator reads and replaces policy data. The two tokens must differ: the gateway must not be able to change the
#   data that decides about its requests.
allow if {
	_is(_operator_token)
	_operator_token != _gateway_token
	input.method in {"GET", "PUT", "PATCH"}
	array.slice(input.path, 0, 3) == ["v1", "data", "policy_data"]
	not ".." in input.path
}

# METADATA
# description: The operator queries the health of OPA.
allow if {
	_is(_operator_token)
	input.method == "GET"
	input.path == ["health"]
}

# METADATA
# description: |
#   The token of the gateway; empty if it is not configured. Many tools end a secret with a newline, which is no part of
#   the token. The gateway sends none.
default _gateway_token := ""

_gateway_token := trim_space(opa.runtime().env.LAKEGATE_OPA_GATEWAY_TOKEN)

# METADATA
# description: The token of the operator; empty if it is not configured.
default _operator_token := ""

_operator_token := trim_space(opa.runtime().env.LAKEGATE_OPA_OPERATOR_TOKEN)

# METADATA
# description: |
#   The client sent this token. An empty token identifies no client. Digests are compared to prevent a timing attack.
_is(token) if {
	token != ""
	crypto.sha256(input.identity) == crypto.sha256(token)
}

# METADATA
# description: The request has no query parameters.
_no_parameters if count(object.get(input, "params", {})) == 0
