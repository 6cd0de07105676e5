# SPDX-License-Identifier: Apache-2.0
"""The operations of Lakegate: a frozen class for each, and a file for each noun.

With `fga_model/`, `policies/` and the golden matrix they define all access rules. A new operation needs an endpoint
under `serve` or `@serves`, a row in the golden matrix, and relations that exist in the model. Tests fail otherwise.
"""
