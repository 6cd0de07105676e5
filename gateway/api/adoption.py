# SPDX-License-Identifier: Apache-2.0
"""The request header `X-Lakegate-Adopt`."""

from __future__ import annotations

from gateway.iceberg.errors import BadRequestException


def adopts(header: str | None) -> bool:
    """Return True for `true` and False for `false` or no header. Raises 400 for any other value."""
    match (header or "").strip().lower():
        case "true":
            return True
        case "" | "false":
            return False
        case other:
            raise BadRequestException(f"X-Lakegate-Adopt must be true or false, and it is {other[:40]!r}")
