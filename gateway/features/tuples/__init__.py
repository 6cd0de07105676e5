# SPDX-License-Identifier: Apache-2.0
"""Background work on OpenFGA's tuples: delivery of pending ones, and repair of drift.

Drift is a difference between OpenFGA's tuples and the rows that no delivery explains.
"""
