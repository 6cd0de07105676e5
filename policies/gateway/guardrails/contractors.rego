# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Contractors work in their hours
# description: |
#   Who is a contractor and when contractors may work is policy data, which an operator replaces at run time. Outside the
#   hours everything is denied to them. Data that cannot be read denies: an hour nobody can read is not an open one, and
#   a list of contractors nobody can read may name anybody.
# schemas:
#   - input: schema.input
package gateway.guardrails.contractors

# METADATA
# description: The time changes nothing for those whose hours are not looked at.
steady if not _is_contractor

# METADATA
# description: A contractor is denied outside the hours.
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
# description: Everybody is denied while it is not known who is a contractor.
denials[index] contains denial if {
	some index, _ in input.questions
	not _known
	denial := {
		"code": "contractors_unknown",
		"message": "The policy data on contractors is missing or malformed. The administrator of the policies can correct it.",
	}
}

# METADATA
# description: The lists of contractors can be read.
_known if {
	is_array(data.policy_data.contractors.users)
	is_array(data.policy_data.contractors.roles)
}

# METADATA
# description: A contractor by name.
_is_contractor if input.actor.id in data.policy_data.contractors.users

# METADATA
# description: A contractor by membership in a role.
_is_contractor if {
	some role in input.actor.roles
	role in data.policy_data.contractors.roles
}

# METADATA
# description: A contractor by the role he acts as.
_is_contractor if input.actor.assumed_role in data.policy_data.contractors.roles

# METADATA
# description: |
#   The caller is a contractor and the time lies in the hours, on one of the weekdays, as the clock of the zone shows it.
#   The first minute counts, the last does not. Every rule without parameters is evaluated on each request. The first
#   line keeps a zone that does not exist, which is an error, from refusing other callers.
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
# description: The named zone. The names for "none given" and "wherever this process runs" are none.
_zone(hours) := hours.timezone if not hours.timezone in {"", "Local"}

# METADATA
# description: Minutes since midnight of a time written HH:MM, from 00:00 to 24:00.
_minute_of_day(written) := minutes if {
	regex.match(`^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`, written)
	[hour, minute] := split(written, ":")
	minutes := (to_number(hour) * 60) + to_number(minute)
}
