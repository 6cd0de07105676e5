# SPDX-License-Identifier: Apache-2.0
"""Credentials for internal work at one location."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from gateway.scope.level import AccessLevel
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.registry import decode_profile
from gateway.storage.s3.credential import S3AccessKey
from gateway.storage.s3.location import SCHEME
from gateway.storage.s3.profile import S3Profile
from gateway.vending.vendor import Vendor
from tests.storage_routes import clients

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
