# SPDX-License-Identifier: Apache-2.0
"""The operations of Lakegate, a frozen class each, a file for each noun.

With `fga_model/`, `policies/` and the golden matrix they are the whole policy. A new operation needs an endpoint under
`serve` or `@serves`, a row in the golden matrix, and relations that exist in the model. Tests fail otherwise.
"""
