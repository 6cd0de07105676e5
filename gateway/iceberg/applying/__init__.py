# SPDX-License-Identifier: Apache-2.0
"""Apply updates to a document: a mutable copy per commit (`builder`, `view_builder`), and one function per update.

The functions are grouped by topic. Each takes the builder, the update, and `at`, the JSON path of the update for error
messages. Only `commit` and `creation` use this package. They return immutable metadata.
"""
