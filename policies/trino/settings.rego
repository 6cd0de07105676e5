# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: How the bridge is set up
# description: |
#   Everything that differs between two deployments is in OPA's environment, so that the bundle is the same for all. What
#   is missing or cannot be read is undefined, and nothing is allowed by it.
package trino.settings

# METADATA
# description: The environment OPA was started with.
_env := opa.runtime().env

# METADATA
# description: Where the gateway is, without a slash at the end.
url := trim_right(_env.LAKEGATE_BRIDGE_URL, "/")

# METADATA
# description: The warehouse of each of Trino's catalogs, by its id; a JSON object.
warehouse_of[catalog] := id if {
	some catalog, id in json.unmarshal(_env.LAKEGATE_BRIDGE_CATALOGS)
	regex.match(`^[0-9a-fA-F-]{36}$`, id)
}

# METADATA
# description: |
#   Catalogs that the gateway knows nothing of and that everybody may use, for all that Trino can do in them; a JSON list.
#   One that is told to be a warehouse's as well is none of these, whatever its id looks like; and when those cannot be
#   read nothing is.
open_catalogs contains catalog if {
	mapped := object.keys(json.unmarshal(_env.LAKEGATE_BRIDGE_CATALOGS))
	some catalog in json.unmarshal(_env.LAKEGATE_BRIDGE_OPEN_CATALOGS)
	is_string(catalog)
	not catalog in mapped
	catalog != "system"
}

# METADATA
# description: Who runs Trino, by their names there; a JSON list.
operators contains user if some user in json.unmarshal(_env.LAKEGATE_BRIDGE_OPERATORS)

# METADATA
# description: |
#   The identity providers that Trino's users come from, by their names at the gateway; a JSON list. One that cannot be
#   read is none: taken for another provider, everybody would be answered as somebody else.
providers := ["oidc"] if {
	not _env.LAKEGATE_BRIDGE_PROVIDERS
} else := json.unmarshal(_env.LAKEGATE_BRIDGE_PROVIDERS)

# METADATA
# description: How long an answer of the gateway is waited for; later is no.
default timeout := "10s"

timeout := _env.LAKEGATE_BRIDGE_TIMEOUT

# METADATA
# description: What the bridge shows to be itself, a token that it was given or one that it fetches as itself.
token := _env.LAKEGATE_BRIDGE_TOKEN if {
	_env.LAKEGATE_BRIDGE_TOKEN != ""
} else := fetched.body.access_token if {
	fetched := http.send(object.union(transport, {
		"method": "POST",
		"url": _env.LAKEGATE_BRIDGE_TOKEN_ENDPOINT,
		"headers": {"Content-Type": "application/x-www-form-urlencoded", "Authorization": _client},
		"raw_body": urlquery.encode_object(object.union({"grant_type": "client_credentials"}, _scope)),
		# The bridge's own token is all that is ever kept: it says who asks, and nothing of what is allowed.
		"force_cache": true,
		"force_cache_duration_seconds": 30,
	}))
	fetched.status_code == 200
	is_string(fetched.body.access_token)
}

# METADATA
# description: The scope to ask a token for; not every provider wants one.
default _scope := {}

_scope := {"scope": _env.LAKEGATE_BRIDGE_SCOPE} if _env.LAKEGATE_BRIDGE_SCOPE != ""

# METADATA
# description: The client and its secret, in the one way that every provider has to take (RFC 6749, 2.3.1).
_client := concat(" ", ["Basic", base64.encode(concat(":", [
	urlquery.encode(_env.LAKEGATE_BRIDGE_CLIENT_ID),
	urlquery.encode(_env.LAKEGATE_BRIDGE_CLIENT_SECRET),
]))])

# METADATA
# description: How all requests travel; nothing is tried twice and no redirect is followed.
transport := object.union(
	{"timeout": timeout, "raise_error": false, "enable_redirect": false, "max_retry_attempts": 0},
	_authorities,
)

# METADATA
# description: Whose certificates to believe, when those of the system are not enough.
default _authorities := {}

_authorities := {"tls_ca_cert_file": _env.LAKEGATE_BRIDGE_CA_FILE, "tls_use_system_certs": false} if {
	_env.LAKEGATE_BRIDGE_CA_FILE != ""
}
