# SPDX-License-Identifier: Apache-2.0
"""What a client asks for with `X-Iceberg-Access-Delegation`."""

from __future__ import annotations

from gateway.iceberg.errors import BadRequestException

_KNOWN = frozenset({"vended-credentials", "remote-signing", "client-managed"})


def client_manages_storage(header: str | None) -> bool:
    """True when the client wants no credentials: `client-managed`, and nothing else.

    Without the header, and where only remote signing is asked for, credentials are vended, as in the reference system.
    Raises 400 for a value nobody knows: it must not be taken for something wider (LG-DEC-08).
    """
    if header is None or not header.strip():
        return False
    asked = {part.strip().lower() for part in header.split(",") if part.strip()}
    unknown = sorted(asked - _KNOWN)
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise BadRequestException(
            f"X-Iceberg-Access-Delegation does not know {', '.join(unknown)[:80]!r}: known are {known}"
        )
    return asked == {"client-managed"}
