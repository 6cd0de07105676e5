# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: State of the bridge
# description: |
#   What `lakegate trino check` reports: the state of each variable, of the bridge's token, and of its right on each
#   warehouse. It contains no value of a variable and no token. No decision depends on it.
package trino.setup

import data.trino.gateway
import data.trino.settings

# METADATA
# description: The environment of the OPA process.
_env := opa.runtime().env

# METADATA
# description: Variables whose values may be any text.
_texts := {
	"LAKEGATE_BRIDGE_TOKEN",
	"LAKEGATE_BRIDGE_TOKEN_ENDPOINT",
	"LAKEGATE_BRIDGE_CLIENT_ID",
	"LAKEGATE_BRIDGE_CLIENT_SECRET",
	"LAKEGATE_BRIDGE_SCOPE",
	"LAKEGATE_BRIDGE_ENGINE_SUBJECT",
	"LAKEGATE_BRIDGE_ENGINE_KEY",
	"LAKEGATE_BRIDGE_CA_FILE",
}

# METADATA
# description: Variables whose values are lists in JSON.
_lists := {"LAKEGATE_BRIDGE_PROVIDERS", "LAKEGATE_BRIDGE_OPERATORS", "LAKEGATE_BRIDGE_OPEN_CATALOGS"}

# METADATA
# description: Variables whose values have a form of their own.
_others := {"LAKEGATE_BRIDGE_URL", "LAKEGATE_BRIDGE_CATALOGS", "LAKEGATE_BRIDGE_TIMEOUT"}

# METADATA
# description: The state of each variable (`set`, `missing` or `unreadable`).
variables[name] := _state(name) if some name in ((_texts | _lists) | _others)

# METADATA
# description: The state of one variable.
_state(name) := "missing" if {
	object.get(_env, name, "") == ""
} else := "set" if {
	_is_readable(name)
} else := "unreadable"

# METADATA
# description: Every text is readable.
_is_readable(name) if name in _texts

# METADATA
# description: A list is valid JSON.
_is_readable(name) if {
	name in _lists
	is_array(json.unmarshal(_env[name]))
}

# METADATA
# description: The address has a scheme and a host.
_is_readable("LAKEGATE_BRIDGE_URL") if regex.match(`^https?://[^/]`, settings.url)

# METADATA
# description: The timeout is a positive duration.
_is_readable("LAKEGATE_BRIDGE_TIMEOUT") if time.parse_duration_ns(_env.LAKEGATE_BRIDGE_TIMEOUT) > 0

# METADATA
# description: The settings contain each catalog of the variable.
_is_readable("LAKEGATE_BRIDGE_CATALOGS") if {
	mapped := json.unmarshal(_env.LAKEGATE_BRIDGE_CATALOGS)
	object.keys(mapped) == object.keys(settings.warehouse_of)
	count(mapped) > 0
}

# METADATA
# description: |
#   The source of the bridge's token: `none`, `configured` or `fetched`. A fetched one has the status of the provider's
#   response, which is 0 without a response.
default token := {"source": "none"}

token := {"source": "configured"} if {
	_env.LAKEGATE_BRIDGE_TOKEN != ""
} else := object.union({"source": "fetched"}, gateway.outcome(settings.fetched))

# METADATA
# description: |
#   The response of the gateway to one check about the user, by catalog: its status, and the error of a refusal. A
#   catalog is absent if no request can be sent, because the token or the gateway's address is missing.
warehouses[catalog] := gateway.outcome(gateway.answer(input.context.identity.user, check)) if {
	some catalog, id in settings.warehouse_of
	check := {"warehouse": {"warehouse-id": id, "action": {"action": "get_config"}}}
}
