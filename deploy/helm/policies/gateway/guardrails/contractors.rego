# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Restrict contractors to their hours
# description: |
#   Policy data lists the contractors and their working hours; a policy repository replaces it. Outside the hours,
#   contractors are denied. Unreadable data denies: unreadable hours are closed, and with an unreadable list every
#   caller is denied.
# schemas:
#   - input: schema.input
package gateway.guardrails.contractors

# METADATA
# description: The time does not change the answer for callers that are not contractors.
steady if not _is_contractor

# METADATA
# description: Deny contractors outside the hours.
denials[index] contains denial if {
	some index, _ in input.questions
	_is_contractor
	not _within_hours
	denial := {
		"code": "contractor_outside_hours",
		"message": "This caller is a contractor and may work only during the hours for contractors.",
	}
}

# METADATA
# description: Deny every caller while the list of contractors is unreadable.
denials[index] contains denial if {
	some index, _ in input.questions
	not _known
	denial := {
		"code": "contractors_unknown",
		"message": "The policy data on contractors is missing or malformed. The administrator of the policies can correct it.",
	}
}

# METADATA
# description: The lists of contractors are valid.
_known if {
	is_array(data.policy_data.contractors.users)
	is_array(data.policy_data.contractors.roles)
}

# METADATA
# description: The caller is a contractor by user id.
_is_contractor if input.actor.id in data.policy_data.contractors.users

# METADATA
# description: The caller is a contractor by membership in a role.
_is_contractor if {
	some role in input.actor.roles
	role in data.policy_data.contractors.roles
}

# METADATA
# description: The caller is a contractor by its assumed role.
_is_contractor if input.actor.assumed_role in data.policy_data.contractors.roles

# METADATA
# description: |
#   The caller is a contractor, and the current time in the configured zone is within the hours on one of the weekdays.
#   The first minute is included, the last is not. OPA evaluates every rule without parameters on each request. The
#   first line prevents an invalid zone, which is an error, from refusing other callers.
_within_hours if {
	_is_contractor
	hours := data.policy_data.contractors.hours
	now := time.parse_rfc3339_ns(input.context.time)
	time.weekday([now, _zone(hours)]) in hours.weekdays
	[hour, minute, _] := time.clock([now, _zone(hours)])
	(hour * 60) + minute >= _minute_of_day(hours.from)
	(hour * 60) + minute < _minute_of_day(hours.until)
}

# METADATA
# description: The configured zone. Empty and `Local` (the zone of the process) are not valid.
_zone(hours) := hours.timezone if not hours.timezone in {"", "Local"}

# METADATA
# description: Minutes since midnight of a time in the form HH:MM, from 00:00 to 24:00.
_minute_of_day(written) := minutes if {
	regex.match(`^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`, written)
	[hour, minute] := split(written, ":")
	minutes := (to_number(hour) * 60) + to_number(minute)
}
