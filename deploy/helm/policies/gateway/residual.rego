# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: What is left of the guardrails for one caller
# description: |
#   The gateway evaluates this package partially: `input.actor` is known, `input.context` and `input.questions` are not.
#   If no member of `speaks` but the first can be true, no guardrail has anything to say about this caller, and the
#   gateway does not ask. The members cover everything that gateway/main.rego answers with a denial or an obligation.
#   They may cover more, which only costs a request.
#
#   Partial evaluation drops two kinds of conditions without a word: an error of a built-in function, and an expression
#   that cannot be true by its types. It does the latter below `not`, too, where such an expression is true. The gateway
#   therefore also reads the steps of the evaluation (`explain=full`). It accepts only failures of operators that never
#   raise an error. `not startswith(name, "\n")` contains a failure of another function. It ends each rule that must
#   not be reached, so that the gateway sees that it was reached. It accepts only forms of expressions that are known to
#   be evaluated partially as in a decision (`gateway/opa/explanation.py`).
# schemas:
#   - input: schema.input
package gateway.residual

import data.gateway.output

# METADATA
# description: |
#   The proof that this package is loaded, with the revision. Without it, a missing package would look like a package
#   without members.
# entrypoint: true
speaks contains concat(" ", ["revision", _revision])

# METADATA
# description: The proof that the gateway sees errors of built-in functions. This rule always fails.
speaks contains "errors are not reported" if to_number("an error that the gateway must see")

# METADATA
# description: |
#   The policy data lets no answer last. A change of the policy data then takes effect with the next request, and OPA's
#   decision log has every question.
speaks contains "no answer lasts" if not _may_last

# METADATA
# description: A guardrail denies something, obliges to something, or names something that is not a question.
speaks contains "entry" if {
	some kind in ["denials", "obligations"]
	_ = data.gateway.guardrails[name][kind][_]
	not startswith(name, "\n")
}

# METADATA
# description: A guardrail has an unknown public rule.
speaks contains "unknown rule" if {
	_ = data.gateway.guardrails[name][rule]
	not output.schema.properties[rule]
	substring(rule, 0, 1) != "_"
	not startswith(name, "\n")
}

# METADATA
# description: A helper of a guardrail has a public rule.
speaks contains "rule of a helper" if {
	some rule, _ in output.schema.properties
	_ = data.gateway.guardrails[name][helper][rule]
	substring(helper, 0, 1) == "_"
	not startswith(name, "\n")
}

# METADATA
# description: The rule `steady` of a guardrail is not a boolean.
speaks contains "steady of another type" if {
	value := data.gateway.guardrails[name].steady
	not is_boolean(value)
	not startswith(name, "\n")
}

# METADATA
# description: |
#   A guardrail has a complete rule, which may have another type or be undefined. Partial evaluation refutes this for
#   `denials[index] contains …`, which is always an object: an object is no argument of startswith.
speaks contains "complete rule" if {
	some kind in ["denials", "obligations"]
	_complete(data.gateway.guardrails[name][kind])
}

# METADATA
# description: |
#   A guardrail has neither rule. Partial evaluation refutes this for every value that cannot be the text, so that one
#   rule of the usual form is enough.
speaks contains "neither rule" if {
	text := _text("any")
	_ = data.gateway.guardrails[name]
	not data.gateway.guardrails[name].denials == text
	not data.gateway.guardrails[name].obligations == text
}

# METADATA
# description: The policy data lets answers last.
_may_last if {
	is_number(data.policy_data.memory.answers_last_seconds)
	data.policy_data.memory.answers_last_seconds > 0
}

# METADATA
# description: The value is not of the form that only `denials[index] contains …` has.
_complete(value) if not startswith(value, input.context.time)

# METADATA
# description: A text that partial evaluation does not know.
_text("any") := lower(input.context.time)

# METADATA
# description: Without another type, the compiler of OPA would refuse the comparison with an object.
_text("none") := {}

# METADATA
# description: The same two hashes as in data.system.revision.current.
_revision := concat(".", [_rules, crypto.sha256(json.marshal(data.policy_data))])

# METADATA
# description: |
#   The hash of the rules if OPA has bundles, else the word "unknown": a variable of the environment is unknown in a
#   partial evaluation.
_rules := crypto.sha256(json.marshal(revisions)) if {
	count(data.system.bundles) > 0
	revisions := {name: bundle.manifest.revision | some name, bundle in data.system.bundles}
} else := "unknown"
