# SPDX-License-Identifier: Apache-2.0
"""Everything that can be asked of Lakegate, one frozen class each, one file per noun.

With `fga_model/`, `policies/` and the golden matrix this is the whole policy. Adding an operation here obliges: a
handler under `@serves`, a row in the golden matrix, and relations that exist in the model; tests refuse the build
otherwise.
"""
