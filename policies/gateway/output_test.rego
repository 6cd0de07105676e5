# SPDX-License-Identifier: Apache-2.0
package gateway.output_test

import data.gateway.output

test_the_rules_of_a_guardrail_are_closed if {
	object.keys(output.schema.properties) == {"denials", "obligations", "steady"}
	output.schema.additionalProperties == false
}

test_each_entry_is_closed if {
	every kind in ["denials", "obligations"] {
		entry := output.schema.properties[kind].patternProperties["^[0-9]+$"].items
		entry.additionalProperties == false
		count(entry.properties) > 1
	}
}
