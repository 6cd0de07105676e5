# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: What is left out of OPA's decision log
# description: |
#   With the answers of the gateway OPA would write down the bridge's token, and its environment with all secrets. Of
#   what a decision looked up outside only the id of the request to the gateway stays, by which the gateway's audit has
#   the other half. OPA runs with --set=decision_logs.mask_decision=/trino/log/mask.
package trino.log

# METADATA
# description: Every outside answer but the id of the request.
mask contains {"op": "remove", "path": concat("", ["/nd_builtin_cache/", name])} if {
	some name, _ in input.nd_builtin_cache
	name != "uuid.rfc4122"
}
