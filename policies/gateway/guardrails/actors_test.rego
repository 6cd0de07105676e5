# SPDX-License-Identifier: Apache-2.0
package gateway_test.guardrails.actors

import data.gateway.guardrails.actors

# METADATA
# description: Two questions of a caller of this kind.
request(kind) := {"actor": {"id": "x", "kind": kind}, "questions": [{}, {}]}

test_known_kinds_are_not_denied if {
	every kind in ["user", "role", "system"] {
		actors.denials == {} with input as request(kind)
	}
}

test_every_question_of_an_unknown_kind_is_denied if {
	every kind in ["anonymous", "", "User", null, ["user"]] {
		found := actors.denials with input as request(kind)
		object.keys(found) == {0, 1}
		{denial.code | some denial in found[_]} == {"unknown_actor_kind"}
	}
}

test_a_request_without_an_actor_is_denied if {
	count(actors.denials) == 1 with input as {"questions": [{}]}
}
