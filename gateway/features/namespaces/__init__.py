# SPDX-License-Identifier: Apache-2.0
"""Namespaces: creation, moves and drops, and the registration of tables and views in them."""
