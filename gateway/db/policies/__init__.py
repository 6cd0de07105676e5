# SPDX-License-Identifier: Apache-2.0
"""Statements on data policies (row filters and masks), on mapping tables with values for row filters, and on tags."""
