# SPDX-License-Identifier: Apache-2.0
package trino.log_test

import data.trino.log

test_of_what_was_looked_up_outside_only_the_id_stays if {
	log.mask == {
		{"op": "remove", "path": "/nd_builtin_cache/http.send"},
		{"op": "remove", "path": "/nd_builtin_cache/opa.runtime"},
	} with input as {"nd_builtin_cache": {"http.send": {}, "opa.runtime": {}, "uuid.rfc4122": {}}}
	log.mask == set() with input as {"input": {}}
}
