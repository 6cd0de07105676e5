# SPDX-License-Identifier: Apache-2.0
"""The page on S3 stores says exactly which characters each store allows."""

from __future__ import annotations

import pytest

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation
from gateway.storage.s3.confinement import StoreKind
from gateway.storage.s3.profile import SCHEME, S3Profile
from tests.store_characters import END, PAGE, PROFILES, ROWS, START, allowed, table


def test_the_page_contains_the_current_table() -> None:
    shown = PAGE.read_text().partition(START)[2].partition(END)[0]
    assert shown.strip() == table().strip(), "run: python -m tests.store_characters"


@pytest.mark.parametrize("kind", PROFILES)
def test_a_store_that_refuses_a_character_also_refuses_it_in_key_prefix_and_policy(kind: StoreKind) -> None:
    profile = PROFILES[kind]
    for _, segments in ROWS:
        for segment in segments:
            if allowed(profile, segment):
                continue
            with pytest.raises(InvalidLocation):
                S3Profile(
                    bucket="lake",
                    region="r",
                    flavor=profile.flavor,
                    endpoint=profile.endpoint,
                    key_prefix=f"a/{segment}/b",
                )


def test_only_the_store_with_escapes_vends_for_pattern_characters() -> None:
    location = SCHEME.parse("s3://lake/base/a*b", escapes_known=True)
    role = "arn:aws:iam::123456789012:role/x"
    aws = S3Profile(bucket="lake", region="eu-west-1", sts_enabled=True, sts_role_arn=role)
    vpc = S3Profile(
        bucket="lake", region="eu-west-1", sts_enabled=True, sts_role_arn=role, endpoint="https://vpce.example.org"
    )
    assert "a${*}b" in aws.downscoping.policy(location, AccessLevel.READ)  # type: ignore[union-attr]  # it vends
    with pytest.raises(InvalidLocation):
        vpc.downscoping.policy(location, AccessLevel.READ)  # type: ignore[union-attr]  # it vends
