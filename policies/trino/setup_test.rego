# SPDX-License-Identifier: Apache-2.0
package trino.setup_test

import data.trino
import data.trino.setup
import data.trino.world_test as world

# METADATA
# description: The state of a variable with this value.
state(name, value) := result if {
	result := setup.variables[name] with opa.runtime as world.opa_with({name: value})
}

test_the_state_of_a_variable_shows_no_value if {
	states := setup.variables with opa.runtime as world.opa
	count(states) == 14
	states.LAKEGATE_BRIDGE_URL == "set"
	states.LAKEGATE_BRIDGE_CATALOGS == "set"
	states.LAKEGATE_BRIDGE_TOKEN == "set"
	states.LAKEGATE_BRIDGE_OPERATORS == "set"
	states.LAKEGATE_BRIDGE_TIMEOUT == "missing"
	states.LAKEGATE_BRIDGE_CLIENT_SECRET == "missing"
	{value | some value in states} == {"set", "missing"}
}

test_a_value_that_the_bridge_cannot_use_is_unreadable if {
	every value in ["gateway.example", "ftp://gateway.example", "https:///"] {
		state("LAKEGATE_BRIDGE_URL", value) == "unreadable"
	}
	every value in ["ice", "[]", "{}", `{"ice": "demo"}`, `{"ice": "0192d4c6-0000-7000-8000-000000000001", "lab": "x"}`] {
		state("LAKEGATE_BRIDGE_CATALOGS", value) == "unreadable"
	}
	every name in ["LAKEGATE_BRIDGE_PROVIDERS", "LAKEGATE_BRIDGE_OPERATORS", "LAKEGATE_BRIDGE_OPEN_CATALOGS"] {
		state(name, "corp") == "unreadable"
		state(name, `{"a": 1}`) == "unreadable"
		state(name, `["corp"]`) == "set"
		state(name, "") == "missing"
	}
	state("LAKEGATE_BRIDGE_TIMEOUT", "10") == "unreadable"
	state("LAKEGATE_BRIDGE_TIMEOUT", "0s") == "unreadable"
	state("LAKEGATE_BRIDGE_TIMEOUT", "3s") == "set"
}

# METADATA
# description: An environment in which the bridge fetches its token.
fetching := object.union(object.remove(world.env, ["LAKEGATE_BRIDGE_TOKEN"]), {
	"LAKEGATE_BRIDGE_TOKEN_ENDPOINT": "https://idp.example/token",
	"LAKEGATE_BRIDGE_CLIENT_ID": "bridge",
	"LAKEGATE_BRIDGE_CLIENT_SECRET": "secret",
})

issues(_) := {"status_code": 200, "body": {"access_token": "fetched"}}

refuses(_) := {"status_code": 401, "body": {"error": "invalid_client", "error_description": "secret"}}

is_silent(_) := {"status_code": 0, "error": {"code": "eval_http_send_network_error", "message": "connection refused"}}

test_the_state_of_the_token_shows_no_token if {
	setup.token == {"source": "configured"} with opa.runtime as world.opa
	setup.token == {"source": "none"} with opa.runtime as {"env": {}}
	setup.token == {"source": "fetched", "status": 200} with opa.runtime as {"env": fetching} with http.send as issues
	setup.token == {"source": "fetched", "status": 401, "error": "invalid_client"} with opa.runtime as {"env": fetching}
		with http.send as refuses
	setup.token == {"source": "fetched", "status": 0, "error": "connection refused"} with opa.runtime as {"env": fetching}
		with http.send as is_silent
}

forbids(_) := {"status_code": 403, "body": {"error": {"type": "Forbidden", "message": "no", "code": 403}}}

# METADATA
# description: The state of the bridge for this user.
state_for(user) := result if {
	result := trino.diagnosis with input as {"context": {"identity": {"user": user}}} with opa.runtime as world.opa
}

test_each_warehouse_is_checked if {
	reached := state_for("alice") with http.send as world.gateway with data.holds as {}
	reached.warehouses == {"ice": {"status": 200}, "lab": {"status": 200}}
	refused := state_for("alice") with http.send as forbids
	refused.warehouses.ice == {"status": 403, "error": "Forbidden"}
	odd := state_for("alice") with http.send as {"status_code": 502, "raw_body": "no"}
	odd.warehouses.ice == {"status": 502}
	silent := state_for("alice") with http.send as is_silent
	silent.warehouses.ice == {"status": 0, "error": "connection refused"}
}

test_without_an_environment_the_state_is_empty_and_not_undefined if {
	state := trino.diagnosis with input as {"context": {"identity": {"user": "alice"}}} with opa.runtime as {"env": {}}
	state.token == {"source": "none"}
	state.warehouses == {}
	{value | some value in state.variables} == {"missing"}
}
