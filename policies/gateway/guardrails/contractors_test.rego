# SPDX-License-Identifier: Apache-2.0
package gateway_test.guardrails.contractors

import data.gateway.guardrails.contractors

# METADATA
# description: |
#   Policy data: contractors work from Monday to Thursday, 09:00 to 17:30, in Berlin.
listed := {
	"users": ["oidc~contractor"],
	"roles": ["role-of-contractors"],
	"hours": {
		"timezone": "Europe/Berlin",
		"weekdays": ["Monday", "Tuesday", "Wednesday", "Thursday"],
		"from": "09:00",
		"until": "17:30",
	},
}

# METADATA
# description: A contractor by user id.
contractor := {"id": "oidc~contractor", "kind": "user", "assumed_role": null, "roles": []}

# METADATA
# description: The codes of all denials of one question, asked by this actor at this time under this data.
codes(actor, time, held) := {denial.code | some denial in found[_]} if {
	found := contractors.denials with input as {"actor": actor, "context": {"time": time}, "questions": [{}]}
		with data.policy_data.contractors as held
}

# METADATA
# description: The hours with some fields replaced.
with_hours(changes) := object.union(listed, {"hours": changes})

# METADATA
# description: The codes of the denials outside the hours.
outside := {"contractor_outside_hours"}

test_a_contractor_works_within_the_hours if {
	codes(contractor, "2026-03-04T10:00:00Z", listed) == set()
}

test_a_contractor_is_denied_at_night_and_on_other_days if {
	codes(contractor, "2026-03-04T22:00:00Z", listed) == outside
	codes(contractor, "2026-03-06T10:00:00Z", listed) == outside
	codes(contractor, "2026-03-08T10:00:00Z", listed) == outside
}

test_the_first_minute_counts_and_the_last_does_not if {
	codes(contractor, "2026-03-04T07:59:59Z", listed) == outside
	codes(contractor, "2026-03-04T08:00:00Z", listed) == set()
	codes(contractor, "2026-03-04T16:29:59Z", listed) == set()
	codes(contractor, "2026-03-04T16:30:00Z", listed) == outside
}

test_the_clock_is_the_one_on_the_wall_also_in_summer if {
	codes(contractor, "2026-07-01T06:59:59Z", listed) == outside
	codes(contractor, "2026-07-01T07:00:00Z", listed) == set()
}

test_an_offset_in_the_time_is_understood if {
	codes(contractor, "2026-03-04T09:00:00+01:00", listed) == set()
	codes(contractor, "2026-03-04T09:00:00-01:00", listed) == set()
	codes(contractor, "2026-03-04T08:59:59+01:00", listed) == outside
}

test_the_weekday_is_that_of_the_zone if {
	late := with_hours({"timezone": "Asia/Tokyo", "weekdays": ["Thursday"], "from": "00:00", "until": "24:00"})
	codes(contractor, "2026-03-04T14:59:59Z", late) == outside
	codes(contractor, "2026-03-04T15:00:00Z", late) == set()
	codes(contractor, "2026-03-05T14:59:59Z", late) == set()
	codes(contractor, "2026-03-05T15:00:00Z", late) == outside
}

test_everybody_else_works_at_any_time if {
	alice := {"id": "oidc~alice", "kind": "user", "assumed_role": null, "roles": ["other"]}
	codes(alice, "2026-03-08T03:00:00Z", listed) == set()
	codes({"id": "OIDC~contractor", "kind": "user"}, "2026-03-08T03:00:00Z", listed) == set()
}

test_members_of_a_listed_role_are_contractors if {
	member := {"id": "oidc~bob", "kind": "user", "assumed_role": null, "roles": ["other", "role-of-contractors"]}
	codes(member, "2026-03-08T03:00:00Z", listed) == outside
	codes(member, "2026-03-04T10:00:00Z", listed) == set()
}

test_who_assumes_a_listed_role_is_a_contractor if {
	assuming := {"id": "oidc~bob", "kind": "role", "assumed_role": "role-of-contractors", "roles": []}
	codes(assuming, "2026-03-08T03:00:00Z", listed) == outside
}

test_every_question_of_a_contractor_is_denied if {
	found := contractors.denials with input as {
		"actor": contractor,
		"context": {"time": "2026-03-08T03:00:00Z"},
		"questions": [{}, {}, {}],
	}
		with data.policy_data.contractors as listed
	object.keys(found) == {0, 1, 2}
}

test_hours_that_cannot_be_read_are_closed if {
	noon := "2026-03-04T12:00:00Z"
	every changes in [
		{"timezone": "Europe/Atlantis"},
		{"timezone": ""},
		{"timezone": "Local"},
		{"timezone": null},
		{"weekdays": []},
		{"weekdays": ["wednesday"]},
		{"weekdays": null},
		{"from": "9:00"},
		{"from": "09.00"},
		{"from": "09:60"},
		{"from": "x09:00"},
		{"from": 9},
		{"until": "24:30"},
		{"until": "17:30:00"},
		{"until": null},
		{"from": "18:00", "until": "09:00"},
	] {
		codes(contractor, noon, with_hours(changes)) == outside
	}
	codes(contractor, noon, object.remove(listed, ["hours"])) == outside
}

test_a_time_that_cannot_be_read_is_outside if {
	codes(contractor, "noon", listed) == outside
	codes(contractor, null, listed) == outside
}

test_everybody_is_denied_while_the_lists_cannot_be_read if {
	alice := {"id": "oidc~alice", "kind": "user", "assumed_role": null, "roles": []}
	every held in [{}, {"users": []}, {"roles": []}, {"users": {"oidc~contractor": true}, "roles": []}, null] {
		codes(alice, "2026-03-04T10:00:00Z", held) == {"contractors_unknown"}
	}
}

test_as_shipped_nobody_is_a_contractor if {
	data.policy_data.contractors.users == []
	data.policy_data.contractors.roles == []
	contractors.denials == {} with input as {
		"actor": contractor,
		"context": {"time": "2026-03-08T03:00:00Z"},
		"questions": [{}],
	}
}
