# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Only callers of a known kind
# description: A kind the policies were not written for is denied until they are.
# schemas:
#   - input: schema.input
package gateway.guardrails.actors

# METADATA
# description: The kinds of callers the guardrails know how to judge.
_known_kinds := {"user", "role", "system"}

# METADATA
# description: The time changes nothing here.
steady := true

# METADATA
# description: Nobody of an unknown kind may do anything.
denials[index] contains denial if {
	some index, _ in input.questions
	not _known
	denial := {
		"code": "unknown_actor_kind",
		"message": "The policies received a caller of an unknown kind. It must be user, role or system.",
	}
}

# METADATA
# description: |
#   The caller's kind is known. A rule of its own, because `not input.actor.kind in _known_kinds` is undefined, and so
#   denies nothing, for a request without a kind.
_known if input.actor.kind in _known_kinds
