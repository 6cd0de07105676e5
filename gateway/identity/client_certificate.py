# SPDX-License-Identifier: Apache-2.0
"""The client certificate of a request, from the header of a proxy that ends mutual TLS.

The proxy verifies that the client has the private key. The gateway only reads which certificate it was.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final, Literal
from urllib.parse import unquote_to_bytes

from gateway.identity.errors import AuthenticationFailed, Refusal

CertificateFormat = Literal["rfc9440", "pem"]

# RFC 8941 section 3.3.5: a byte sequence is base64 between colons.
_BYTE_SEQUENCE: Final = re.compile(rb":(?P<base64>[A-Za-z0-9+/]+={0,2}):")
# One `\s` only: with `\s+`, the time for many spaces would be quadratic.
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----\s(?P<base64>[A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*")
_MAX_BYTES: Final = 32_768


@dataclass(frozen=True, slots=True)
class CertificateHeader:
    """The header in which proxies of these networks send the client certificate.

    `name` is in lower case. `form` is `rfc9440` (base64 of DER between colons) or `pem` (URL-encoded PEM).
    """

    name: bytes
    form: CertificateFormat
    networks: tuple[IPv4Network | IPv6Network, ...]

    def thumbprint(self, headers: Iterable[tuple[bytes, bytes]], peer: str | None) -> bytes | None:
        """Return the SHA-256 of the client certificate (DER). None if no trusted proxy sent one.

        `peer` is the address of the TCP connection. The header is ignored if it is outside of the networks, because
        any client can write it. Raises `AuthenticationFailed` if the header was sent several times or is malformed.
        """
        if not self._is_proxy(peer):
            return None
        values = [value for name, value in headers if name.lower() == self.name]
        # A proxy that forwards a request without a certificate can send an empty value.
        if not values or values == [b""]:
            return None
        if len(values) > 1:
            # One of them can be the client's own. A proxy must remove those before it adds its header.
            raise AuthenticationFailed(
                "the request has several headers with a client certificate; the proxy must replace those of clients",
                Refusal.BINDING,
            )
        return hashlib.sha256(self._der(values[0])).digest()

    def _is_proxy(self, peer: str | None) -> bool:
        try:
            known = ip_address(peer or "")
        except ValueError:
            return False
        mapped = known.ipv4_mapped if known.version == 6 else None
        return any((mapped or known) in network for network in self.networks)

    def _der(self, value: bytes) -> bytes:
        found = None
        if len(value) <= _MAX_BYTES:
            found = (
                _BYTE_SEQUENCE.fullmatch(value) if self.form == "rfc9440" else _PEM.fullmatch(unquote_to_bytes(value))
            )
        try:
            return base64.b64decode(b"".join(found["base64"].split()), validate=True) if found else _malformed()
        except ValueError:
            return _malformed()


def _malformed() -> bytes:
    raise AuthenticationFailed(
        "the header with the client certificate cannot be decoded; check its format in the settings of proxy and "
        "gateway",
        Refusal.BINDING,
    )
