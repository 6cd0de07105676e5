# SPDX-License-Identifier: Apache-2.0
package trino.authz_test

import data.trino.authz

# METADATA
# description: An environment with both ways to authenticate the engine.
by_key := {"LAKEGATE_BRIDGE_ENGINE_KEY": "key-of-the-engine"}

by_certificate := {"LAKEGATE_BRIDGE_ENGINE_SUBJECT": "CN=trino,O=example"}

# METADATA
# description: A request to an entry point.
asking(more) := object.union({"method": "POST", "path": ["v1", "data", "trino", "allow"], "params": {}}, more)

# METADATA
# description: The request with the key, or with a certificate.
with_key := {"params": {"key": ["key-of-the-engine"]}}

with_certificate := {"identity": "CN=trino,O=example", "client_certificates": [{}]}

# METADATA
# description: True if the request is allowed under this environment.
may(request, env) if authz.allow with input as request with opa.runtime as {"env": env}

test_the_engine_asks_at_the_entry_points_and_nowhere_else if {
	every entry in {"allow", "batch", "row_filters", "column_mask", "batch_column_masks", "diagnosis"} {
		may(asking(object.union(with_key, {"path": ["v1", "data", "trino", entry]})), by_key)
		may(asking(object.union(with_certificate, {"path": ["v1", "data", "trino", entry]})), by_certificate)
		not may(asking({"path": ["v1", "data", "trino", entry]}), by_key)
		not may(asking({"path": ["v1", "data", "trino", entry]}), by_certificate)
	}
	every path in [
		["v1", "data", "trino"],
		["v1", "data", "trino", "settings"],
		["v1", "data", "trino", "setup"],
		["v1", "data", "trino", "settings", "token"],
		["v1", "data", "trino", "allow", "x"],
		["v1", "data"],
		["v0", "data", "trino", "allow"],
		["v1", "query", "trino", "allow"],
		["v1", "data", "system", "allow"],
		["v1", "policies"],
		["v1", "config"],
		["metrics"],
		[],
	] {
		every method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
			not may(asking(object.union(with_key, {"path": path, "method": method})), by_key)
		}
	}
	every method in ["GET", "PUT", "PATCH", "DELETE", "HEAD"] {
		not may(asking(object.union(with_key, {"method": method})), by_key)
	}
}

test_another_key_or_none_is_nobodys if {
	every params in [{"key": ["other"]}, {"key": [""]}, {"key": []}, {}, {"key": ["key-of-the-engine", "x"]}, {"key": [null]}] {
		not may(asking({"params": params}), by_key)
	}
	not may(asking({"params": {"key": ["key-of-the-engine"], "explain": ["full"]}}), by_key)
}

test_a_certificate_is_no_text_in_a_header if {
	not may(asking({"identity": "CN=trino,O=example"}), by_certificate)
	not may(asking({"identity": "CN=trino,O=example", "client_certificates": []}), by_certificate)
	not may(asking({"identity": "CN=other", "client_certificates": [{}]}), by_certificate)
	not may(asking(object.union(with_certificate, {"params": {"pretty": ["true"]}})), by_certificate)
}

test_of_both_both_are_needed if {
	both := object.union(by_key, by_certificate)
	may(asking(object.union(with_key, with_certificate)), both)
	not may(asking(with_key), both)
	not may(asking(with_certificate), both)
}

test_where_nothing_is_set_up_nobody_is_the_engine if {
	every env in [{}, {"LAKEGATE_BRIDGE_ENGINE_KEY": ""}, {"LAKEGATE_BRIDGE_ENGINE_KEY": "", "LAKEGATE_BRIDGE_ENGINE_SUBJECT": ""}] {
		every request in [asking({}), asking({"params": {"key": [""]}}), asking({"identity": "", "client_certificates": [{}]})] {
			not may(request, env)
		}
	}
}

test_whether_opa_is_there_is_no_secret if {
	may({"method": "GET", "path": ["health"]}, {})
	not may({"method": "POST", "path": ["health"]}, {})
	not may({"method": "GET", "path": ["health", "x"]}, {})
}
