# SPDX-License-Identifier: Apache-2.0
"""Obligations: restrictions of an allowed operation, such as shorter credentials, row filters or masks. Pure.

Several obligations of a decision are merged, and take effect wherever data leaves the gateway. `kinds` defines the
closed union, `merging` merges the obligations of a decision, and `application` applies them. `guardrails` reads
obligations from the results of policies. `columns`, `masks` and `projections` implement column-level access.
"""
