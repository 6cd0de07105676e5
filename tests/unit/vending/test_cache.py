# SPDX-License-Identifier: Apache-2.0
"""The cache of vended credentials."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.scope.level import AccessLevel
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.location import SCHEME
from gateway.vending.cache import CachedCredentials, VendKey, uncached

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
KEY = VendKey(
    principal="oidc~alice",
    role=None,
    context="",
    session_name="alice-0123456789abcdef",
    location=SCHEME.parse("s3://lake/base/t"),
    level=AccessLevel.READ,
    profile_version="w/1",
    credential_digest="d",
    seconds=3600,
)


@dataclass
class Mint:
    """An STS that mints credentials valid for an hour, and counts them."""

    now: datetime = NOON
    made: list[S3TemporaryCredential] = field(default_factory=list)
    error: Exception | None = None

    async def make(self) -> S3TemporaryCredential:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        number = str(len(self.made))
        self.made.append(
            S3TemporaryCredential(
                access_key_id=number,
                secret_access_key="s",
                session_token="t",
                expires_at=self.now + timedelta(hours=1),
            )
        )
        return self.made[-1]

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...

    def cache(self) -> CachedCredentials:
        return CachedCredentials(entries=10, observer=self, clock=lambda: self.now)


async def test_a_credential_is_reused_for_half_of_its_lifetime() -> None:
    mint = Mint()
    cache = mint.cache()
    first = await cache(KEY, mint.make)
    mint.now = NOON + timedelta(minutes=30)
    assert await cache(KEY, mint.make) is first
    mint.now = NOON + timedelta(minutes=30, seconds=1)
    assert await cache(KEY, mint.make) is not first


OTHERS: dict[str, Any] = {
    "principal": "oidc~bob",
    "role": "r",
    "context": "c",
    "session_name": "bob-0123456789abcdef",
    "location": SCHEME.parse("s3://lake/base/u"),
    "level": AccessLevel.READ_WRITE_DELETE,
    "profile_version": "w/2",
    "credential_digest": "e",
    "seconds": 900,
}


def test_every_field_of_the_cache_key_is_tested() -> None:
    assert set(OTHERS) == set(VendKey.__dataclass_fields__)


@pytest.mark.threat("LG-DEC-14")
@pytest.mark.parametrize("part", OTHERS)
async def test_requests_that_differ_in_any_key_field_share_no_credential(part: str) -> None:
    """Invariant 6."""
    mint = Mint()
    cache = mint.cache()
    first = await cache(KEY, mint.make)
    assert await cache(replace(KEY, **{part: OTHERS[part]}), mint.make) is not first


async def test_concurrent_requests_mint_once() -> None:
    mint = Mint()
    cache = mint.cache()
    vended = await asyncio.gather(*(cache(KEY, mint.make) for _ in range(20)))
    assert len(mint.made) == 1
    assert all(one is vended[0] for one in vended)


@pytest.mark.threat("LG-DIS-07")
async def test_a_failure_is_not_cached_and_the_next_request_retries() -> None:
    mint = Mint(error=RuntimeError("refused"))
    cache = mint.cache()
    refused = asyncio.create_task(cache(KEY, mint.make))
    with pytest.raises(RuntimeError):
        await refused
    mint.error = None
    minted = await cache(KEY, mint.make)
    assert isinstance(minted, S3TemporaryCredential) and minted.access_key_id == "0"


async def test_one_refused_request_does_not_refuse_concurrent_ones() -> None:
    """The first of two requests is refused just before minting; the second was admitted and mints."""
    mint = Mint()
    cache = mint.cache()

    async def refused() -> S3TemporaryCredential:
        await asyncio.sleep(0)
        raise PermissionError("taken away")

    first, second = await asyncio.gather(cache(KEY, refused), cache(KEY, mint.make), return_exceptions=True)
    assert isinstance(first, PermissionError)
    assert isinstance(second, S3TemporaryCredential)


async def test_a_credential_below_half_of_its_lifetime_is_not_reused() -> None:
    mint = Mint(now=NOON - timedelta(minutes=40))
    cache = CachedCredentials(entries=10, observer=mint, clock=lambda: NOON)
    await cache(KEY, mint.make)
    await cache(KEY, mint.make)
    assert len(mint.made) == 2


async def test_a_request_waiting_for_a_shared_credential_is_revalidated() -> None:
    mint = Mint()
    cache = mint.cache()

    async def lost() -> None:
        raise PermissionError("taken away")

    first, second = await asyncio.gather(cache(KEY, mint.make), cache(KEY, mint.make, lost), return_exceptions=True)
    assert isinstance(first, S3TemporaryCredential)
    assert isinstance(second, PermissionError)


@pytest.mark.parametrize("kept", [True, False])
async def test_no_credential_is_minted_after_a_failed_revalidation(kept: bool) -> None:
    mint = Mint()
    cache = mint.cache() if kept else uncached

    async def lost() -> None:
        raise PermissionError("taken away")

    with pytest.raises(PermissionError):
        await cache(KEY, mint.make, lost)
    assert mint.made == []
