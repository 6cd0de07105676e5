# SPDX-License-Identifier: Apache-2.0
"""Determine the columns and rows that a caller may read, and whether an engine can enforce these restrictions."""
