# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Asking the gateway
# description: |
#   The one place from which anything is asked. The gateway answers by relationships and guardrails, as it would answer
#   the user's own request; the bridge asks as itself and needs `delegate` on the warehouses. No answer is kept. What is
#   no complete, well-formed answer allows nothing.
package trino.gateway

import data.trino.settings

# METADATA
# description: The most checks that the gateway takes in one request.
_most := 1000

# METADATA
# description: Those of the checks (a set) that hold for this user.
holding(user, checks) := {check |
	count(checks) > 0
	asked := [check | some check in checks]
	some first in numbers.range_step(0, count(asked) - 1, _most)
	some check in _allowed(user, array.slice(asked, first, first + _most))
}

# METADATA
# description: |
#   Those of at most a thousand checks (a list) that the gateway allows; none of them unless each has its answer under its
#   own number.
_allowed(user, checks) := {checks[index] | some index, result in answer.body.results; result.allowed} if {
	answer := http.send(_request(user, checks))
	answer.status_code == 200
	count(answer.body.results) == count(checks)
	every index, result in answer.body.results {
		is_boolean(result.allowed)
		result.id == format_int(index, 10)
	}
} else := set()

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
