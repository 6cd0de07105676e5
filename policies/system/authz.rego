# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Who may talk to OPA
# description: |
#   OPA runs with --authentication=token --authorization=basic and asks this package about every request. There are two
#   callers, each known by a token from OPA's environment. The gateway asks for decisions. The operator replaces policy
#   data. Nobody can put in, change or remove a policy module, and nobody without a token is told anything.
package system.authz

# METADATA
# description: Everything that is not allowed below is refused.
default allow := false

# METADATA
# description: |
#   The gateway asks for decisions. No parameter but the one that makes an error of a built-in function an error of the
#   request, so that no trace or metric of a policy leaves OPA. Without it an erroneous rule would deny nothing.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	input.path == ["v1", "data", "gateway", "decisions"]
	object.get(input, "params", {}) in [{}, {"strict-builtin-errors": ["true"]}]
}

# METADATA
# description: The gateway asks which policies these are.
allow if {
	_is(_gateway_token)
	input.method == "POST"
	input.path == ["v1", "data", "system", "revision", "current"]
	_no_parameters
}

# METADATA
# description: The gateway looks whether OPA is there.
allow if {
	_is(_gateway_token)
	input.method == "GET"
	input.path == ["health"]
}

# METADATA
# description: |
#   The operator reads and replaces policy data. The two tokens must differ: a gateway that could change the data its
#   questions are judged by would not be judged.
allow if {
	_is(_operator_token)
	_operator_token != _gateway_token
	input.method in {"GET", "PUT", "PATCH"}
	array.slice(input.path, 0, 3) == ["v1", "data", "policy_data"]
	not ".." in input.path
}

# METADATA
# description: The operator looks whether OPA is there.
allow if {
	_is(_operator_token)
	input.method == "GET"
	input.path == ["health"]
}

# METADATA
# description: The token of the gateway; none if it is not set.
default _gateway_token := ""

_gateway_token := opa.runtime().env.LAKEGATE_OPA_GATEWAY_TOKEN

# METADATA
# description: The token of the operator; none if it is not set.
default _operator_token := ""

_operator_token := opa.runtime().env.LAKEGATE_OPA_OPERATOR_TOKEN

# METADATA
# description: |
#   The caller showed this token. An empty token is nobody's. Digests are compared, so that the time it takes tells
#   nothing of the token.
_is(token) if {
	token != ""
	crypto.sha256(input.identity) == crypto.sha256(token)
}

# METADATA
# description: The request has no query parameters.
_no_parameters if count(object.get(input, "params", {})) == 0
