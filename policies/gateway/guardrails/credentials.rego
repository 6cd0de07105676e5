# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: How far credentials go
# description: |
#   Policy data lists rules: where they apply and what they ask for. A place is written as ids, or as globs of names
#   without regard to case; a part that is left out matches everything, and a namespace covers all below it. Names that
#   a thing had before match as well, so that a rename takes nothing away from a rule. A name or an id that the gateway
#   does not send matches, so that what cannot be judged is guarded. Rules that cannot be read deny what they could be
#   about.
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
		"message": "The policy data on credentials is missing or malformed. The administrator of the policies can correct it.",
	}
}

# METADATA
# description: All rules can be read.
_readable if {
	is_array(data.policy_data.credentials.rules)
	every rule in data.policy_data.credentials.rules {
		object.keys(rule) - {"ids", "warehouse", "namespace", "table", "ask"} == set()
		_readable_ids(rule)
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
# description: |
#   At least one id, each written as the gateway writes it: a UUID in lower case. No other text is ever the id of a
#   resource, and an empty list has none, so such a rule would guard nothing.
_readable_ids(rule) if {
	is_array(rule.ids)
	count(rule.ids) > 0
	every id in rule.ids {
		is_string(id)
		regex.match(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id)
	}
}

# METADATA
# description: Without ids, the rule is about names alone.
_readable_ids(rule) if not "ids" in object.keys(rule)

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
	_identified(rule, resource)
	_matches(object.get(rule, "warehouse", "*"), resource.warehouse)
	some levels in _namespaces(resource)
	_covers(object.get(rule, "namespace", []), levels)
	some name in _table_names(resource)
	_matches(object.get(rule, "table", "*"), name)
}

# METADATA
# description: The rule names no ids.
_identified(rule, _) if not rule.ids

# METADATA
# description: One of the ids is that of the resource or of its warehouse.
_identified(rule, resource) if {
	some id in rule.ids
	some part in ["id", "warehouse_id"]
	id == resource[part]
}

# METADATA
# description: One of the ids is that of a namespace that it lies in, or that it is.
_identified(rule, resource) if {
	some id in rule.ids
	id in resource.namespace_ids
}

# METADATA
# description: The id of the resource is not known.
_identified(rule, resource) if {
	rule.ids
	object.get(resource, "id", null) == null
}

# METADATA
# description: An id of what it lies in is not known. A gateway of an older version sends no ids of namespaces.
_identified(rule, resource) if {
	rule.ids
	not resource.type in _types_outside_namespaces
	some part in ["namespace_ids", "warehouse_id"]
	object.get(resource, part, null) == null
}

# METADATA
# description: The types of resources that lie in no namespace. Every other type does; a namespace lies in itself.
_types_outside_namespaces := {"server", "project", "warehouse", "user", "role"}

# METADATA
# description: |
#   The namespace of the resource now, and those that it had: former names of its namespaces, and the namespaces in its
#   own former names. With more former names than are known it may have had any.
_namespaces(resource) := {null} if {
	resource.former_names_complete == false
} else := {resource.namespace} | former if {
	above := {levels | some levels in object.get(resource, "former_namespaces", [])}
	own := {array.slice(name, 0, count(name) - 1) | some name in object.get(resource, "former_names", [])}
	former := above | own
}

# METADATA
# description: |
#   The names of a table, now and before. Anything else has none, so a rule for named tables is kept for it as well.
_table_names(resource) := {null} if {
	not resource.type in {"table", "generic_table"}
} else := {null} if {
	resource.former_names_complete == false
} else := {resource.name} | {name[count(name) - 1] | some name in object.get(resource, "former_names", [])}

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
