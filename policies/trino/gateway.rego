# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Asking the gateway
# description: |
#   The one place from which anything is asked. The gateway answers by relationships and guardrails, as it would answer
#   the user's own request; the bridge asks as itself and needs `inspector` on the warehouses. No answer is kept. What is
#   no complete, well-formed answer allows nothing.
package trino.gateway

import data.trino.settings

# METADATA
# description: The most checks that the gateway takes in one request.
_most := 1000

# METADATA
# description: |
#   Those of the checks (a set) that hold for this user, and how far: `"all"`, or the names of columns (a set) as Trino
#   writes them when no more than those may be read.
holding(user, checks) := {check: extent |
	count(checks) > 0
	asked := [check | some check in checks]
	some first in numbers.range_step(0, count(asked) - 1, _most)
	some check, extent in _allowed(user, array.slice(asked, first, first + _most))
}

# METADATA
# description: |
#   Those of at most a thousand checks (a list) that the gateway allows; none of them unless each has its answer under its
#   own number, and every answer is a clear one.
_allowed(user, checks) := {checks[index]: extent |
	some index, result in answer.body.results
	result.allowed
	extent := _extent(result)
	extent != set()
} if {
	answer := http.send(_request(user, checks))
	answer.status_code == 200
	count(answer.body.results) == count(checks)
	every index, result in answer.body.results {
		is_boolean(result.allowed)
		result.id == format_int(index, 10)
		_is_clear(checks[index], result)
	}
} else := {}

# METADATA
# description: Without a list of columns the answer is about all of it.
_is_clear(_, result) if not "columns" in object.keys(result)

# METADATA
# description: Columns are told where columns were asked about, and are a list of names.
_is_clear(check, result) if {
	check.table.action.action == "read_columns"
	is_array(result.columns)
	every name in result.columns { is_string(name) }
}

# METADATA
# description: |
#   How far the answer goes. Trino writes the names of columns in small letters. The two letters that Java and OPA do not
#   make small alike could make another column's name of a granted one, so a column with such a letter is nobody's.
_extent(result) := {lower(name) | some name in result.columns; not regex.match(`[\x{130}\x{3a3}]`, name)} if {
	"columns" in object.keys(result)
} else := "all"

# METADATA
# description: The request, which names the user in each check.
_request(user, checks) := object.union(settings.transport, {
	"method": "POST",
	"url": concat("", [settings.url, "/management/v1/action/batch-check"]),
	"headers": {
		"Authorization": concat(" ", ["Bearer", settings.token]),
		# By this id the decision log of OPA and the audit of the gateway are joined.
		"X-Request-ID": uuid.rfc4122("trino"),
	},
	"body": {"delegated": true, "checks": [asked |
		some index, check in checks
		asked := {"id": format_int(index, 10), "identity": {"user": principal(user)}, "operation": check}
	]},
})

# METADATA
# description: |
#   Who a user of Trino is at the gateway. With one provider everybody is of that one, whatever the name looks like; with
#   several a name says which: `<provider>~<name>`.
principal(user) := concat("~", [settings.providers[0], user]) if {
	count(settings.providers) == 1
	trim_space(user) != ""
} else := user if {
	count(settings.providers) > 1
	at := indexof(user, "~")
	substring(user, 0, at) in settings.providers
	trim_space(substring(user, at + 1, -1)) != ""
}
