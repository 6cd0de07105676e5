# SPDX-License-Identifier: Apache-2.0
"""Access levels of storage credentials."""

from enum import StrEnum

__all__ = ["AccessLevel"]


class AccessLevel(StrEnum):
    """Permitted file operations of a credential. `read-write` can create and overwrite files, but not delete them."""

    READ = "read"
    READ_WRITE = "read-write"
    READ_WRITE_DELETE = "read-write-delete"
