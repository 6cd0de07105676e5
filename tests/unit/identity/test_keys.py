# SPDX-License-Identifier: Apache-2.0
"""Provider keys during rotation, load and outages."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import Key

from gateway.identity.discovery import discovery_url
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.keys import MAX_KEYS, KeyRing, parse_jwks

from .conftest import ISSUER, JWKS_URI, Documents, Provider

LOADS = [discovery_url(ISSUER), JWKS_URI]
TIMES = {"refetch_seconds": 10.0, "refresh_seconds": 300.0, "max_age_seconds": 3600.0}


async def test_keys_are_loaded_once_for_many_requests(provider: Provider) -> None:
    ring = provider.ring()
    for _ in range(50):
        assert (await ring.candidates("k1", "RS256"))[0].kid == "k1"
    assert provider.documents.calls == LOADS


async def test_concurrent_requests_share_one_key_load(provider: Provider) -> None:
    provider.documents.gate = asyncio.Event()
    ring = provider.ring()
    waiting = [asyncio.create_task(ring.candidates("k1", "RS256")) for _ in range(100)]
    await asyncio.sleep(0)
    provider.documents.gate.set()
    assert all(keys[0].kid == "k1" for keys in await asyncio.gather(*waiting))
    assert provider.documents.calls == LOADS


async def test_a_cancelled_request_does_not_cancel_the_shared_key_load(provider: Provider) -> None:
    provider.documents.gate = asyncio.Event()
    ring = provider.ring()
    first, second = (asyncio.create_task(ring.candidates("k1", "RS256")) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0)
    provider.documents.gate.set()
    assert (await second)[0].kid == "k1"
    assert first.cancelled()


async def test_a_rotated_key_is_loaded_at_its_first_token(provider: Provider, new_key: Callable[..., Key]) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.publish(provider.key, new_key("P-256", kid="k2"))
    provider.monotonic.at += 10
    assert (await ring.candidates("k2", "ES256"))[0].kid == "k2"
    assert (await ring.candidates("k1", "RS256"))[0].kid == "k1"


async def test_a_withdrawn_provider_key_is_invalid_after_the_next_load(
    provider: Provider, new_key: Callable[..., Key]
) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.publish(new_key("P-256", kid="k2"))
    provider.monotonic.at += 10
    await ring.candidates("k2", "ES256")
    with pytest.raises(AuthenticationFailed):
        await ring.candidates("k1", "RS256")


async def test_many_unknown_keys_cause_few_fetches(provider: Provider) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    for second in range(60):
        provider.monotonic.at += 1
        answers = await asyncio.gather(
            *(ring.candidates(f"k-{second}-{n}", "RS256") for n in range(20)), return_exceptions=True
        )
        assert all(isinstance(answer, AuthenticationFailed) for answer in answers)
    assert len(provider.documents.calls) == 2 * (1 + 6), "expected one load at the start and one every ten seconds"


async def test_a_wrong_algorithm_for_a_known_key_causes_no_fetch(provider: Provider) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.monotonic.at += 100
    for algorithm in ("ES256", "PS256", "EdDSA"):
        with pytest.raises(AuthenticationFailed):
            await ring.candidates("k1", algorithm)
    assert provider.documents.calls == LOADS


@pytest.mark.threat("LG-AUT-09")
async def test_verification_without_any_key_is_unavailable_with_a_retry_time(provider: Provider) -> None:
    provider.documents.down = True
    ring = provider.ring(**TIMES)
    with pytest.raises(IdentityProviderUnavailable) as caught:
        await ring.candidates("k1", "RS256")
    assert (caught.value.code, caught.value.retry_after_s) == (503, 10)
    assert "idp.example" in caught.value.reason
    assert "idp.example" not in str(caught.value), "the error must not name the provider"


async def test_a_provider_that_starts_later_is_found(provider: Provider) -> None:
    provider.documents.down = True
    ring = provider.ring(**TIMES)
    for _ in range(5):
        with pytest.raises(IdentityProviderUnavailable):
            await ring.candidates("k1", "RS256")
    assert len(provider.documents.calls) == 1, "an unavailable provider must be requested once in ten seconds"
    provider.documents.down = False
    provider.monotonic.at += 10
    assert await ring.candidates("k1", "RS256")


@pytest.mark.threat("LG-AUT-09")
async def test_old_keys_work_through_an_outage_until_their_maximum_age(provider: Provider) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.documents.down = True
    provider.monotonic.at += 3599
    assert await ring.candidates("k1", "RS256")
    provider.monotonic.at += 1
    with pytest.raises(IdentityProviderUnavailable):
        await ring.candidates("k1", "RS256")


async def test_an_unknown_key_during_an_outage_is_unavailable_and_not_invalid(provider: Provider) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.documents.down = True
    provider.monotonic.at += 10
    for _ in range(3):  # the second and third fall into the pause between two loads
        with pytest.raises(IdentityProviderUnavailable):
            await ring.candidates("rotated", "RS256")
        assert await ring.candidates("k1", "RS256")


async def test_a_background_key_refresh_does_not_delay_requests(provider: Provider) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.documents.gate = asyncio.Event()  # a provider that does not respond
    provider.monotonic.at += 300
    async with asyncio.timeout(60):
        assert await ring.candidates("k1", "RS256")
    await asyncio.sleep(0)
    assert len(provider.documents.calls) == 3
    await ring.aclose()


async def test_the_age_of_keys_counts_from_the_start_of_a_load(provider: Provider) -> None:
    provider.documents.gate = asyncio.Event()
    ring = provider.ring(**TIMES)
    slow = asyncio.create_task(ring.candidates("k1", "RS256"))
    await asyncio.sleep(0.01)
    provider.monotonic.at += 1800
    provider.documents.gate.set()
    await slow
    provider.documents.down = True
    provider.monotonic.at += 1800
    with pytest.raises(IdentityProviderUnavailable):
        await ring.candidates("k1", "RS256")


@pytest.mark.parametrize("issuer", [ISSUER + "/", ISSUER.upper(), "https://evil.example", ""])
async def test_a_discovery_document_of_another_issuer_provides_no_keys(provider: Provider, issuer: str) -> None:
    provider.publish(provider.key, issuer=issuer)
    with pytest.raises(IdentityProviderUnavailable) as caught:
        await provider.ring().candidates("k1", "RS256")
    assert "another issuer" in caught.value.reason
    assert provider.documents.calls == LOADS[:1], "the keys of a foreign discovery document must not be requested"


@pytest.mark.parametrize(
    "jwks_uri",
    [
        "http://idp.example/keys",
        "http://127.0.0.1:9/keys",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "//idp.example/keys",
        "https://user:pw@idp.example/keys",
        "https://user@idp.example/keys",
        "https://idp.example/ke ys",
        "https://idp.example/keys#other",
        "https://idp.example\\@evil.example/keys",
        "",
    ],
)
async def test_keys_at_an_unprotected_address_are_not_fetched(provider: Provider, jwks_uri: str) -> None:
    provider.publish(provider.key, jwks_uri=jwks_uri)
    with pytest.raises(IdentityProviderUnavailable):
        await provider.ring().candidates("k1", "RS256")
    assert jwks_uri not in provider.documents.calls


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"null",
        b"<html>",
        b'{"keys": 7}',
        b'{"keys": []}',
        b'{"keys": [7]}',
        b'{"keys": [{}]}',
        b"[" * 100_000,
    ],
)
async def test_a_broken_key_set_keeps_the_loaded_keys(provider: Provider, document: bytes) -> None:
    ring = provider.ring(**TIMES)
    await ring.candidates("k1", "RS256")
    provider.documents.table[JWKS_URI] = document
    provider.monotonic.at += 10
    with pytest.raises(IdentityProviderUnavailable):
        await ring.candidates("k2", "RS256")
    assert await ring.candidates("k1", "RS256")


@pytest.mark.parametrize("document", [b"", b"[]", b'{"issuer": 7}', b'{"issuer": "x"}', b"\xff", b"{" * 100_000])
async def test_a_broken_discovery_document_is_an_outage(provider: Provider, document: bytes) -> None:
    provider.documents.table[LOADS[0]] = document
    with pytest.raises(IdentityProviderUnavailable):
        await provider.ring().candidates("k1", "RS256")


def test_an_unreadable_key_does_not_invalidate_the_key_set(provider: Provider) -> None:
    good = provider.key.as_dict(private=False)
    odd: list[dict[str, Any]] = [
        {"kty": "PQ", "kid": "new"},
        {"kty": "RSA", "n": "!", "e": "AQAB"},
        {"kty": "RSA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "X25519", "x": "AA"},
        good | {"kid": 7},
        good | {"x5c": "text"},
        good | {"use": "enc"},
        {name: value for name, value in good.items() if name != "use"} | {"key_ops": ["encrypt"]},
        provider.key.as_dict(private=True),
    ]
    keys = parse_jwks(json.dumps({"keys": [*odd, good]}).encode())
    assert [key.kid for key in keys] == ["k1"]


def test_an_oversized_key_set_is_refused(provider: Provider) -> None:
    with pytest.raises(ValueError, match="at most 100"):
        parse_jwks(json.dumps({"keys": [provider.key.as_dict(private=False)] * (MAX_KEYS + 1)}).encode())


async def test_without_a_key_id_only_a_single_fitting_key_is_tried(
    provider: Provider, new_key: Callable[..., Key]
) -> None:
    provider.publish(provider.key, new_key("P-256", kid="ec"))
    assert (await provider.ring().candidates(None, "ES256"))[0].kid == "ec"
    provider.publish(provider.key, new_key("P-256", kid="a"), new_key("P-256", kid="b"))
    with pytest.raises(AuthenticationFailed, match="has no key id"):
        await provider.ring().candidates(None, "ES256")


@pytest.mark.parametrize(
    "issuer",
    [
        "http://idp.example",
        "http://10.0.0.1",
        "http://localhost.evil.example",
        "idp.example",
        "ftp://x",
        "",
        "https://",
    ],
)
def test_a_provider_that_cannot_be_reached_safely_cannot_be_configured(issuer: str) -> None:
    with pytest.raises(ValueError, match="the identity provider's URI"):
        KeyRing(issuer, Documents({}))


@pytest.mark.parametrize(
    "issuer", ["http://localhost:8080/realms/x", "http://127.0.0.1:9", "http://[::1]:9", "https://idp.example/"]
)
def test_a_provider_on_this_machine_or_behind_tls_can_be_configured(issuer: str) -> None:
    assert not KeyRing(issuer, Documents({})).believable  # accepted, and nothing is loaded from it yet


def test_inconsistent_key_lifetimes_are_refused() -> None:
    with pytest.raises(ValueError, match="refetch_seconds"):
        KeyRing(ISSUER, Documents({}), refresh_seconds=10, max_age_seconds=5)


async def test_health_reports_an_outage_before_any_request_fails(provider: Provider) -> None:
    ring = provider.ring(**TIMES)
    await ring.check()
    await ring.check()
    assert provider.documents.calls == LOADS
    provider.documents.down = True
    provider.monotonic.at += 300
    with pytest.raises(IdentityProviderUnavailable):
        await ring.check()
    provider.documents.down = False
    provider.monotonic.at += 10
    await ring.check()
