# SPDX-License-Identifier: Apache-2.0
"""Parse the request headers `X-Iceberg-Access-Delegation`, `X-Lakegate-Adopt` and `User-Agent`."""

from __future__ import annotations

from gateway.iceberg.errors import BadRequestException

_VENDED, _SIGNED = "vended-credentials", "remote-signing"


def client_manages_storage(header: str | None) -> bool:
    """Return True if the header names values, but none by which this server gives access: the client needs no
    credentials.

    Unknown values are ignored, because the header only says what a client supports. A header of unknown values alone
    is not an absent one, so it never gives more than a known value (LG-DEC-08).
    """
    asked = _delegations(header)
    return bool(asked) and asked.isdisjoint((_VENDED, _SIGNED))


def prefers_signing(header: str | None) -> bool:
    """Return True if the client asks for signed requests and not for credentials.

    Without the header, and if it names both, credentials are vended by warehouses that can, as in Lakekeeper.
    """
    asked = _delegations(header)
    return _SIGNED in asked and _VENDED not in asked


def _delegations(header: str | None) -> set[str]:
    return {part.strip().lower() for part in (header or "").split(",") if part.strip()}


def parse_adopt_header(header: str | None) -> bool:
    """Return True for `true`, and False for `false` or an absent header. Raises 400 for any other value."""
    match (header or "").strip().lower():
        case "true":
            return True
        case "" | "false":
            return False
        case other:
            raise BadRequestException(f"The header X-Lakegate-Adopt must be true or false, not {other[:40]!r}")


def printable(text: str | None) -> str | None:
    """Return at most 256 printable characters of an unverified header."""
    if text is None:
        return None
    return "".join(character for character in text if character.isprintable())[:256]
