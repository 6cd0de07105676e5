# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Clients that may call the bridge
# description: |
#   Trino sends no token to OPA, and the answers of the bridge reveal the rights of every user. The engine therefore
#   authenticates by a certificate (OPA runs with --authentication=tls), by a secret in the configured addresses
#   (`…/v1/data/trino/allow?key=…`), or by both if both are set. Clients can query the entry points only, because the
#   packages behind them hold the bridge's token. OPA runs with --authorization=basic and
#   --set=default_authorization_decision=/trino/authz/allow.
package trino.authz

# METADATA
# description: Requests that no rule below allows are refused.
default allow := false

# METADATA
# description: The engine queries one of the entry points.
allow if {
	input.method == "POST"
	["v1", "data", "trino", entry] = input.path
	entry in {"allow", "batch", "row_filters", "column_mask", "batch_column_masks", "diagnosis"}
	_only_the_key
	_is_engine
}

# METADATA
# description: Any client queries the health of OPA. The response contains nothing else.
allow if {
	input.method == "GET"
	input.path == ["health"]
}

# METADATA
# description: |
#   The request has no parameter except the key, so that OPA returns no trace, metric or explanation of a decision.
_only_the_key if object.keys(object.get(input, "params", {})) - {"key"} == set()

# METADATA
# description: The engine passes every configured check, and at least one check is configured.
_is_engine if {
	count({_subject, _key} - {""}) > 0
	_certified
	_knows_the_key
}

# METADATA
# description: The request came over TLS with the configured certificate, if one is configured.
_certified if {
	_subject == ""
} else if {
	count(input.client_certificates) > 0
	input.identity == _subject
}

# METADATA
# description: The request contains the key, if one is configured. Digests are compared to prevent a timing attack.
_knows_the_key if {
	_key == ""
} else if {
	[shown] := input.params.key
	crypto.sha256(shown) == crypto.sha256(_key)
}

# METADATA
# description: The subject of the engine's certificate in OPA's notation; empty if it is not configured.
default _subject := ""

_subject := opa.runtime().env.LAKEGATE_BRIDGE_ENGINE_SUBJECT

# METADATA
# description: The secret in the engine's addresses; empty if it is not configured.
default _key := ""

_key := opa.runtime().env.LAKEGATE_BRIDGE_ENGINE_KEY
