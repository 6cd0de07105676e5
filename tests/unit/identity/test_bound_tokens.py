# SPDX-License-Identifier: Apache-2.0
"""Tokens that are bound to a client certificate (RFC 8705), through the cache and to the authenticated caller."""

from __future__ import annotations

import base64
import hashlib
from ipaddress import ip_network
from typing import Any, cast
from urllib.parse import quote

import pytest
from litestar.types import Scope

from gateway.access.actor import Actor
from gateway.api.authentication import Authentication
from gateway.identity.binding import KeyBinding, ProofMethod, binding_of
from gateway.identity.errors import AuthenticationFailed, Refusal
from gateway.identity.possession import CertificateFormat, CertificateHeader, PossessionRules
from gateway.identity.router import OpenIdLink
from gateway.identity.tokens import TokenRules

from .conftest import AUDIENCE, ISSUER, NOW, Provider, b64

PROXY, CLIENT = "10.1.2.3", "192.0.2.7"
CERTIFICATE, OTHER = b"\x30\x82 certificate", b"\x30\x82 another certificate"


class Misses:
    """Counts the verifications of signatures."""

    def __init__(self) -> None:
        self.count = 0

    def count_lookups(self, _: str, *, hits: int, misses: int) -> None:
        self.count += misses


def thumbprint(certificate: bytes) -> dict[str, str]:
    """Return the claim `cnf` for this certificate."""
    return {"x5t#S256": b64(hashlib.sha256(certificate).digest())}


def sent(certificate: bytes) -> tuple[bytes, bytes]:
    """Return the header of RFC 9440."""
    return (b"client-cert", b":" + base64.b64encode(certificate) + b":")


def escaped(certificate: bytes, label: str = "CERTIFICATE") -> tuple[bytes, bytes]:
    """Return the header as nginx writes it."""
    pem = f"-----BEGIN {label}-----\n{base64.encodebytes(certificate).decode()}-----END {label}-----\n"
    return (b"client-cert", quote(pem, safe="").encode())


class Server:
    """The authentication of a process that checks client certificates, for one provider with a cache."""

    def __init__(self, provider: Provider, *, form: CertificateFormat = "rfc9440", required: tuple[str, ...] = ()):
        header = CertificateHeader(b"client-cert", form, (ip_network("10.1.2.0/24"), ip_network("fd00::/64")))
        possession = PossessionRules(header, frozenset(required))
        rules = TokenRules(issuer=ISSUER, audiences=frozenset({AUDIENCE}), proofs=possession.methods)
        self.misses = Misses()
        self.link = OpenIdLink(rules, provider.ring(), entries=10, seconds=60.0, observer=self.misses)
        self.authentication = Authentication(
            verify_any=self.link.verify,
            possession=possession,
            actor_of=lambda token: Actor.user(token.user_id),
            provisioner_of=self.no_provisioner,
        )

    async def no_provisioner(self, _: str) -> Actor | None:
        return None

    async def caller(self, token: str, *headers: tuple[bytes, bytes], peer: str | None = PROXY) -> str:
        """Return the authenticated user, over both entrances."""
        scope = cast(Scope, {"headers": list(headers), "client": None if peer is None else (peer, 40_000)})
        given = [b"Bearer " + token.encode()]
        found = await self.authentication.authenticate(given, scope)
        assert await self.authentication.authenticate_provisioner(given, scope) == found
        return found.id

    async def refusal(self, token: str, *headers: tuple[bytes, bytes], peer: str | None = PROXY) -> str:
        """Return the message of the refusal, which must be counted as one of the proof."""
        with pytest.raises(AuthenticationFailed) as refused:
            await self.caller(token, *headers, peer=peer)
        assert refused.value.reason is Refusal.BINDING
        return refused.value.message


@pytest.fixture
def server(provider: Provider) -> Server:
    return Server(provider)


@pytest.fixture
def bound(provider: Provider) -> str:
    """Return a token that is bound to `CERTIFICATE` and valid for the clock of the machine."""
    return token_of(provider, cnf=thumbprint(CERTIFICATE))


def token_of(provider: Provider, **changes: Any) -> str:
    return provider.token(**({"exp": NOW * 10, "iat": 1.0} | changes))


async def test_a_bound_token_with_its_certificate_is_accepted(server: Server, bound: str) -> None:
    assert await server.caller(bound, sent(CERTIFICATE)) == "oidc~alice"
    assert await server.caller(bound, sent(CERTIFICATE), peer="::ffff:10.1.2.3") == "oidc~alice"
    assert await server.caller(bound, sent(CERTIFICATE), peer="fd00::1") == "oidc~alice"


@pytest.mark.threat("LG-AUT-17")
async def test_a_stolen_token_without_its_certificate_is_refused(server: Server, bound: str) -> None:
    assert "none from a trusted proxy" in await server.refusal(bound)
    assert "none from a trusted proxy" in await server.refusal(bound, (b"client-cert", b""))
    assert "another client certificate" in await server.refusal(bound, sent(OTHER))


@pytest.mark.threat("LG-AUT-17")
async def test_the_proof_is_checked_again_for_a_cached_token(server: Server, bound: str) -> None:
    await server.caller(bound, sent(CERTIFICATE))
    misses = server.misses.count
    await server.refusal(bound)
    await server.refusal(bound, sent(OTHER))
    await server.refusal(bound, sent(CERTIFICATE), peer=CLIENT)
    assert server.misses.count == misses, "the token must come from the cache, or the test proves nothing"


@pytest.mark.threat("LG-AUT-17")
@pytest.mark.parametrize("peer", [CLIENT, "10.1.3.3", "::ffff:192.0.2.7", "fd00:0:0:1::1", "", "proxy", None])
async def test_the_header_of_an_untrusted_peer_is_ignored(server: Server, bound: str, peer: str | None) -> None:
    assert "none from a trusted proxy" in await server.refusal(bound, sent(CERTIFICATE), peer=peer)


@pytest.mark.threat("LG-AUT-17")
async def test_an_address_in_a_header_does_not_make_a_peer_trusted(server: Server, bound: str) -> None:
    claims = [(name, PROXY.encode()) for name in (b"x-forwarded-for", b"x-real-ip", b"forwarded")]
    await server.refusal(bound, sent(CERTIFICATE), *claims, peer=CLIENT)


@pytest.mark.threat("LG-AUT-17")
async def test_a_spoofed_header_beside_the_one_of_the_proxy_is_refused(server: Server, bound: str) -> None:
    for pair in ((CERTIFICATE, OTHER), (OTHER, CERTIFICATE), (CERTIFICATE, CERTIFICATE)):
        assert "several headers" in await server.refusal(bound, *map(sent, pair))
    spelled = (b"Client-Cert", sent(CERTIFICATE)[1])
    assert "several headers" in await server.refusal(bound, spelled, sent(OTHER))
    joined = (b"client-cert", sent(CERTIFICATE)[1] + b", " + sent(OTHER)[1])
    assert "cannot be decoded" in await server.refusal(bound, joined)
    # The underscore makes it another header. Some servers treat both as the same one.
    assert "another client certificate" in await server.refusal(
        bound, (b"client_cert", sent(CERTIFICATE)[1]), sent(OTHER)
    )


@pytest.mark.parametrize(
    "value", [b"x", b"::", b":a:", b":YQ==", b":YQ=:", b":YQ==:;a=1", b":" + b"YWFh" * 9000 + b":"]
)
async def test_a_malformed_certificate_is_refused(server: Server, bound: str, value: bytes) -> None:
    assert "cannot be decoded" in await server.refusal(bound, (b"client-cert", value))


async def test_the_certificate_can_be_url_encoded_pem(provider: Provider, bound: str) -> None:
    server = Server(provider, form="pem")
    assert await server.caller(bound, escaped(CERTIFICATE)) == "oidc~alice"
    assert "another client certificate" in await server.refusal(bound, escaped(OTHER))
    twice = (b"client-cert", escaped(OTHER)[1] + escaped(CERTIFICATE)[1])
    # It blocked the event loop for seconds.
    spaces = (b"client-cert", b"-----BEGIN CERTIFICATE-----" + b" " * 32_000 + b"!")
    for value in (sent(CERTIFICATE), twice, spaces, escaped(CERTIFICATE, "PUBLIC KEY"), (b"client-cert", b"%ff%0")):
        assert "cannot be decoded" in await server.refusal(bound, value)


@pytest.mark.threat("LG-AUT-17")
@pytest.mark.parametrize(
    "confirmation",
    [
        None,
        {},
        "x",
        [],
        {"jkt": b64(hashlib.sha256(CERTIFICATE).digest())},
        {"jwk": {"kty": "EC"}},
        {"kid": "k1"},
        {"x5t": b64(hashlib.sha256(CERTIFICATE).digest())},
        {"x5t#S256": None},
        {"x5t#S256": b64(hashlib.sha256(CERTIFICATE).digest()) + "="},
        {"x5t#S256": b64(CERTIFICATE)},
        thumbprint(CERTIFICATE) | {"jkt": b64(hashlib.sha256(CERTIFICATE).digest())},
    ],
    ids=str,
)
async def test_any_other_binding_is_refused_and_never_ignored(
    provider: Provider, server: Server, confirmation: Any
) -> None:
    token = token_of(provider, cnf=confirmation)
    await server.refusal(token)
    await server.refusal(token, sent(CERTIFICATE))


async def test_a_token_in_a_body_proves_no_key(server: Server, provider: Provider, bound: str) -> None:
    with pytest.raises(AuthenticationFailed, match="only the client itself"):
        await server.authentication.verify(bound)
    assert (await server.authentication.verify(token_of(provider))).user_id == "oidc~alice"


async def test_a_bearer_token_needs_no_certificate(server: Server, provider: Provider) -> None:
    token = token_of(provider)
    assert await server.caller(token) == await server.caller(token, sent(OTHER), peer=CLIENT) == "oidc~alice"


@pytest.mark.threat("LG-AUT-17")
@pytest.mark.parametrize("required", ["oidc~alice", "oidc~*"])
async def test_a_required_binding_refuses_bearer_tokens(provider: Provider, bound: str, required: str) -> None:
    server = Server(provider, required=("oidc~spark", required))
    plain = token_of(provider)
    assert "must be bound" in await server.refusal(plain)
    assert "must be bound" in await server.refusal(plain, sent(CERTIFICATE))
    with pytest.raises(AuthenticationFailed, match="must be bound"):
        await server.authentication.verify(plain)
    assert await server.caller(bound, sent(CERTIFICATE)) == "oidc~alice"


async def test_a_required_binding_applies_to_the_named_user_only(provider: Provider) -> None:
    server = Server(provider, required=("oidc~alic", "oidc~alice2", "other~*"))
    assert await server.caller(token_of(provider)) == "oidc~alice"


async def test_a_server_without_the_settings_refuses_bound_tokens(provider: Provider, bound: str) -> None:
    with pytest.raises(AuthenticationFailed, match="not supported"):
        await OpenIdLink(
            TokenRules(issuer=ISSUER, audiences=frozenset({AUDIENCE})),
            provider.ring(),
            entries=10,
            seconds=60.0,
            observer=Misses(),
        ).verify(bound)


def test_a_thumbprint_fits_its_own_method_only() -> None:
    binding = binding_of({"cnf": thumbprint(CERTIFICATE)}, frozenset(ProofMethod))
    assert binding == KeyBinding(ProofMethod.CERTIFICATE, hashlib.sha256(CERTIFICATE).digest())
    assert binding.fits(ProofMethod.CERTIFICATE, hashlib.sha256(CERTIFICATE).digest())
    assert not binding.fits(ProofMethod.DPOP, hashlib.sha256(CERTIFICATE).digest())
