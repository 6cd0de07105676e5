# SPDX-License-Identifier: Apache-2.0
"""The objects: references, rows behind them, privileges, relations, refusals, and names of policy operations."""
