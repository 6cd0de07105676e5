# SPDX-License-Identifier: Apache-2.0
"""Check the proof that the client has the key of a bound token: a client certificate (RFC 8705).

The proxy in front of the gateway verifies that the client has the private key, and sends the certificate in a header.
The gateway only reads the certificate. The proof belongs to the request, not to the token. So it is checked for each
request, even if the token was verified before and is in the cache.
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

from gateway.identity.binding import KeyBinding, ProofMethod
from gateway.identity.errors import AuthenticationFailed, Refusal
from gateway.identity.tokens import VerifiedToken

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

        `peer` is the address of the TCP connection. The header is ignored if that address is outside of the networks of
        the proxies, because any client can write it. Raises `AuthenticationFailed` if the header was sent several times
        or is malformed.
        """
        if not self._is_proxy(peer):
            return None
        values = [value for name, value in headers if name.lower() == self.name]
        # A proxy that forwards a request without a certificate can send an empty value.
        if not values or values == [b""]:
            return None
        if len(values) > 1:
            # The client itself can have sent one of the headers. A proxy must remove such headers before it adds its
            # own.
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


@dataclass(frozen=True, slots=True)
class PresentedRequest:
    """The parts of a request that prove a key. `peer` is the address of its TCP connection; None if it has none."""

    headers: Iterable[tuple[bytes, bytes]]
    peer: str | None


class PossessionRules:
    """The proofs that this server checks, and the identities whose tokens must be bound.

    `required_for` contains user ids, and `<provider>~*` for all users of a provider.
    """

    def __init__(self, certificates: CertificateHeader | None, required_for: frozenset[str]) -> None:
        self._certificates = certificates
        self._required_for = required_for

    @property
    def methods(self) -> frozenset[ProofMethod]:
        """The kinds of proofs that this server checks."""
        return frozenset() if self._certificates is None else frozenset({ProofMethod.CERTIFICATE})

    def require(self, token: VerifiedToken, request: PresentedRequest | None) -> None:
        """Raise `AuthenticationFailed` if a bound token lacks its proof, or if the settings require a bound token and
        it is not bound.

        `request` is None for a token in a body: its sender is not the client of the token, so there is no proof.
        """
        if token.binding is not None:
            self._require_proof(token.binding, request)
        # A token that was delegated to an engine needs no proof here: the engine proved its own key when it requested
        # the token. The delegated token has another issuer, and is valid for minutes.
        elif token.engine is None and not self._required_for.isdisjoint((token.user_id, f"{token.idp_id}~*")):
            raise AuthenticationFailed(
                "the tokens of this identity must be bound to a key of the client (cnf); request a bound token",
                Refusal.BINDING,
            )

    def _require_proof(self, binding: KeyBinding, request: PresentedRequest | None) -> None:
        if request is None:
            raise AuthenticationFailed(
                "the token is bound to a key of its client (cnf), so only the client itself can send it, in the "
                "Authorization header",
                Refusal.BINDING,
            )
        thumbprint = None
        if self._certificates is not None:
            thumbprint = self._certificates.thumbprint(request.headers, request.peer)
        if thumbprint is None:
            raise AuthenticationFailed(
                "the token is bound to a client certificate, and the request has none from a trusted proxy; connect "
                "with the certificate through the proxy for mutual TLS",
                Refusal.BINDING,
            )
        if not binding.fits(ProofMethod.CERTIFICATE, thumbprint):
            raise AuthenticationFailed(
                "the token is bound to another client certificate; connect with the certificate for which the token "
                "was issued",
                Refusal.BINDING,
            )
