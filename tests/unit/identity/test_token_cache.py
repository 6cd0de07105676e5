# SPDX-License-Identifier: Apache-2.0
"""The cache of verified tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateway.identity.cache import CachedTokens
from gateway.identity.errors import AuthenticationFailed
from gateway.identity.tokens import VerifiedToken


@dataclass
class Setting:
    """A verifier that accepts the tokens in `good`, and its clocks."""

    good: set[str] = field(default_factory=lambda: {"token"})
    verified: list[str] = field(default_factory=list)
    generation: int = 1
    wall: float = 1000.0
    steady: float = 0.0
    meanwhile: Any = None

    async def verify(self, token: str) -> VerifiedToken:
        self.verified.append(token)
        if self.meanwhile is not None:
            self.meanwhile()
        if token not in self.good:
            raise AuthenticationFailed("no")
        return cast(VerifiedToken, Claims(expires_at=2000.0))

    def count_lookups(self, memory: str, *, hits: int, misses: int) -> None: ...

    def memory(self, *, seconds: float = 300.0, entries: int = 10) -> CachedTokens:
        return CachedTokens(
            self.verify,
            generation=lambda: self.generation,
            entries=entries,
            seconds=seconds,
            observer=self,
            clock=lambda: self.wall,
            monotonic=lambda: self.steady,
        )


@dataclass(frozen=True)
class Claims:
    expires_at: float


async def test_a_valid_token_is_verified_once() -> None:
    here = Setting()
    memory = here.memory()
    first = await memory.verify("token")
    assert await memory.verify("token") is first
    assert here.verified == ["token"]


async def test_a_refused_token_is_verified_each_time() -> None:
    here = Setting()
    memory = here.memory()
    for _ in range(2):
        with pytest.raises(AuthenticationFailed):
            await memory.verify("forged")
    assert here.verified == ["forged", "forged"]


@pytest.mark.parametrize(
    "change",
    [
        {"wall": 2000.0},
        {"wall": 2500.0},
        {"generation": 2},
        {"steady": 300.0},
    ],
    ids=["token expires now", "token expired earlier", "key change of the provider", "maximum cache time"],
)
async def test_a_token_past_its_cache_time_is_verified_again(change: dict[str, Any]) -> None:
    here = Setting()
    memory = here.memory()
    await memory.verify("token")
    here.good.clear()
    for name, value in change.items():
        setattr(here, name, value)
    with pytest.raises(AuthenticationFailed):
        await memory.verify("token")


async def test_a_token_within_its_cache_time_is_not_verified_again() -> None:
    here = Setting()
    memory = here.memory()
    await memory.verify("token")
    here.wall, here.steady = 1999.9, 299.9
    await memory.verify("token")
    assert here.verified == ["token"]


async def test_a_token_verified_during_a_key_change_is_not_cached() -> None:
    here = Setting()
    memory = here.memory()

    def exchange() -> None:
        here.generation += 1

    here.meanwhile = exchange
    await memory.verify("token")
    here.meanwhile = None
    here.good.clear()
    with pytest.raises(AuthenticationFailed):
        await memory.verify("token")


async def test_a_token_with_one_changed_character_is_not_found_in_the_cache() -> None:
    here = Setting()
    memory = here.memory()
    await memory.verify("token")
    with pytest.raises(AuthenticationFailed):
        await memory.verify("tokeN")


async def test_a_cache_time_of_zero_verifies_each_token() -> None:
    here = Setting()
    memory = here.memory(seconds=0)
    await memory.verify("token")
    await memory.verify("token")
    assert here.verified == ["token", "token"]


async def test_the_cache_does_not_store_the_token() -> None:
    here = Setting(good={"eyJ.secret.signature"})
    memory = here.memory()
    await memory.verify("eyJ.secret.signature")
    assert len(memory._known) == 1
    assert "secret" not in repr(dict(memory._known))


async def test_the_cache_is_bounded() -> None:
    here = Setting(good={str(n) for n in range(50)})
    memory = here.memory(entries=10)
    for n in range(50):
        await memory.verify(str(n))
    assert len(memory._known) == 10
