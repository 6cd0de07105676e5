# SPDX-License-Identifier: Apache-2.0
"""The Iceberg REST protocol as pure functions and values: names, errors, bodies, table and view metadata, and commits.

Nothing here does I/O or depends on a framework. Callers pass in the time and random ids.
"""
