# SPDX-License-Identifier: Apache-2.0
"""Tables and generic tables: creation, loads, commits, renames, and the search by name."""
