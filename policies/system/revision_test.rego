# SPDX-License-Identifier: Apache-2.0
package system.revision_test

import data.system.revision

# METADATA
# description: OPA without bundles, with this revision in its environment.
started(named) := {"env": {"LAKEGATE_OPA_REVISION": named}}

# METADATA
# description: Bundles with these revisions.
bundles(revisions) := {name: {"manifest": {"revision": each}} | some name, each in revisions}

test_other_rules_without_bundles_are_another_revision if {
	one := revision.current with opa.runtime as started("a")
	again := revision.current with opa.runtime as started("a")
	other := revision.current with opa.runtime as started("b")
	one == again
	one != other
}

test_other_policy_data_is_another_revision if {
	one := revision.current with opa.runtime as started("a") with data.policy_data as {"x": 1}
	other := revision.current with opa.runtime as started("a") with data.policy_data as {"x": 2}
	one != other
}

test_another_bundle_is_another_revision_and_the_start_is_not if {
	one := revision.current with data.system.bundles as bundles({"p": "1"}) with opa.runtime as started("a")
	same := revision.current with data.system.bundles as bundles({"p": "1"}) with opa.runtime as started("b")
	other := revision.current with data.system.bundles as bundles({"p": "2"}) with opa.runtime as started("a")
	more := revision.current with data.system.bundles as bundles({"p": "1", "q": "1"}) with opa.runtime as started("a")
	one == same
	count({one, other, more}) == 3
}

test_a_bundle_without_a_revision_can_change_unseen_so_there_is_none if {
	not revision.current with data.system.bundles as bundles({"p": "1", "q": ""}) with opa.runtime as started("a")
}

test_without_anything_to_go_by_there_is_none if {
	not revision.current with opa.runtime as {}
	not revision.current with opa.runtime as started("")
}
