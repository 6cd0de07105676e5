# SPDX-License-Identifier: Apache-2.0
"""Credentials for internal work at one location."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import PolicyTooLarge
from gateway.scope.location import Location
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.registry import decode_profile
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.credential import S3AccessKey
from gateway.storage.s3.profile import SCHEME, S3Profile
from gateway.vending.cache import CachedCredentials
from gateway.vending.vendor import SessionIdentity, Vendor
from tests.support.servers.storage_routes import clients

OWN = S3AccessKey(access_key_id="own", secret_access_key="own-secret")
PLACE = SCHEME.parse("s3://lake/base/t/metadata")


def profile(*, sts: bool) -> S3Profile:
    document = {"type": "s3", "bucket": "lake", "region": "eu-west-1", "key-prefix": "base", "sts-enabled": sts}
    found = decode_profile(json.dumps({**document, "sts-role-arn": "arn:aws:iam::123456789012:role/n"}).encode())
    assert isinstance(found, S3Profile)
    return found


class Store:
    """An STS that returns the policy in the credential, or is unavailable."""

    def __init__(self, *, away: bool = False) -> None:
        self._away = away
        self.policies: list[str] = []

    async def assume(self, *, policy: str, session_name: str, **_: Any) -> Any:
        self.policies.append(policy)
        if self._away:
            raise ShortTermCredentialError("away")
        return cast(Any, type("Temporary", (), {"expires_at": None, "name": session_name})())


async def narrowed(store: Store, *, sts: bool) -> Any:
    return await Vendor(clients(store)).narrowed(
        profile=profile(sts=sts),
        profile_version="1",
        credential=OWN,
        location=PLACE,
        level=AccessLevel.READ,
        seconds=3600,
        purpose="register",
    )


async def test_internal_work_uses_a_session_for_its_location() -> None:
    store = Store()
    made = await narrowed(store, sts=True)
    assert made is not OWN
    assert made.name.startswith("register-")
    assert "arn:aws:s3:::lake/base/t/metadata/*" in store.policies[0]
    assert "PutObject" not in store.policies[0]


async def test_without_sts_internal_work_uses_the_warehouse_credential() -> None:
    store = Store()
    assert await narrowed(store, sts=False) is OWN
    assert store.policies == []


async def test_a_failed_session_never_falls_back_to_the_warehouse_credential() -> None:
    with pytest.raises(ShortTermCredentialError):
        await narrowed(Store(away=True), sts=True)


class _Uncounted:
    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        return None


class _LastingStore(Store):
    """An STS whose credentials live for an hour."""

    async def assume(self, *, policy: str, session_name: str, **_: Any) -> Any:
        self.policies.append(policy)
        return cast(Any, type("Temporary", (), {"expires_at": datetime.now(UTC) + timedelta(hours=1)})())


async def _vend(vendor: Vendor, location: Location = PLACE, level: AccessLevel = AccessLevel.READ) -> Any:
    return await vendor.vend(
        profile=profile(sts=True),
        profile_version="1",
        credential=OWN,
        location=location,
        level=level,
        seconds=3600,
        session=SessionIdentity(principal="oidc~ann"),
    )


async def test_a_cached_credential_is_returned_without_a_new_session_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[AccessLevel] = []

    def counted(location: Location, level: AccessLevel, **more: Any) -> str:
        built.append(level)
        return build_session_policy(location, level, **more)

    monkeypatch.setattr("gateway.storage.s3.confinement.build_session_policy", counted)
    store = _LastingStore()
    vendor = Vendor(clients(store), cache=CachedCredentials(entries=10, observer=_Uncounted()))
    first, second = await _vend(vendor), await _vend(vendor)
    assert second.temporary is first.temporary
    assert (len(built), len(store.policies)) == (1, 1)
    other = await _vend(vendor, level=AccessLevel.READ_WRITE)
    assert other.temporary is not first.temporary
    assert built == [AccessLevel.READ, AccessLevel.READ_WRITE], "another level has a policy of its own"
    assert "PutObject" not in store.policies[0] and "PutObject" in store.policies[1]


async def test_a_location_without_a_possible_policy_never_reaches_the_store() -> None:
    store = _LastingStore()
    vendor = Vendor(clients(store), cache=CachedCredentials(entries=10, observer=_Uncounted()))
    deep = SCHEME.parse("s3://lake/base/" + "/".join(["n" * 90] * 10))
    for _ in range(2):
        with pytest.raises(PolicyTooLarge):
            await _vend(vendor, deep)
    assert store.policies == []
