# SPDX-License-Identifier: Apache-2.0
"""Name the cause of a failed read without the text of the error.

Error texts of the libraries can contain values of rows, paths with partition values, and credentials.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import ResolveError, SignError

#: Words in errors of object stores and their clients: the keys have expired, or do not allow access to a file.
_REFUSED: Final = (
    *("access_denied", "accessdenied", "access denied", "forbidden", "expiredtoken", "expired token"),
    *("invalidaccesskeyid", "invalid_access_key_id", "signaturedoesnotmatch", "status code 403", "http status 403"),
    *("invalid_client_token", "request_expired", "http response code 403"),
)
_ENDED: Final = "the object store refused access to a file: open the table again, because its credentials have ended"
_MISSING: Final = "a file is missing, because the snapshot expired or the table was purged: open the table again"
_UNSUPPORTED: Final = (
    "PyIceberg or PyArrow does not read a file or a type of this table: read it with Spark or Trino, or rewrite its "
    "files as Parquet without equality deletes"
)
_DAMAGED: Final = "a file is damaged, or is no file of its format: read it with another engine to compare"
_UNREACHABLE: Final = "a file could not be fetched from the object store: try again, and check the network"
_UNKNOWN: Final = "an unexpected error: try again, and report it with the type of the error if it stays"


class ReadFailed(Exception):
    """Raised if files of the table cannot be read. The message has only the type of the error and its cause."""


def failure(error: Exception) -> str:
    """Return the message of the `ReadFailed` for an error of the libraries."""
    return f"the table could not be read ({type(error).__name__}): {_cause(error)}"


def _cause(error: Exception) -> str:
    text = str(error).lower()
    if isinstance(error, OSError | SignError) and (
        isinstance(error, PermissionError | SignError) or any(each in text for each in _REFUSED)
    ):
        return _ENDED
    match error:
        case FileNotFoundError():
            return _MISSING
        case NotImplementedError() | pa.ArrowNotImplementedError() | ResolveError():
            return _UNSUPPORTED
        case ValueError() if "equality delete" in text:
            return _UNSUPPORTED
        case pa.ArrowInvalid() | pa.ArrowTypeError():
            return _DAMAGED
        case OSError():
            # Arrow also raises OSError for files that it can fetch but cannot decode.
            return _DAMAGED if "parquet" in text or "deserialize" in text or "corrupt" in text else _UNREACHABLE
    return _UNKNOWN
