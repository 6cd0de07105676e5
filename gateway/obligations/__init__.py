# SPDX-License-Identifier: Apache-2.0
"""Obligations: restrictions that a yes carries, their merge, and their effect at each place where data leaves.

Pure. `kinds` is the closed union, `merging` the obligations of one decision, `application` their effect. `columns`,
`masks` and `projections` express column-level access, and `restrictions` writes it for engines.
"""
