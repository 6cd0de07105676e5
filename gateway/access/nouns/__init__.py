# SPDX-License-Identifier: Apache-2.0
"""Define the object types: references, rows, privileges, relations, refusals, and operation names for policies."""
