# SPDX-License-Identifier: Apache-2.0
"""The cache of vended credentials."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.scope.credential import AccessLevel
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME
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
    assert minted.access_key_id == "0"


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


@dataclass
class SlowMint(Mint):
    """An STS that answers when `open` is set. It counts the calls that began and those that were cancelled."""

    open: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0
    cancelled: int = 0

    async def make(self) -> S3TemporaryCredential:
        self.begun += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().make()


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_cancelled_request_does_not_cancel_the_requests_that_wait_for_its_credential() -> None:
    mint = SlowMint()
    cache = mint.cache()
    first, second, third = (asyncio.create_task(cache(KEY, mint.make)) for _ in range(3))
    await _turns()
    first.cancel()
    await _turns()
    second.cancel()
    await _turns()
    mint.open.set()
    assert await third is mint.made[0]
    assert first.cancelled() and second.cancelled()
    assert (mint.begun, mint.cancelled) == (1, 0)


async def test_a_creation_without_waiting_requests_is_cancelled_and_not_shared() -> None:
    mint = SlowMint()
    cache = mint.cache()
    both = [asyncio.create_task(cache(KEY, mint.make)) for _ in range(2)]
    await _turns()
    for each in both:
        each.cancel()
    later = asyncio.create_task(cache(KEY, mint.make))
    await _turns()
    mint.open.set()
    assert await later is mint.made[0]
    assert (mint.begun, mint.cancelled) == (2, 1)


async def test_a_failing_store_is_called_twice_for_any_number_of_concurrent_requests() -> None:
    """Requests that waited for the failed creation of another one create the credential once more, together."""
    mint = SlowMint(error=RuntimeError("away"))
    cache = mint.cache()
    waiting = [asyncio.create_task(cache(KEY, mint.make)) for _ in range(10)]
    await _turns()
    mint.open.set()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(each, RuntimeError) for each in ended)
    assert mint.begun == 2
    mint.error = None
    assert await cache(KEY, mint.make) is mint.made[0]


@pytest.mark.threat("LG-DEC-14")
@pytest.mark.parametrize("fails", [False, True])
async def test_a_right_that_is_lost_during_the_wait_gives_no_credential(fails: bool) -> None:
    mint = SlowMint(error=RuntimeError("away") if fails else None)
    cache = mint.cache()
    lost = False

    async def still_allowed() -> None:
        if lost:
            raise PermissionError("taken away")

    first = asyncio.create_task(cache(KEY, mint.make))
    await _turns()
    second = asyncio.create_task(cache(KEY, mint.make, still_allowed))
    await _turns()
    lost = True
    mint.open.set()
    ended = await asyncio.gather(first, second, return_exceptions=True)
    assert isinstance(ended[1], PermissionError)
    assert mint.begun == 1


async def test_waiting_requests_are_revalidated_concurrently() -> None:
    mint = SlowMint()
    cache = mint.cache()
    barrier = asyncio.Barrier(5)
    first = asyncio.create_task(cache(KEY, mint.make))
    await _turns()

    async def together() -> None:
        await barrier.wait()

    others = [asyncio.create_task(cache(KEY, mint.make, together)) for _ in range(5)]
    await _turns()
    mint.open.set()
    async with asyncio.timeout(5):
        vended = await asyncio.gather(first, *others)
    assert len(mint.made) == 1 and all(each is vended[0] for each in vended)


async def test_the_first_request_is_revalidated_before_the_credential_is_created() -> None:
    mint = Mint()
    cache = mint.cache()
    order: list[str] = []

    async def still_allowed() -> None:
        await asyncio.sleep(0)
        order.append("revalidated")

    async def make() -> S3TemporaryCredential:
        order.append("created")
        return await mint.make()

    await cache(KEY, make, still_allowed)
    assert order == ["revalidated", "created"]
