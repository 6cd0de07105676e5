# SPDX-License-Identifier: Apache-2.0
package trino.settings_test

import data.trino.settings
import data.trino.world_test as world

test_what_is_not_set_is_nothing if {
	not settings.url with opa.runtime as {"env": {}}
	settings.warehouse_of == {} with opa.runtime as {"env": {}}
	settings.open_catalogs == set() with opa.runtime as {"env": {}}
	settings.operators == set() with opa.runtime as {"env": {}}
	settings.providers == ["oidc"] with opa.runtime as {"env": {}}
	settings.timeout == "10s" with opa.runtime as {"env": {}}
	not settings.token with opa.runtime as {"env": {}}
}

test_what_cannot_be_read_is_nothing if {
	every text in {"", "ice", "[]", "null", `{"ice": 7}`, `{"ice": "no-uuid"}`} {
		settings.warehouse_of == {} with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_CATALOGS": text})
	}
	every text in {"", "scratch", "null", `["system"]`, `["ice"]`, "[7]"} {
		settings.open_catalogs == set() with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_OPEN_CATALOGS": text})
	}
	every text in {"", "scratch", `{"scratch": "no-uuid"}`} {
		settings.open_catalogs == set() with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_CATALOGS": text})
	}
	every text in {"", "corp", "['corp']"} {
		not settings.providers with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_PROVIDERS": text})
	}
}

test_what_is_set_is_taken if {
	settings.url == "https://gateway.example" with opa.runtime as world.opa
	settings.warehouse_of.ice == "0192d4c6-0000-7000-8000-000000000001" with opa.runtime as world.opa
	settings.open_catalogs == {"scratch"} with opa.runtime as world.opa
	settings.operators == {"otto"} with opa.runtime as world.opa
	settings.timeout == "3s" with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_TIMEOUT": "3s"})
}

test_only_named_authorities_are_believed_when_some_are_named if {
	not settings.transport.tls_ca_cert_file with opa.runtime as world.opa
	not settings.transport.tls_ca_cert_file with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_CA_FILE": ""})
	settings.transport.tls_ca_cert_file == "/etc/ca.pem" with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_CA_FILE": "/etc/ca.pem"})
	settings.transport.tls_use_system_certs == false with opa.runtime as world.opa_with({"LAKEGATE_BRIDGE_CA_FILE": "/etc/ca.pem"})
}

# METADATA
# description: An environment in which the bridge fetches its token.
fetching := object.union(object.remove(world.env, ["LAKEGATE_BRIDGE_TOKEN"]), {
	"LAKEGATE_BRIDGE_TOKEN_ENDPOINT": "https://idp.example/token",
	"LAKEGATE_BRIDGE_CLIENT_ID": "bridge",
	"LAKEGATE_BRIDGE_CLIENT_SECRET": "a&b=c",
})

# METADATA
# description: A provider that issues a token for a correct request.
provider(request) := {"status_code": 200, "body": {"access_token": "fetched"}} if {
	request.method == "POST"
	request.url == "https://idp.example/token"
	request.headers["Content-Type"] == "application/x-www-form-urlencoded"
	request.headers.Authorization == concat(" ", ["Basic", base64.encode("bridge:a%26b%3Dc")])
	request.raw_body == concat("", ["grant_type=client_credentials", data.scope])
	request.force_cache_duration_seconds <= 60
}

failing(_) := {"status_code": 500, "body": {"access_token": "fetched"}}

odd(_) := {"status_code": 200, "body": {"access_token": null}}

test_a_token_is_fetched_when_none_is_given if {
	settings.token == "fetched" with opa.runtime as {"env": fetching} with http.send as provider with data.scope as ""
	settings.token == "fetched" with opa.runtime as {"env": object.union(fetching, {"LAKEGATE_BRIDGE_SCOPE": "lakegate"})}
		with http.send as provider
		with data.scope as "&scope=lakegate"
	settings.token == "fetched" with opa.runtime as {"env": object.union(fetching, {"LAKEGATE_BRIDGE_TOKEN": ""})}
		with http.send as provider
		with data.scope as ""
	settings.token == "given" with opa.runtime as {"env": object.union(fetching, {"LAKEGATE_BRIDGE_TOKEN": "given"})}
		with http.send as provider
}

test_no_token_comes_of_a_failure if {
	not settings.token with opa.runtime as {"env": fetching} with http.send as failing
	not settings.token with opa.runtime as {"env": fetching} with http.send as odd
}
