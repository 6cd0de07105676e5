# SPDX-License-Identifier: Apache-2.0
"""Apply the updates of a commit to a metadata document: one function for each kind of update.

Each function takes a builder, the update, and `at`, the JSON path of the update for error messages. A builder is the
mutable copy of the document during one commit (`builder`, `view_builder`). The functions are grouped by topic. Only
`commit` and `creation` use this package. They return immutable metadata.
"""
