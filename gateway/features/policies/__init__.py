# SPDX-License-Identifier: Apache-2.0
"""Data policies, their bindings to objects, and mapping tables."""
