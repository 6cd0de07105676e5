# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: How far credentials go
# description: |
#   Policy data lists rules: where they apply and what they ask for. A place is written as globs of names without regard
#   to case; a part that is left out matches everything, and a namespace covers all below it. A name the gateway does
#   not know matches, so that what cannot be judged is guarded. Rules that cannot be read deny what they could be about.
# schemas:
#   - input: schema.input
package gateway.guardrails.credentials

# METADATA
# description: The time changes nothing here.
steady := true

# METADATA
# description: What each rule asks for wherever it applies.
obligations[index] contains _asked(rule) if {
	some index, question in input.questions
	some rule in data.policy_data.credentials.rules
	_applies(rule, question.resource)
}

# METADATA
# description: Nothing is allowed while a rule cannot be read.
denials[index] contains denial if {
	some index, _ in input.questions
	not _readable
	denial := {
		"code": "credential_rules_unreadable",
		"message": "The rules for credentials are missing or malformed.",
	}
}

# METADATA
# description: All rules can be read.
_readable if {
	is_array(data.policy_data.credentials.rules)
	every rule in data.policy_data.credentials.rules {
		object.keys(rule) - {"warehouse", "namespace", "table", "ask"} == set()
		is_string(object.get(rule, "warehouse", ""))
		is_string(object.get(rule, "table", ""))
		every level in object.get(rule, "namespace", []) {
			is_string(level)
		}
		is_array(object.get(rule, "namespace", []))
		count(_asked(rule)) > 0
	}
}

# METADATA
# description: What a rule asks for, if each of its wishes is one that can be kept.
_asked(rule) := rule.ask if {
	is_object(rule.ask)
	every name, value in rule.ask {
		_keepable(name, value)
	}
}

# METADATA
# description: A bound on the life of credentials, in whole seconds.
_keepable("max_credential_seconds", value) if {
	is_number(value)
	value >= 0
	value == round(value)
}

# METADATA
# description: A switch.
_keepable(name, value) if {
	name in {"no_vending", "append_only"}
	is_boolean(value)
}

# METADATA
# description: The rule is about the place of the resource.
_applies(rule, resource) if {
	_matches(object.get(rule, "warehouse", "*"), resource.warehouse)
	_covers(object.get(rule, "namespace", []), resource.namespace)
	_matches(object.get(rule, "table", "*"), _table_name(resource))
}

# METADATA
# description: The name of a table; anything else has none, so a rule for named tables is kept for it as well.
_table_name(resource) := resource.name if {
	resource.type in {"table", "generic_table"}
} else := null

# METADATA
# description: The name is not known.
_matches(_, null) := true

# METADATA
# description: The name fits the glob. There are no separators in a name, so a star may stand for anything.
_matches(pattern, name) if glob.match(lower(pattern), null, lower(name))

# METADATA
# description: The namespace is not known.
_covers(_, null) := true

# METADATA
# description: The namespace is the one that is written or lies below it.
_covers(pattern, levels) if {
	count(pattern) <= count(levels)
	every index, glob_of_level in pattern {
		_matches(glob_of_level, levels[index])
	}
}
