# SPDX-License-Identifier: Apache-2.0
"""How each update changes a document: a working copy per commit (`builder`, `view_builder`) and one named function per
update, by theme. Only `commit` and `creation` use it; what leaves them is immutable again."""
