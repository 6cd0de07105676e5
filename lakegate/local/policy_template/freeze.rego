# METADATA
# title: Freeze tables
# description: |
#   Policy data lists tables that no caller may change, by their ids. An example: replace it with your own rules. If the
#   list is missing or malformed, every request is denied.
# schemas:
#   - input: schema.input
package gateway.guardrails.freeze

# METADATA
# description: The time does not change the answer, so the gateway may cache it.
steady := true

# METADATA
# description: Deny changes of the listed tables.
denials[index] contains denial if {
	some index, question in input.questions
	question.operation in {"commit_table", "commit_transaction", "drop_table", "rename_table"}
	question.resource.id in data.policy_data.freeze.tables
	denial := {
		"code": "table_frozen",
		"message": "This table is frozen. The administrator of the policies can remove it from the list.",
	}
}

# METADATA
# description: Deny every request while the list is unreadable.
denials[index] contains denial if {
	some index, _ in input.questions
	not _readable
	denial := {
		"code": "frozen_tables_unknown",
		"message": "The policy data on frozen tables is missing or malformed. The administrator of the policies can correct it.",
	}
}

# METADATA
# description: |
#   The list is valid. This is a rule of its own, because `not is_array(…)` is undefined for a missing list and would
#   deny nothing.
_readable if is_array(data.policy_data.freeze.tables)
