# SPDX-License-Identifier: Apache-2.0
package gateway.questions_test

import data.gateway.questions

# METADATA
# description: The indexes of the questions that are denied.
denied(asked) := object.keys(found) if {
	found := questions.denials with input as {"questions": asked}
}

test_every_known_type_is_understood if {
	outside := ["server", "project", "user", "role", "tag"]
	every type in array.concat(outside, ["warehouse", "namespace", "table", "view", "generic_table"]) {
		denied([{"operation": "load", "resource": {"type": type}}]) == set()
	}
}

test_only_the_question_that_is_not_understood_is_denied if {
	good := {"operation": "load_table", "resource": {"type": "table"}}
	denied([good, {"operation": "load_table", "resource": {"type": "tables"}}, good]) == {1}
	denied([good, {"operation": "load_table"}]) == {1}
	denied([{"operation": "", "resource": {"type": "table"}}]) == {0}
	denied([{"operation": " \t", "resource": {"type": "table"}}]) == {0}
	denied([{"operation": 1, "resource": {"type": "table"}}]) == {0}
	denied([{"resource": {"type": "table"}}, good]) == {0}
	denied(["load_table"]) == {0}
}

test_the_denial_has_its_code if {
	{denial.code | some denial in questions.denials[_]} == {"question_not_understood"} with input as {"questions": [{}]}
}
