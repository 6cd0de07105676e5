# SPDX-License-Identifier: Apache-2.0
"""Parse the request headers `X-Iceberg-Access-Delegation`, `X-Lakegate-Adopt` and `User-Agent`."""

from __future__ import annotations

from gateway.iceberg.errors import BadRequestException

_KNOWN = frozenset({"vended-credentials", "remote-signing", "client-managed"})


def client_manages_storage(header: str | None) -> bool:
    """Return True if `client-managed` is the only value: the client needs no vended credentials.

    Raises 400 for an unknown value, which must not grant more than a known one (LG-DEC-08).
    """
    return _delegations(header) == {"client-managed"}


def prefers_signing(header: str | None) -> bool:
    """Return True if the client asks for signed requests and not for credentials.

    Without the header, and if it names both, credentials are vended by warehouses that can, as in Lakekeeper. Raises
    400 for an unknown value.
    """
    asked = _delegations(header)
    return "remote-signing" in asked and "vended-credentials" not in asked


def _delegations(header: str | None) -> set[str]:
    if header is None or not header.strip():
        return set()
    tokens = {part.strip().lower() for part in header.split(",") if part.strip()}
    unknown = sorted(tokens - _KNOWN)
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise BadRequestException(
            f"The header X-Iceberg-Access-Delegation contains the unknown value {', '.join(unknown)[:80]!r}. "
            f"Possible values: {known}"
        )
    return tokens


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
