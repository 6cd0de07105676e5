# SPDX-License-Identifier: Apache-2.0
"""The operations of Lakegate: one frozen class for each operation, and one file for each noun (object type of the API).

With `fga_model/`, `policies/` and the golden matrix (`tests/access/matrix.md`) they define all access rules. A new
operation needs an endpoint under `serve` or `@serves`, a row in the golden matrix, and relations that exist in the
model. Otherwise tests fail.
"""
