# SPDX-License-Identifier: Apache-2.0
"""A differential test of `gateway.iceberg` against the handlers and parsers of the Java library.

`Judge.java` asks the library, `judge.py` runs it, `random_tables.py` and `random_views.py` make questions,
`comparison.py` asks both sides, and `exceptions.py` lists the differences that are meant.
"""
