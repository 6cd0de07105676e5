# SPDX-License-Identifier: Apache-2.0
"""Data policies (row filters and masks), their bindings to objects, and mapping tables with values for row filters."""
