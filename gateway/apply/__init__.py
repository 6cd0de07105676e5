# SPDX-License-Identifier: Apache-2.0
"""Compare a file that declares objects and grants with a running catalog, and make the changes over HTTP.

`nouns` has the base class of a kind of objects, such as projects or tags. Each kind has a subclass in the module of its
name. `kinds` lists all kinds: it converts a file to a `State`, reads the current `State`, and makes the changes of a
plan. `document` and `source` define the form of the file. `planner` compares two states (pure). `export` writes a state
as a file.
"""

from __future__ import annotations


class ApplyError(Exception):
    """An error that the caller can correct in the file, the login, a right or a secret. The message tells how."""
