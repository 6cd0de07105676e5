# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Who may ask the bridge
# description: |
#   Trino sends OPA no token, and whoever asks the bridge learns what everybody may do. So the engine shows a certificate
#   (OPA runs with --authentication=tls), or a secret in the addresses it was given (`…/v1/data/trino/allow?key=…`), or
#   both when both are set. Only the entry points can be asked: what lies behind them holds the bridge's token. OPA runs
#   with --authorization=basic and --set=default_authorization_decision=/trino/authz/allow.
package trino.authz

# METADATA
# description: Everything that is not allowed below is refused.
default allow := false

# METADATA
# description: An engine asks at one of the entry points.
allow if {
	input.method == "POST"
	["v1", "data", "trino", entry] = input.path
	entry in {"allow", "batch", "row_filters", "column_mask", "batch_column_masks"}
	_only_the_key
	_is_engine
}

# METADATA
# description: Somebody looks whether OPA is there, and learns nothing else.
allow if {
	input.method == "GET"
	input.path == ["health"]
}

# METADATA
# description: Without a parameter but the key, so that no trace, metric or explanation of a decision leaves OPA.
_only_the_key if object.keys(object.get(input, "params", {})) - {"key"} == set()

# METADATA
# description: Whatever was set up to know the engine by says that it is the engine, and something was.
_is_engine if {
	count({_subject, _key} - {""}) > 0
	_certified
	_knows_the_key
}

# METADATA
# description: The request came over TLS with the certificate that was named, if one was.
_certified if {
	_subject == ""
} else if {
	count(input.client_certificates) > 0
	input.identity == _subject
}

# METADATA
# description: The request has the key, if there is one. Digests are compared, so that the time it takes tells nothing.
_knows_the_key if {
	_key == ""
} else if {
	[shown] := input.params.key
	crypto.sha256(shown) == crypto.sha256(_key)
}

# METADATA
# description: The subject of the engine's certificate, as OPA writes it; none if it is not set.
default _subject := ""

_subject := opa.runtime().env.LAKEGATE_BRIDGE_ENGINE_SUBJECT

# METADATA
# description: The secret in the engine's addresses; none if it is not set.
default _key := ""

_key := opa.runtime().env.LAKEGATE_BRIDGE_ENGINE_KEY
