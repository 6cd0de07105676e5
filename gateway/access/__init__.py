# SPDX-License-Identifier: Apache-2.0
"""The door: operations, callers, demands, the decision, and the permit as its proof.

Nothing in Lakegate happens without a `Permit`, and a `Permit` comes only from `Door.admit`. The rules are data
(`operations/`), the decision is pure (`decision`), `preconditions` needs no engine, and only `door`, `engines`,
`grant_expiry` and `hypothetical_evaluation` await anything. Adapters implement `ports`.
"""
