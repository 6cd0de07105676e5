# SPDX-License-Identifier: Apache-2.0
"""The policies of a warehouse are proven by the evaluator of its kind of store."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.scope.credential import AccessLevel
from gateway.storage.s3 import confinement
from gateway.storage.s3.confinement import TRAITS
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.vending.scope_proof import prove_locations

_OSS_ROLE = "acs:ram::1234567890123456:role/lake"
_STORES: dict[str, dict[str, Any]] = {
    "aws": {"region": "eu-west-1", "sts_role_arn": "arn:aws:iam::123456789012:role/lake"},
    "compatible": {"region": "local", "endpoint": "https://store.example.org", "flavor": Flavor.S3_COMPAT},
    "r2": {
        "region": "auto",
        "endpoint": f"https://{'a' * 32}.r2.cloudflarestorage.com",
        "flavor": Flavor.S3_COMPAT,
    },
    "oss": {
        "region": "cn-hangzhou",
        "endpoint": "https://s3.oss-cn-hangzhou.aliyuncs.com",
        "flavor": Flavor.S3_COMPAT,
        "path_style_access": False,
        "sts_role_arn": _OSS_ROLE,
    },
}


def _profile(store: str) -> S3Profile:
    return S3Profile(bucket="lake", key_prefix="base", sts_enabled=True, **_STORES[store])


@pytest.mark.parametrize("store", _STORES)
def test_every_level_that_the_store_has_is_proven(store: str) -> None:
    profile = _profile(store)
    report = prove_locations(profile, count=40, seed=7)
    assert report is not None and report.violations == ()
    assert report.policies >= 20 * len(TRAITS[profile.kind].levels)


@pytest.mark.parametrize("store", _STORES)
def test_a_policy_for_more_than_the_location_is_no_proof(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = _profile(store)
    base = profile.base_location()
    inner, outer = base.child("a", "t", escapes_known=False), base.child("a", escapes_known=False)
    assert confinement.prove(profile, inner, AccessLevel.READ, ()) == []
    too_wide = confinement.policy_builder(profile)
    monkeypatch.setattr(confinement, "policy_builder", lambda _: lambda _, level: too_wide(outer, level))
    assert confinement.prove(profile, inner, AccessLevel.READ, ()) != []
