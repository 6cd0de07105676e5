# SPDX-License-Identifier: Apache-2.0
"""The Iceberg REST protocol as pure functions and values: names, errors, wire bodies, table and view metadata, and how
commits change them. Nothing here does I/O or knows a framework; time and random ids are always passed in."""
