# SPDX-License-Identifier: Apache-2.0
package trino.operations_test

import data.trino.operations

# METADATA
# description: The types of objects that the words of the table can name.
places := {"about", "above", "grown", "into", "into-above", "lent-view", "listed", "namespace", "read", "read-view", "table", "view", "warehouse"}

test_each_row_is_of_one_of_the_two_forms if {
	every row in operations.table {
		object.keys(row) - {"looks", "may", "needs"} == set()
		count(object.keys(row) & {"may", "needs"}) == 1
		object.get(row, "may", "nobody") in {"everybody", "nobody", "operators", "owners"}
		every need in object.get(row, "needs", []) {
			every alternative in split(need, " | ") {
				[what, action] := split(alternative, " ")
				what in places
				regex.match(`^[a-z_]+$`, action)
			}
		}
	}
}

test_who_only_looks_changes_nothing if {
	looking := {operation | some operation, row in operations.table; row.looks}
	count(looking) > 10
	every operation in looking {
		regex.match(`^(Access|Filter|Get|Select|Show)`, operation)
	}
}
