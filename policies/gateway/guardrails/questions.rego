# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Only questions that say what they are about
# description: A question without an operation, or about a type of thing the policies do not know, is denied.
# schemas:
#   - input: schema.input
package gateway.guardrails.questions

# METADATA
# description: The types of things that can be asked about, as the relationship model names them.
_known_types := {"server", "project", "warehouse", "namespace", "table", "view", "generic_table", "user", "role"}

# METADATA
# description: The time changes nothing here.
steady := true

# METADATA
# description: Nothing is allowed that cannot be understood.
denials[index] contains denial if {
	some index, question in input.questions
	not _understood(question)
	denial := {
		"code": "question_not_understood",
		"message": "The policies received a request without an operation, or about an unknown type of object.",
	}
}

# METADATA
# description: The question names its operation and a known type of thing.
_understood(question) if {
	is_string(question.operation)
	trim_space(question.operation) != ""
	question.resource.type in _known_types
}
