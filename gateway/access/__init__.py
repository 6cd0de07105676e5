# SPDX-License-Identifier: Apache-2.0
"""The door: what can be asked, who asks, what must be true for it, and the proof that it was.

Nothing in Lakegate happens without a `Permit`, and a `Permit` comes only from `Door.admit`. The rules are data
(`operations/`), the deciding is pure (`decision`), `threshold` asks nobody, and only `door`, `engines`,
`endings` and `suppositions` await anything. Adapters implement `ports`.
"""
