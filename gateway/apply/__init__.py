# SPDX-License-Identifier: Apache-2.0
"""Compare a file of desired objects and grants with a running catalog, and make the changes over HTTP.

`nouns` describes the declaration of a kind of objects, and each kind has one, in the module of its name. `kinds` is
their table: it turns a file into a `State`, reads the current `State`, and makes the changes of a plan. `document` and
`source` are the form of the file. `planner` is pure: it compares two states. `export` writes a state as a file.
"""

from __future__ import annotations


class ApplyError(Exception):
    """Something that the caller can mend: the file, the login, a right, or a secret. The message says how."""
