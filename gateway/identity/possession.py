# SPDX-License-Identifier: Apache-2.0
"""The proof of possession of bound tokens: a client certificate (RFC 8705).

The proof belongs to the request, not to the token. So it is checked for each request, after the verification of the
token, which can come from a cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.identity.binding import KeyBinding, ProofMethod
from gateway.identity.client_certificate import CertificateHeader
from gateway.identity.errors import AuthenticationFailed, Refusal
from gateway.identity.tokens import VerifiedToken


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
        """Require the proof of a bound token, and a bound token where the settings demand one.

        `request` is None for a token in a body: its sender is not the client of the token, so nothing proves the key.
        Raises `AuthenticationFailed`.
        """
        if token.binding is not None:
            self._require_proof(token.binding, request)
        # An engine proves its own key when it requests a delegated token. The delegated token has another issuer, and
        # is valid for minutes.
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
