# SPDX-License-Identifier: Apache-2.0
"""Several providers at once: each token is verified by exactly one of them."""

import asyncio
import json
from typing import Any

import pytest
from joserfc.jwk import Key, RSAKey

from gateway.identity.discovery import discovery_url
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.keys import KeyRing
from gateway.identity.router import OpenIdLink, TokenRouter
from gateway.identity.tokens import TokenRules

from .conftest import NOW, Clock, Documents, Provider, b64

ONE, OTHER = "https://one.example", "https://other.example/tenant"


class Unobserved:
    def count_lookups(self, memory: str, *, hits: int, misses: int) -> None:
        """Ignored here."""


class Party:
    """A provider with its own issuer, documents and keys."""

    def __init__(self, id: str, issuer: str, key: Key, *, now: Clock, **rules: Any) -> None:
        self.id, self.issuer = id, issuer
        self.signer = Provider(key)
        self.documents = Documents({})
        self.publish(key)
        self.keys = KeyRing(issuer, self.documents, clock=now)
        found: dict[str, Any] = {"audiences": frozenset({"lakegate"})} | rules
        self.link = OpenIdLink(
            TokenRules(idp_id=id, issuer=issuer, **found), self.keys, entries=10, seconds=60.0, observer=Unobserved()
        )

    def publish(self, key: Key) -> None:
        """Publish only this key."""
        uri = f"{self.issuer}/keys"
        self.documents.table[discovery_url(self.issuer)] = json.dumps({"issuer": self.issuer, "jwks_uri": uri}).encode()
        self.documents.table[uri] = json.dumps({"keys": [key.as_dict(private=False)]}).encode()

    def token(self, *, key: Key | None = None, kid: str = "k1", **changes: Any) -> str:
        """Return a token of this provider that is valid for a thousand years."""
        claims = {"exp": NOW * 10, "iat": 1.0} | {"iss": self.issuer, "aud": "lakegate", "sub": "alice"} | changes
        return self.signer.sign(claims, key=key, kid=kid)


@pytest.fixture(scope="module")
def other_key() -> Key:
    """Return another key with the key id of the first provider."""
    return RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})


@pytest.fixture
def now() -> Clock:
    return Clock(1_000.0)


@pytest.fixture
def one(provider_key: Key, now: Clock) -> Party:
    return Party("one", ONE, provider_key, now=now)


@pytest.fixture
def other(other_key: Key, now: Clock) -> Party:
    return Party("other", OTHER, other_key, now=now)


@pytest.fixture
def router(one: Party, other: Party) -> TokenRouter:
    return TokenRouter([one.link, other.link])


async def _refused(router: TokenRouter, token: str) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        await router.verify(token)
    return str(caught.value)


async def test_the_same_subject_and_key_id_at_two_providers_are_two_users(
    router: TokenRouter, one: Party, other: Party
) -> None:
    found = [(await router.verify(party.token())).user_id for party in (one, other, one)]
    assert found == ["one~alice", "other~alice", "one~alice"]


async def test_a_key_of_one_provider_is_invalid_for_another_with_the_same_key_id(
    router: TokenRouter, one: Party, other: Party, other_key: Key
) -> None:
    forged = one.token(key=other_key)
    assert "signature" in await _refused(router, forged)
    assert other.documents.calls == [], "a token must not be sent to another provider"


async def test_a_token_of_an_unknown_issuer_is_refused_without_a_request(
    router: TokenRouter, one: Party, other: Party
) -> None:
    for issuer in ("https://evil.example", ONE + "/", ONE.upper(), "", None, 7, ["https://one.example"], {"iss": ONE}):
        assert "issuer" in await _refused(router, one.token(iss=issuer))
    assert one.documents.calls == other.documents.calls == []


@pytest.mark.parametrize("token", ["opaque-reference-token", "a.b", "a..c", "a.b.c.d.e", "x" * 20_000, "a.%%.c"])
async def test_text_that_is_not_a_jwt_is_refused_without_a_request(router: TokenRouter, one: Party, token: str) -> None:
    message = await _refused(router, token)
    assert "JWT" in message or "longer" in message
    assert one.documents.calls == []


@pytest.mark.parametrize("claims", [b"[]", b'"text"', b"\xff\xfe", b"[" * 5_000, b"1"])
async def test_claims_that_are_not_an_object_are_refused(router: TokenRouter, claims: bytes) -> None:
    await _refused(router, f"{b64(b'{}')}.{b64(claims)}.{b64(b'x')}")


async def test_an_outage_of_one_provider_affects_only_its_own_users(
    router: TokenRouter, one: Party, other: Party
) -> None:
    one.documents.down = True
    with pytest.raises(IdentityProviderUnavailable):
        await router.verify(one.token())
    assert (await router.verify(other.token())).user_id == "other~alice"
    one.documents.down = False


@pytest.mark.threat("LG-AUT-09")
async def test_expired_keys_of_an_unavailable_provider_are_invalid(
    router: TokenRouter, one: Party, other: Party, now: Clock
) -> None:
    for party in (one, other):
        await router.verify(party.token())
    one.documents.down = True
    now.at += 3_601
    with pytest.raises(IdentityProviderUnavailable):
        await router.verify(one.token(sub="bob"))
    assert (await router.verify(other.token(sub="bob"))).user_id == "other~bob"


async def test_a_cached_token_is_valid_no_longer_than_its_key(router: TokenRouter, one: Party, now: Clock) -> None:
    await router.verify(one.token())
    now.at += 3599
    one.documents.down = True
    token = one.token(jti="verified at the last moment")
    await router.verify(token)
    await router.verify(token)
    now.at += 2
    with pytest.raises(IdentityProviderUnavailable):
        await router.verify(token)
    one.documents.down = False
    now.at += 10
    await router.verify(token)


async def test_many_unknown_keys_cause_one_request_to_their_provider_only(
    router: TokenRouter, one: Party, other: Party, now: Clock
) -> None:
    await router.verify(one.token())
    requested = len(one.documents.calls)
    now.at += 11
    storm = [one.token(kid=f"made-up-{number}") for number in range(200)]
    refusals = await asyncio.gather(*(router.verify(token) for token in storm), return_exceptions=True)
    assert all(isinstance(each, AuthenticationFailed) for each in refusals)
    assert len(one.documents.calls) == requested + 2, "expected one load of the discovery document and of the keys"
    assert other.documents.calls == []
    assert (await router.verify(one.token(sub="bob"))).user_id == "one~bob"


async def test_a_rotated_key_is_valid_at_once_and_the_old_one_invalid(
    router: TokenRouter, one: Party, other: Party, now: Clock, other_key: Key
) -> None:
    old = one.token()
    await router.verify(old)
    await router.verify(other.token())
    requested = len(other.documents.calls)
    new = RSAKey.generate_key(2048, {"kid": "k2", "use": "sig", "alg": "RS256"})
    one.publish(new)
    now.at += 11
    assert (await router.verify(one.token(key=new, kid="k2"))).user_id == "one~alice"
    assert "publish" in await _refused(router, old)
    assert len(other.documents.calls) == requested


def _tenants(key: Key, now: Clock) -> tuple[Party, Party]:
    """Return two applications of one tenant: one issuer, two audiences."""
    first = Party("people", ONE, key, now=now, audiences=frozenset({"lake-people"}))
    second = Party("robots", ONE, key, now=now, audiences=frozenset({"lake-robots"}))
    return first, second


async def test_the_audience_selects_between_two_providers_of_one_issuer(provider_key: Key, now: Clock) -> None:
    first, second = _tenants(provider_key, now)
    router = TokenRouter([first.link, second.link])
    assert (await router.verify(first.token(aud="lake-people"))).user_id == "people~alice"
    assert (await router.verify(first.token(aud=["else", "lake-robots"]))).user_id == "robots~alice"


@pytest.mark.parametrize("audience", [["lake-people", "lake-robots"], [], None, "else", 7, [["lake-people"]], {}])
async def test_a_token_for_both_audiences_or_none_is_refused(provider_key: Key, now: Clock, audience: object) -> None:
    first, second = _tenants(provider_key, now)
    await _refused(TokenRouter([first.link, second.link]), first.token(aud=audience))


def test_indistinguishable_providers_are_refused(provider_key: Key, now: Clock, one: Party) -> None:
    with pytest.raises(ValueError, match="same issuer and the same audience"):
        TokenRouter([one.link, Party("two", ONE, provider_key, now=now).link])
    with pytest.raises(ValueError, match="have the id 'one'"):
        TokenRouter([one.link, Party("one", OTHER, provider_key, now=now).link])
    by_another_spelling = Party("two", OTHER, provider_key, now=now, additional_issuers=frozenset({ONE}))
    with pytest.raises(ValueError, match="same issuer"):
        TokenRouter([one.link, by_another_spelling.link])
