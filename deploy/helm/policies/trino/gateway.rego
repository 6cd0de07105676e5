# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Queries to the gateway
# description: |
#   The only package that queries the gateway. The gateway answers by relationships and guardrails, as for a request of
#   the user. The bridge authenticates as itself and needs `inspector` on the warehouses. Answers are not cached. An
#   incomplete or malformed answer allows nothing.
package trino.gateway

import data.trino.settings

# METADATA
# description: The maximum number of checks in one request to the gateway.
_most := 1000

# METADATA
# description: |
#   Returns the checks (a set) that the gateway allows for this user, with their extent. `columns` of an extent is
#   `"all"`, or the set of readable columns if only those may be read. `filters` is the set of row filters that apply,
#   `masks` has the mask of each masked column. Column names are in Trino's notation.
holding(user, checks) := {check: extent |
	count(checks) > 0
	asked := [check | some check in checks]
	some first in numbers.range_step(0, count(asked) - 1, _most)
	some check, extent in _allowed(user, array.slice(asked, first, first + _most))
}

# METADATA
# description: |
#   Returns the allowed checks of a list of at most `_most` checks. The result is empty unless every check has a valid
#   answer under its own index.
_allowed(user, checks) := {checks[index]: extent |
	some index, result in answer.body.results
	result.allowed
	columns := _columns(result)
	columns != set()
	extent := {"columns": columns, "filters": _filters(result), "masks": _masks(result)}
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
# description: An answer without columns and restrictions is about the whole object.
_is_clear(_, result) if object.keys(result) & {"columns", "restrictions"} == set()

# METADATA
# description: Only the answer to a check about columns contains columns, as a list of names.
_is_clear(check, result) if {
	_has_columns(check, result)
	not "restrictions" in object.keys(result)
}

# METADATA
# description: |
#   Only the answer to a check that requests restrictions contains them. Such an answer always contains columns: under
#   another name, for example in an old snapshot, a masked column would have no mask.
_is_clear(check, result) if {
	_has_columns(check, result)
	check.table.restrictions == "trino"
	_are_restrictions(result.restrictions)
}

# METADATA
# description: The answer is about columns and names the readable ones.
_has_columns(check, result) if {
	check.table.action.action == "read_columns"
	is_array(result.columns)
	every name in result.columns { is_string(name) }
}

# METADATA
# description: |
#   Restrictions are a row filter, masks, or both. They are empty if all masked columns are unreadable anyway.
#   Restrictions with a member that this version does not know are invalid.
_are_restrictions(restrictions) if {
	known := {"row-filter", "column-masks"}
	object.keys(restrictions) - known == set()
	_is_filled(object.get(restrictions, "row-filter", "true"))
	masks := object.get(restrictions, "column-masks", [])
	is_array(masks)
	every mask in masks {
		object.keys(mask) == {"column", "expression"}
		_is_filled(mask.column)
		_is_filled(mask.expression)
	}
	count({lower(mask.column) | some mask in masks}) == count(masks)
}

# METADATA
# description: The value is a text that is not blank.
_is_filled(value) if {
	is_string(value)
	trim_space(value) != ""
}

# METADATA
# description: The row filter of an answer, as a set.
_filters(result) := {filter | filter := result.restrictions["row-filter"]}

# METADATA
# description: The masks of an answer by column.
_masks(result) := {lower(mask.column): mask.expression | some mask in result.restrictions["column-masks"]}

# METADATA
# description: |
#   The readable columns of an answer. Trino writes column names in lower case. Java and OPA convert two letters to
#   lower case differently, so that such a name could match another column. A column with one of these letters is not
#   readable.
_columns(result) := {lower(name) | some name in result.columns; not regex.match(`[\x{130}\x{3a3}]`, name)} if {
	"columns" in object.keys(result)
} else := "all"

# METADATA
# description: The gateway's response to a single check. Decisions do not use it.
answer(user, check) := http.send(_request(user, [check]))

# METADATA
# description: The status of a response, and the kind of its error. The status is 0 without a response.
outcome(response) := object.union({"status": response.status_code}, _error(response))

# METADATA
# description: The kind of the error in a response; empty for a success.
_error(response) := {} if {
	response.status_code == 200
} else := {"error": response.error.message} if {
	response.status_code == 0
} else := {"error": response.body.error.type} if {
	is_string(response.body.error.type)
} else := {"error": response.body.error} if {
	is_string(response.body.error)
} else := {}

# METADATA
# description: The request to the gateway. Each check names the user.
_request(user, checks) := object.union(settings.transport, {
	"method": "POST",
	"url": concat("", [settings.url, "/management/v1/action/batch-check"]),
	"headers": {
		"Authorization": concat(" ", ["Bearer", settings.token]),
		# The id connects OPA's decision log with the gateway's audit.
		"X-Request-ID": uuid.rfc4122("trino"),
	},
	"body": {"delegated": true, "checks": [asked |
		some index, check in checks
		asked := {"id": format_int(index, 10), "identity": {"user": principal(user)}, "operation": check}
	]},
})

# METADATA
# description: |
#   The user id at the gateway of a Trino user. With one provider, every user belongs to that provider. With several
#   providers, the name must contain the provider: `<provider>~<name>`.
principal(user) := concat("~", [settings.providers[0], user]) if {
	count(settings.providers) == 1
	trim_space(user) != ""
} else := user if {
	count(settings.providers) > 1
	at := indexof(user, "~")
	substring(user, 0, at) in settings.providers
	trim_space(substring(user, at + 1, -1)) != ""
}
