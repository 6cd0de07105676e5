# SPDX-License-Identifier: Apache-2.0
"""The character U+0000, which no request may hold: databases take it in no text, and C libraries end names at it.

Head and body of every request pass here before anything reads them (`raw_path.py` and `Ctx._content`).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from litestar.types import Scope

from gateway.iceberg.codec import refuse_nul
from gateway.iceberg.errors import BadRequestException

__all__ = ["refuse_in_body", "refuse_in_head"]

_NUL: Final = b"\x00"


def refuse_in_head(scope: Scope) -> None:
    """Raise BadRequestException for U+0000 in the query, written as a byte or percent-encoded, or in a header.

    Paths are decoded, and judged, by `raw_path.decode_path`.
    """
    if _NUL in unquote_to_bytes(scope["query_string"]):
        raise BadRequestException("The query holds U+0000, which is allowed nowhere in a request.")
    for name, value in scope["headers"]:
        if _NUL in value or _NUL in name:
            text = name.decode("latin-1")
            raise BadRequestException(f"The header {text!r} holds U+0000, which is allowed nowhere in a request.")


def refuse_in_body(raw: bytes) -> None:
    """Raise BadRequestException for U+0000 in a body of JSON, as a byte or as its escape."""
    if _NUL in raw:
        raise BadRequestException("Malformed request: the body holds U+0000.")
    refuse_nul(raw)
