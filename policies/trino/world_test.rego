# SPDX-License-Identifier: Apache-2.0

# A gateway, an environment and users for the tests of the bridge.
package trino.world_test

# METADATA
# description: The environment of the bridge's OPA.
env := {
	"LAKEGATE_BRIDGE_URL": "https://gateway.example/",
	"LAKEGATE_BRIDGE_CATALOGS": `{"ice": "0192d4c6-0000-7000-8000-000000000001", "lab": "0192d4c6-0000-7000-8000-000000000002"}`,
	"LAKEGATE_BRIDGE_OPEN_CATALOGS": `["scratch"]`,
	"LAKEGATE_BRIDGE_OPERATORS": `["otto"]`,
	"LAKEGATE_BRIDGE_TOKEN": "token-of-the-bridge",
}

# METADATA
# description: The runtime information of OPA.
opa := {"env": env}

# METADATA
# description: The runtime information of OPA with a changed environment.
opa_with(more) := {"env": object.union(env, more)}

# METADATA
# description: |
#   The gateway. It allows the user alice what `data.holds` contains, and other users nothing. It does not answer an
#   invalid request.
gateway(request) := {"status_code": 200, "body": {"results": results}} if {
	request.method == "POST"
	request.url == "https://gateway.example/management/v1/action/batch-check"
	request.headers.Authorization == "Bearer token-of-the-bridge"
	request.body.delegated == true
	count(request.body.checks) <= 1000
	object.get(request, "force_cache", false) == false
	object.get(request, "cache", false) == false
	request.timeout == "10s"
	results := [object.union({"id": check.id, "allowed": _holds(check)}, _some(check)) | some check in request.body.checks]
}

# METADATA
# description: |
#   The extent: the columns in `data.columns` if it limits this right to them, else the whole object. `data.restrictions`
#   has the restrictions. A check of columns must request them.
_some(check) := object.union_n([
	{"columns": names | names := data.columns[asked(check.operation)]},
	{"restrictions": told | told := data.restrictions[asked(check.operation)]},
]) if {
	_holds(check)
} else := {}

# METADATA
# description: True if alice holds the right.
_holds(check) if {
	check.identity.user == "oidc~alice"
	_requests_restrictions(check)
	asked(check.operation) in data.holds
} else := false

# METADATA
# description: Only reads of columns request restrictions, and each of them does.
_requests_restrictions(check) if {
	some on in check.operation
	{"trino"} == {told | told := on.restrictions}
	on.action.action == "read_columns"
} else if {
	some on in check.operation
	not on.restrictions
	on.action.action != "read_columns"
}

# METADATA
# description: |
#   A check as one line, for example `table sales.orders read_data`. The prefix `lab` means the other catalog, `owned`
#   means a view that must run as its owner, and `append` means a change that only adds rows.
asked(operation) := concat(" ", [part | some part in [where, owned, append, kind, name, on.action.action]; part != ""]) if {
	some kind, on in operation
	append := {true: "append", false: ""}[object.get(on, "append", false)]
	owned := {true: "owned", false: ""}[object.get(on, "runs-as-owner", false)]
	where := {
		"0192d4c6-0000-7000-8000-000000000001": "",
		"0192d4c6-0000-7000-8000-000000000002": "lab",
	}[on["warehouse-id"]]
	levels := object.get(on, "namespace", [])
	called := [value | some word in ["name", "table", "view"]; value := on[word]]
	name := concat(".", array.concat(levels, called))
}

# METADATA
# description: A request of a Trino user.
input_of(user, action) := {
	"context": {"identity": {"user": user, "groups": ["analysts"]}, "softwareStack": {"trinoVersion": "476"}},
	"action": action,
}
