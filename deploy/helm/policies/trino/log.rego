# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: Fields that are removed from OPA's decision log
# description: |
#   Without this mask, OPA would log the bridge's token with the answers of the gateway, and its environment with all
#   secrets. Of the results of external calls, the log keeps only the id of the request to the gateway. The gateway's
#   audit has a record with the same id. OPA runs with --set=decision_logs.mask_decision=/trino/log/mask.
package trino.log

# METADATA
# description: Remove the result of every external call except the request id.
mask contains {"op": "remove", "path": concat("", ["/nd_builtin_cache/", name])} if {
	some name, _ in input.nd_builtin_cache
	name != "uuid.rfc4122"
}
