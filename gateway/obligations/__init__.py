# SPDX-License-Identifier: Apache-2.0
"""Obligations: restrictions of an allowed operation, their merge, and their effect wherever data leaves the gateway.

Pure. `kinds` defines the closed union, `merging` merges the obligations of a decision, and `application` applies them.
`guardrails` reads obligations from the results of policies. `columns`, `masks` and `projections` implement column-level
access.
"""
