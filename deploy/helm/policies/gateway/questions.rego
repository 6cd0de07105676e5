# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Deny malformed questions
# description: |
#   A question without an operation, or about an unknown type of object, is denied. The gateway sends no such question.
#   This is no guardrail: the package gateway.residual does not cover it.
# schemas:
#   - input: schema.input
package gateway.questions

# METADATA
# description: The types of objects in the relationship model.
_known_types := {
	"server",
	"project",
	"warehouse",
	"namespace",
	"table",
	"view",
	"generic_table",
	"user",
	"role",
	"data_policy",
	"tag",
}

# METADATA
# description: Deny questions without an operation or with an unknown type.
denials[index] contains denial if {
	some index, question in input.questions
	not _understood(question)
	denial := {
		"code": "question_not_understood",
		"message": "The policies received a request without an operation, or about an unknown type of object.",
	}
}

# METADATA
# description: The question has an operation and a known type of object.
_understood(question) if {
	is_string(question.operation)
	trim_space(question.operation) != ""
	question.resource.type in _known_types
}
