# SPDX-License-Identifier: Apache-2.0
"""A process that cannot use the active model decides nothing, not even from its caches."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question, Relationships
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.cache import CachedRelationships
from gateway.fga.client import FgaClient
from gateway.fga.compiled import compiled_model
from gateway.fga.grant_checks import GrantCheckedRelationships
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.relationships import FgaRelationships
from gateway.fga.wire import FgaTuple

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize("layer", ["allows", "grants"])
async def test_no_cached_answer_is_used_while_checks_are_blocked(monkeypatch: pytest.MonkeyPatch, layer: str) -> None:
    """An allow can be cached after a switch of the model, and before the process knows that it cannot use the model."""
    blocked, model = FgaClient("http://127.0.0.1:1", "key", ULID, ULID, timeout_s=1), compiled_model()
    alice, table = Actor.user("oidc~alice"), ObjectKey(ObjectType.TABLE, "t")
    containers = tuple(
        ObjectKey(each, "c") for each in (ObjectType.NAMESPACE, ObjectType.WAREHOUSE, ObjectType.PROJECT)
    )
    grant = TupleKey(Principal(PrincipalType.USER, alice.id), "select", table)

    async def get(path: str, kind: Any) -> Any:
        return kind(authorization_model=model)

    async def check(model_id: str, unique: Sequence[FgaTuple], *more: Any) -> set[Any]:
        return {(each.user, each.relation, each.object) for each in unique}

    class Rows:
        async def recorded(self, keys: Sequence[TupleKey]) -> Set[TupleKey]:
            return {grant} & set(keys)

    class Ignored:
        def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
            """Ignore the figures."""

    monkeypatch.setattr(blocked, "get", get)
    monkeypatch.setattr(blocked, "_check_small_batch", check)
    followed = FollowedReaches(blocked)
    plain = FgaRelationships(blocked, followed)
    common: dict[str, Any] = {
        "model_id": lambda: blocked.answers_key,
        "entries": 10,
        "seconds": 60,
        "observer": Ignored(),
    }
    cached: Relationships = CachedRelationships(plain, **common)
    if layer == "grants":
        cached = GrantCheckedRelationships(plain, followed, Rows(), server_id="s", complete=True, **common)
    question = Question(Can.READ_DATA, table, UUID(int=3), inside=containers)
    pin = Pin(UUID(int=1), UUID(int=2), None, ())
    assert await cached.check(alice, [question], now=datetime.now(UTC), pin=pin) == [True]
    blocked.block_checks("the model lacks table#can_drop")
    with pytest.raises(DecisionEngineUnavailable, match="lacks table#can_drop"):
        await cached.check(alice, [question], now=datetime.now(UTC), pin=pin)
    await blocked.aclose()
