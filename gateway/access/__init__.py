# SPDX-License-Identifier: Apache-2.0
"""The door: operations, callers, demands, the decision, and the permit as its proof.

Nothing in Lakegate happens without a `Permit`, and only `Door.admit` returns one. The rules are data (`operations/`).
The decision is pure (`decision`), `preconditions` needs no engine, and only `engines` calls OpenFGA and OPA. Adapters
implement `ports`.
"""
