# SPDX-License-Identifier: Apache-2.0
"""Data policies, their bindings, and mapping tables."""
