# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Revision of the policies
# description: |
#   The gateway reads this value twice a second. If the value changes, the gateway clears its cache of OPA's answers. If
#   the value is undefined, the gateway caches no answers.
package system.revision

# METADATA
# description: |
#   Two hashes, of the rules and of the policy data. The package gateway.residual names the second, and the first if OPA
#   has bundles.
# entrypoint: true
current := concat(".", [crypto.sha256(json.marshal(_rules)), crypto.sha256(json.marshal(data.policy_data))])

# METADATA
# description: |
#   The rules, identified by the revisions of their bundles. Without bundles, the rules change only when OPA starts. A
#   variable in OPA's environment then identifies them; each set of rules needs a value of its own.
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
