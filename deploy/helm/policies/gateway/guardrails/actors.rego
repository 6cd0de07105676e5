# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Deny callers of an unknown kind
# description: A new kind of caller is denied until the policies support it.
# schemas:
#   - input: schema.input
package gateway.guardrails.actors

# METADATA
# description: The supported kinds of callers.
_known_kinds := {"user", "role", "system"}

# METADATA
# description: The time does not change the answer.
steady := true

# METADATA
# description: Deny every question of a caller of an unknown kind.
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
#   The caller's kind is supported. This needs a rule of its own: `not input.actor.kind in _known_kinds` is undefined
#   for a request without a kind, and would deny nothing.
_known if input.actor.kind in _known_kinds
