# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Restrict credentials by place
# description: |
#   Policy data contains rules: places, and the obligations for them. A place is a list of ids, or globs of names
#   without regard to case. A missing part matches everything, and a namespace covers all namespaces below it. Former
#   names also match, so that a rename does not remove an object from a rule. A name or an id that the gateway does not
#   send matches, so that unknown objects are restricted. Unreadable rules deny every question.
# schemas:
#   - input: schema.input
package gateway.guardrails.credentials

# METADATA
# description: The time does not change the answer.
steady := true

# METADATA
# description: The obligations of each rule, for every question to which it applies.
obligations[index] contains _asked(rule) if {
	some index, question in input.questions
	some rule in data.policy_data.credentials.rules
	_applies(rule, question.resource)
}

# METADATA
# description: Deny every question while the rules are unreadable.
denials[index] contains denial if {
	some index, _ in input.questions
	not _readable
	denial := {
		"code": "credential_rules_unreadable",
		"message": "The policy data on credentials is missing or malformed. The administrator of the policies can correct it.",
	}
}

# METADATA
# description: All rules are valid.
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
#   At least one id, each a UUID in lower case, as the gateway writes it. Other texts and an empty list match no
#   resource, so that such a rule would restrict nothing.
_readable_ids(rule) if {
	is_array(rule.ids)
	count(rule.ids) > 0
	every id in rule.ids {
		is_string(id)
		regex.match(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id)
	}
}

# METADATA
# description: |
#   A rule without ids is valid: it restricts by names only.
_readable_ids(rule) if not "ids" in object.keys(rule)

# METADATA
# description: The obligations of a rule, if each of them is valid.
_asked(rule) := rule.ask if {
	is_object(rule.ask)
	every name, value in rule.ask {
		_keepable(name, value)
	}
}

# METADATA
# description: A maximum lifetime of credentials in whole seconds.
_keepable("max_credential_seconds", value) if {
	is_number(value)
	value >= 0
	value == round(value)
}

# METADATA
# description: A boolean obligation.
_keepable(name, value) if {
	name in {"no_vending", "append_only"}
	is_boolean(value)
}

# METADATA
# description: The rule applies to the resource.
_applies(rule, resource) if {
	_identified(rule, resource)
	_matches(object.get(rule, "warehouse", "*"), resource.warehouse)
	some levels in _namespaces(resource)
	_covers(object.get(rule, "namespace", []), levels)
	some name in _table_names(resource)
	_matches(object.get(rule, "table", "*"), name)
}

# METADATA
# description: The rule has no ids.
_identified(rule, _) if not rule.ids

# METADATA
# description: One of the ids is the id of the resource or of its warehouse.
_identified(rule, resource) if {
	some id in rule.ids
	some part in ["id", "warehouse_id"]
	id == resource[part]
}

# METADATA
# description: One of the ids is the id of a namespace above the resource, or of the resource itself.
_identified(rule, resource) if {
	some id in rule.ids
	id in resource.namespace_ids
}

# METADATA
# description: The id of the resource is unknown.
_identified(rule, resource) if {
	rule.ids
	object.get(resource, "id", null) == null
}

# METADATA
# description: |
#   The id of a namespace or warehouse above the resource is unknown. Older versions of the gateway send no ids of
#   namespaces.
_identified(rule, resource) if {
	rule.ids
	not resource.type in _types_outside_namespaces
	some part in ["namespace_ids", "warehouse_id"]
	object.get(resource, part, null) == null
}

# METADATA
# description: |
#   The types of resources outside namespaces. All other types lie in a namespace; a namespace counts as inside itself.
_types_outside_namespaces := {"server", "project", "warehouse", "user", "role", "data_policy"}

# METADATA
# description: |
#   The current and former namespaces of the resource: former names of its namespaces, and the namespaces in its own
#   former names. If the list of former names is incomplete, the namespace is unknown (null).
_namespaces(resource) := {null} if {
	resource.former_names_complete == false
} else := {resource.namespace} | former if {
	above := {levels | some levels in object.get(resource, "former_namespaces", [])}
	own := {array.slice(name, 0, count(name) - 1) | some name in object.get(resource, "former_names", [])}
	former := above | own
}

# METADATA
# description: |
#   The current and former names of a table. Other resources have no table name, so that a rule for a named table also
#   applies to them.
_table_names(resource) := {null} if {
	not resource.type in {"table", "generic_table"}
} else := {null} if {
	resource.former_names_complete == false
} else := {resource.name} | {name[count(name) - 1] | some name in object.get(resource, "former_names", [])}

# METADATA
# description: An unknown name matches.
_matches(_, null) := true

# METADATA
# description: The name matches the glob. Names contain no separators, so a star matches any characters.
_matches(pattern, name) if glob.match(lower(pattern), null, lower(name))

# METADATA
# description: An unknown namespace is covered.
_covers(_, null) := true

# METADATA
# description: The namespace matches the pattern or lies below it.
_covers(pattern, levels) if {
	count(pattern) <= count(levels)
	every index, glob_of_level in pattern {
		_matches(glob_of_level, levels[index])
	}
}
