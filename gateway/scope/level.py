# SPDX-License-Identifier: Apache-2.0
"""How much of a table's location a credential opens."""

from enum import StrEnum

__all__ = ["AccessLevel"]


class AccessLevel(StrEnum):
    """How much of a table's prefix a credential opens. `read-write` can add and overwrite, but not delete."""

    READ = "read"
    READ_WRITE = "read-write"
    READ_WRITE_DELETE = "read-write-delete"
