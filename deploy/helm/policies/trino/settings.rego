# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Configuration of the bridge
# description: |
#   OPA's environment contains all values that differ between deployments, so that one bundle serves all of them. A
#   missing or unreadable value is undefined and allows nothing.
package trino.settings

# METADATA
# description: The environment of the OPA process.
_env := opa.runtime().env

# METADATA
# description: The address of the gateway, without a trailing slash.
url := trim_right(_env.LAKEGATE_BRIDGE_URL, "/")

# METADATA
# description: A JSON object that maps each of Trino's catalogs to the id of its warehouse.
warehouse_of[catalog] := id if {
	some catalog, id in json.unmarshal(_env.LAKEGATE_BRIDGE_CATALOGS)
	regex.match(`^[0-9a-fA-F-]{36}$`, id)
}

# METADATA
# description: |
#   A JSON list of catalogs that have no warehouse and allow every user every operation. A catalog that is also mapped
#   to a warehouse is not open, even if its warehouse id is invalid. If the mapping is unreadable, no catalog is open.
open_catalogs contains catalog if {
	mapped := object.keys(json.unmarshal(_env.LAKEGATE_BRIDGE_CATALOGS))
	some catalog in json.unmarshal(_env.LAKEGATE_BRIDGE_OPEN_CATALOGS)
	is_string(catalog)
	not catalog in mapped
	catalog != "system"
}

# METADATA
# description: A JSON list of the operators of Trino, by their names in Trino.
operators contains user if some user in json.unmarshal(_env.LAKEGATE_BRIDGE_OPERATORS)

# METADATA
# description: |
#   A JSON list of the identity providers of Trino's users, by their ids at the gateway. An unreadable list contains no
#   provider: another provider would resolve users to the wrong ids.
providers := ["oidc"] if {
	not _env.LAKEGATE_BRIDGE_PROVIDERS
} else := json.unmarshal(_env.LAKEGATE_BRIDGE_PROVIDERS)

# METADATA
# description: The timeout of a request to the gateway. A late answer counts as a denial.
default timeout := "10s"

timeout := _env.LAKEGATE_BRIDGE_TIMEOUT

# METADATA
# description: |
#   The token of the bridge: a configured one, or one that it fetches with its client credentials.
token := _env.LAKEGATE_BRIDGE_TOKEN if {
	_env.LAKEGATE_BRIDGE_TOKEN != ""
} else := fetched.body.access_token if {
	fetched.status_code == 200
	is_string(fetched.body.access_token)
}

# METADATA
# description: The response of the identity provider to a request for the bridge's token.
fetched := http.send(object.union(transport, {
	"method": "POST",
	"url": _env.LAKEGATE_BRIDGE_TOKEN_ENDPOINT,
	"headers": {"Content-Type": "application/x-www-form-urlencoded", "Authorization": _client},
	"raw_body": urlquery.encode_object(object.union({"grant_type": "client_credentials"}, _scope)),
	# Only the bridge's own token is cached. It identifies the bridge and contains no decision.
	"force_cache": true,
	"force_cache_duration_seconds": 30,
}))

# METADATA
# description: The scope of the token request; some providers need none.
default _scope := {}

_scope := {"scope": _env.LAKEGATE_BRIDGE_SCOPE} if _env.LAKEGATE_BRIDGE_SCOPE != ""

# METADATA
# description: |
#   The client id and secret as HTTP Basic authentication, which every provider must support (RFC 6749, section 2.3.1).
_client := concat(" ", ["Basic", base64.encode(concat(":", [
	urlquery.encode(_env.LAKEGATE_BRIDGE_CLIENT_ID),
	urlquery.encode(_env.LAKEGATE_BRIDGE_CLIENT_SECRET),
]))])

# METADATA
# description: |
#   Options of all requests: no retries and no redirects.
transport := object.union(
	{"timeout": timeout, "raise_error": false, "enable_redirect": false, "max_retry_attempts": 0},
	_authorities,
)

# METADATA
# description: A file of CA certificates, used instead of the system's.
default _authorities := {}

_authorities := {"tls_ca_cert_file": _env.LAKEGATE_BRIDGE_CA_FILE, "tls_use_system_certs": false} if {
	_env.LAKEGATE_BRIDGE_CA_FILE != ""
}
