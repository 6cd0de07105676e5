# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: The policy decision of the gateway
# description: |
#   OpenFGA decides by relationships. The policies decide by circumstances: they can deny, shorten credentials or add
#   obligations, and can never allow what OpenFGA refuses. Every question is allowed unless a guardrail denies it. A
#   guardrail is a package below gateway.guardrails and needs no registration. Its public rules are denials[index],
#   obligations[index] and steady. Any other public rule is a fault that denies, so that a misspelt rule or obligation
#   is never ignored.
# schemas:
#   - input: schema.input
package gateway

import data.gateway.output
import data.gateway.questions

# METADATA
# title: The entry point
# description: |
#   One answer per question, in the order of the questions, and the time until which the answers may be cached. Without
#   a list of questions the result is undefined, which the gateway treats as a refusal.
# entrypoint: true
decisions := object.union({"decisions": answers}, _lasting) if {
	is_array(input.questions)
	answers := [answer | some index, _ in input.questions; answer := _answer(index)]
}

# METADATA
# description: The answer to the question at this index. A question without denials and obligations is allowed at once.
_answer(index) := {"allow": true, "reasons": [], "obligations": {}} if {
	count(_faults) == 0
	not index in _named_questions
} else := {"allow": false, "reasons": [reason | some reason in _reasons(index)], "obligations": {}} if {
	count(_reasons(index)) > 0
} else := {"allow": true, "reasons": [], "obligations": _obligations(index)}

# METADATA
# description: The guardrails and their rules, evaluated once.
_guardrails := data.gateway.guardrails

# METADATA
# description: The indexes of the questions that a guardrail denies or adds obligations to.
_named_questions contains index if some index, _ in _guardrails[_].denials

# METADATA
# description: The same for malformed questions.
_named_questions contains index if some index, _ in questions.denials

# METADATA
# description: The same for obligations.
_named_questions contains index if some index, _ in _guardrails[_].obligations

# METADATA
# description: The reasons of the denial; one is enough. An invalid denial counts as an invalid guardrail.
_reasons(index) := union({_faults, _denials(index), _faults_at(index), object.get(questions.denials, index, set())})

# METADATA
# description: The denials of this question that have the form of a denial.
_denials(index) := {denial |
	some rules in _guardrails
	some denial in rules.denials[index]
	count(_misfits(_entry.denials, denial)) == 0
}

# METADATA
# description: The schema of one denial and of one set of obligations.
_entry[kind] := output.schema.properties[kind].patternProperties["^[0-9]+$"].items if {
	some kind in {"denials", "obligations"}
}

# METADATA
# description: The indexes of the questions.
_indexes := {index | some index, _ in input.questions}

# METADATA
# description: Faults that deny every question. A guardrail must be a package with rules.
_faults contains _fault(name, "it is not a package of rules") if {
	some name, rules in _guardrails
	not is_object(rules)
}

# METADATA
# description: The public rules of a guardrail are those of the schema. OPA reads a package below a guardrail as a rule.
_faults contains _fault(name, sprintf("unknown rule %v (helpers begin with _)", [rule])) if {
	some name, rules in _guardrails
	some rule, _ in rules
	not output.schema.properties[rule]
	not startswith(rule, "_")
}

# METADATA
# description: A package below a guardrail whose name begins with _ counts as a helper. Its rules would be ignored.
_faults contains _fault(name, sprintf("%s has the rule %s, which a helper cannot have", [helper, rule])) if {
	some name, rules in _guardrails
	some helper, value in rules
	startswith(helper, "_")
	is_object(value)
	some rule, _ in output.schema.properties
	type_name(value[rule]) != ""
}

# METADATA
# description: A guardrail has denials or obligations for every input, so that an undefined rule does not allow.
_faults contains _fault(name, "neither denials nor obligations is defined") if {
	some name, rules in _guardrails
	not rules.denials
	not rules.obligations
}

# METADATA
# description: Each rule has the type of the schema.
_faults contains _fault(name, sprintf("the type of %s is not %s", [rule, property.type])) if {
	some rule, property in output.schema.properties
	some name, rules in _guardrails
	type_name(rules[rule]) != property.type
}

# METADATA
# description: The keys of denials and obligations are indexes of questions.
_faults contains _fault(name, sprintf("%s[%v] is not the index of a question", [kind, index])) if {
	some kind in ["denials", "obligations"]
	some name, rules in _guardrails
	some index, _ in rules[kind]
	not index in _indexes
}

# METADATA
# description: The faults in the denials and obligations for the question at this index.
_faults_at(index) := {_fault(name, misfit) |
	some name, rules in _guardrails
	some kind in {"denials", "obligations"}
	given := rules[kind][index]
	some misfit in _entry_misfits(kind, given)
}

# METADATA
# description: The denial for an invalid guardrail; it names the package.
_fault(name, misfit) := {
	"code": "guardrail_invalid",
	"message": sprintf("The package gateway.guardrails.%v is invalid: %s.", [name, misfit]),
}

# METADATA
# description: The faults in the denials or obligations for one question.
_entry_misfits(kind, given) := {sprintf("%s for a question is not a set", [kind])} if {
	not is_set(given)
} else := {sprintf("%s in %s", [misfit, kind]) |
	some entry in given
	some misfit in _misfits(_entry[kind], entry)
}

# METADATA
# description: The faults in one denial or one set of obligations.
_misfits(schema, entry) := {"an entry that is not an object"} if {
	not is_object(entry)
} else := union({
	{sprintf("unknown field %v", [name]) | some name in (object.keys(entry) - object.keys(schema.properties))},
	{sprintf("missing field %s", [name]) | some name in schema.required; not name in object.keys(entry)},
	{sprintf("field %s of the wrong type or value", [name]) |
		some name, property in schema.properties
		value := entry[name]
		not _fits(property, value)
	},
})

# METADATA
# description: The value is an integer and not below the minimum.
_fits(property, value) if {
	property.type == "integer"
	is_number(value)
	value == round(value)
	value >= property.minimum
}

# METADATA
# description: The value is a boolean or a string.
_fits(property, value) if {
	property.type in {"boolean", "string"}
	type_name(value) == property.type
}

# METADATA
# description: The value is a list or a set of strings.
_fits(property, value) if {
	property.type == "array"
	property.items.type == "string"
	type_name(value) in {"array", "set"}
	every item in value {
		is_string(item)
	}
}

# METADATA
# description: The value is a list or a set of objects with the required fields.
_fits(property, value) if {
	property.type == "array"
	property.items.type == "object"
	type_name(value) in {"array", "set"}
	every item in value {
		_is_object_of(property.items, item)
	}
}

# METADATA
# description: The value is a list or a set whose items have one of several forms.
_fits(property, value) if {
	property.type == "array"
	type_name(value) in {"array", "set"}
	every item in value {
		some form in property.items.anyOf
		_has_form(form, item)
	}
}

# METADATA
# description: The item is a string.
_has_form(form, item) if {
	form.type == "string"
	is_string(item)
}

# METADATA
# description: The item is an object with the fields of the form, and each field has an allowed value.
_has_form(form, item) if {
	form.type == "object"
	_is_object_of(form, item)
	every name, value in item {
		is_string(value)
		value in object.get(form.properties[name], "enum", [value])
	}
}

# METADATA
# description: The item is an object with the required fields.
_is_object_of(form, item) if {
	is_object(item)
	every name in form.required {
		name in object.keys(item)
	}
}

# METADATA
# description: |
#   The obligations of all guardrails for this question, combined by kind to the strictest; absent kinds are omitted.
_obligations(index) := {name: strictest |
	some name, property in _entry.obligations.properties
	asked := {obligations[name] | some obligations in _asked(index)}
	count(asked) > 0
	strictest := _strictest(property.type, asked)
}

# METADATA
# description: The smallest limit. It is rounded, because the gateway reads 900 and refuses 900.0.
_strictest("integer", asked) := round(min(asked))

# METADATA
# description: True if any guardrail sets it to true.
_strictest("boolean", asked) if true in asked

# METADATA
# description: The names of all guardrails.
_strictest("array", asked) := [name | some name in names] if {
	names := {name | some some_names in asked; some name in some_names}
	count(names) > 0
}

# METADATA
# description: The obligations of each guardrail for this question.
_asked(index) := {asked | some rules in _guardrails; some asked in rules.obligations[index]}

# METADATA
# description: |
#   The time until which the gateway may cache the answers to this input. The policy data sets the number of seconds.
#   Every guardrail must state that it is steady: that the time does not change its answers to this input. As shipped,
#   the number is 1. With 0 nothing is cached, and a change of the policy data takes effect with the next request.
_lasting := object.union({"valid_until": until}, _revision) if {
	seconds := data.policy_data.memory.answers_last_seconds
	is_number(seconds)
	seconds > 0
	count(_unsteady) == 0
	until := time.format(time.parse_rfc3339_ns(input.context.time) + (seconds * 1000000000))
} else := {}

# METADATA
# description: The revision of the rules and data. Without it the gateway caches nothing.
_revision := {"revision": current | current := data.system.revision.current}

# METADATA
# description: The guardrails whose answers may change with the time, or that do not define `steady`.
_unsteady contains name if {
	some name, rules in _guardrails
	not rules.steady == true
}
