# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Which policies these are
# description: |
#   The gateway asks for this twice a second. Another value than before means that what it remembers of answers was
#   promised by other policies, and it forgets it. Undefined means that nobody can tell: then nothing is remembered.
package system.revision

# METADATA
# description: Changes with the rules and with the policy data.
# entrypoint: true
current := crypto.sha256(json.marshal([_rules, data.policy_data]))

# METADATA
# description: |
#   The rules, by the revisions of the bundles they came in. Without bundles the rules change only with a start of OPA;
#   whoever starts it names them by a variable, which another set of rules must never share.
_rules := {name: bundle.manifest.revision | some name, bundle in data.system.bundles} if {
	count(data.system.bundles) > 0
	every _, bundle in data.system.bundles {
		bundle.manifest.revision != ""
	}
} else := named if {
	not data.system.bundles
	named := opa.runtime().env.LAKEGATE_OPA_REVISION
	named != ""
}
