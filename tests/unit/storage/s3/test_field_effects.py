# SPDX-License-Identifier: Apache-2.0
"""Effects of profile fields on the requests that the gateway itself sends to a store."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from gateway.scope.errors import InvalidLocation
from gateway.storage.s3.credential import S3AccessKey
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.storage.s3.stores import address
from tests.support.servers.storage_routes import object_files
from tests.support.servers.storage_servers import Request, recording

KEYS = S3AccessKey(access_key_id="AK", secret_access_key="s3cr3t")
KMS = "arn:aws:kms:eu-west-1:123456789012:key/1-a"


def profile(url: str, **fields: Any) -> S3Profile:
    given: dict[str, Any] = {"bucket": "lake", "region": "r", "endpoint": url, "flavor": Flavor.S3_COMPAT}
    return S3Profile(**(given | {"path_style_access": True} | fields))


def empty(_: Request) -> tuple[int, str, str]:
    return 200, "application/xml", ""


@pytest.mark.parametrize("legacy", [True, False])
async def test_bulk_deletions_have_an_md5_digest_with_and_without_the_legacy_field(legacy: bool) -> None:
    def answer(_: Request) -> tuple[int, str, str]:
        return 200, "application/xml", "<DeleteResult><Deleted><Key>a/b</Key></Deleted></DeleteResult>"

    with recording(answer) as (url, seen):
        await object_files().delete(profile(url, legacy_md5_behavior=legacy), KEYS, ["a/b"])
    ((method, path, headers, body),) = seen
    assert (method, path) == ("POST", "/lake?delete")
    assert headers["content-md5"] == base64.b64encode(hashlib.md5(body.encode()).digest()).decode()  # noqa: S324 - S3


@pytest.mark.parametrize("key", ["a%20b/c", "a+b", "a%b", "ü/é", "a'b(c)!", "a=b&c@d:e,f;g", "a~b^c`d|e<f>"])
async def test_the_key_of_a_request_is_the_text_of_the_location(key: str) -> None:
    from urllib.parse import unquote

    with recording(empty) as (url, seen):
        await object_files().put(profile(url), KEYS, key, b"x")
    ((method, path, _, _),) = seen
    assert method == "PUT" and unquote(path.partition("?")[0]) == f"/lake/{key}"


async def test_a_kms_key_is_sent_with_new_files() -> None:
    with recording(empty) as (url, seen):
        await object_files().put(profile(url, aws_kms_key_arn=KMS), KEYS, "a", b"x")
        await object_files().put(profile(url), KEYS, "a", b"x")
    encrypted, plain = (headers for _, _, headers, _ in seen)
    assert encrypted["x-amz-server-side-encryption"] == "aws:kms"
    assert encrypted["x-amz-server-side-encryption-aws-kms-key-id"] == KMS
    assert not any("encryption" in name for name in plain)


def test_path_style_and_virtual_hosts_differ_in_the_address() -> None:
    url = "https://store.example.org"
    assert address(profile(url)) == (url, False)
    assert address(profile(url, path_style_access=False)) == ("https://lake.store.example.org", True)
    assert address(profile(url, path_style_access=False, bucket="la.ke")) == (url, False)


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3A"])
def test_alternative_protocols_denote_the_same_location_if_allowed(scheme: str) -> None:
    url = "https://store.example.org"
    legacy = profile(url, key_prefix="base", allow_alternative_protocols=True)
    assert legacy.parse_location(f"{scheme}://lake/base/t").text == "s3://lake/base/t"
    with pytest.raises(InvalidLocation, match="scheme"):
        profile(url, key_prefix="base").parse_location(f"{scheme}://lake/base/t")
