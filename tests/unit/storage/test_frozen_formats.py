# SPDX-License-Identifier: Apache-2.0
"""Formats in databases, stores and clients: profiles, credentials, session policies, properties, errors.

`python -m tests.unit.storage.test_frozen_formats` writes the file again. Run it for an intended change only: session
policies confine a credential to its table, and stored profiles and credentials must stay readable.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import AccessLevel
from gateway.scope.endpoint import ANY_NETWORK
from gateway.scope.location import Location
from gateway.scope.profile import Downscoping, StorageRules
from gateway.storage.registry import decode_credential, decode_profile, encode_credential
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, S3Profile
from gateway.storage.stored import typed

FROZEN: Final = Path(__file__).with_name("frozen_formats.json")

#: Rules of an operator that allows these networks and nothing else.
_RULES = StorageRules(endpoints=ANY_NETWORK)
_ROLE = "arn:aws:iam::123456789012:role/vend"
_PLAIN = {"type": "s3", "bucket": "warehouse", "region": "eu-west-1"}
_STS = {**_PLAIN, "sts-enabled": True, "sts-role-arn": _ROLE}
_COMPATIBLE = {
    **_STS,
    "flavor": "s3-compat",
    "endpoint": "http://127.0.0.1:9000",
    "path-style-access": True,
    "key-prefix": "base",
}

PROFILES: Final[dict[str, dict[str, Any]]] = {
    "plain": _PLAIN,
    "no prefix, sessions": _STS,
    "prefix": {**_STS, "key-prefix": "base/of/warehouse/"},
    "china": {**_STS, "region": "cn-north-1", "key-prefix": "base"},
    "gov": {**_STS, "region": "us-gov-west-1", "key-prefix": "base"},
    "encrypted": {**_STS, "key-prefix": "b", "aws-kms-key-arn": "arn:aws:kms:eu-west-1:123456789012:key/0b2c"},
    "compatible": _COMPATIBLE,
    "compatible, older names": {
        **_PLAIN,
        "flavor": "minio",
        "endpoint": "https://store.example:9000/",
        "s3-url-detection-mode": "virtual-host",
    },
    "endpoint of aws": {**_STS, "endpoint": "https://S3.example.com", "sts-endpoint": "https://sts.example.com"},
    "cloudflare r2": {
        **_PLAIN,
        "region": "auto",
        "key-prefix": "base",
        "flavor": "s3-compat",
        "endpoint": "https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com",
        "sts-enabled": True,
    },
    "alibaba oss": {
        **_PLAIN,
        "region": "cn-hangzhou",
        "key-prefix": "base",
        "flavor": "s3-compat",
        "endpoint": "https://s3.oss-cn-hangzhou.aliyuncs.com",
        "sts-enabled": True,
        "sts-role-arn": "acs:ram::1234567890123456:role/lake",
    },
    "everything": {
        **_COMPATIBLE,
        "sts-endpoint": "http://127.0.0.1:9001",
        "assume-role-arn": _ROLE,
        "sts-token-validity-seconds": 900,
        "sts-session-tags": {"team": "a b"},
        "remote-signing-enabled": False,
        "remote-signing-url-style": "path",
        "allow-alternative-protocols": True,
        "push-s3-delete-disabled": False,
        "legacy-md5-behavior": True,
        "storage-layout": {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{uuid}"},
    },
}

WRONG_PROFILES: Final[dict[str, Any]] = {
    "text": "s3",
    "no type": {},
    "type s4": {"type": "s4"},
    "type onelake": {"type": "onelake"},
    "type stackit": {"type": "stackit"},
    "unknown field": {**_PLAIN, "key-prefx": "a"},
    "no bucket": {"type": "s3", "region": "r"},
    "bucket in capitals": {**_PLAIN, "bucket": "Warehouse"},
    "bucket of an access point": {**_PLAIN, "bucket": "a--x-s3"},
    "bucket like an address": {**_PLAIN, "bucket": "127.0.0.1"},
    "prefix with dots": {**_PLAIN, "key-prefix": "a/../b"},
    "prefix with a pattern": {**_COMPATIBLE, "key-prefix": "a*"},
    "long prefix": {**_PLAIN, "key-prefix": "a" * 897},
    "slash before the prefix": {**_PLAIN, "key-prefix": "/a"},
    "region": {**_PLAIN, "region": "eu west"},
    "flavor": {**_PLAIN, "flavor": "ceph"},
    "no endpoint": {**_PLAIN, "flavor": "s3-compat"},
    "no role": {**_PLAIN, "sts-enabled": True},
    "role": {**_PLAIN, "sts-role-arn": "role"},
    "alias of a key": {**_PLAIN, "aws-kms-key-arn": "arn:aws:kms:eu-west-1:123456789012:alias/x"},
    "short session": {**_PLAIN, "sts-token-validity-seconds": 899},
    "tags": {**_PLAIN, "sts-session-tags": {"a": "b" * 257}},
    "both names": {**_PLAIN, "s3-url-detection-mode": "path", "remote-signing-url-style": "auto"},
    "endpoint is a number": {**_PLAIN, "endpoint": 5},
    "endpoint of metadata": {**_PLAIN, "endpoint": "http://169.254.169.254"},
    "layout": {**_PLAIN, "storage-layout": {"type": "tabular-only", "tabular": "{name}"}},
}

CREDENTIALS: Final[dict[str, Any]] = {
    "access key": {"credential-type": "access-key", "access-key-id": "AK", "secret-access-key": "secret"},
    "older names": {"credential-type": "access-key", "aws-access-key-id": "AK", "aws-secret-access-key": "secret"},
    "external id": {
        "credential-type": "access-key",
        "access-key-id": "AK",
        "secret-access-key": "secret",
        "external-id": "ext-1",
    },
    "system identity": {"credential-type": "aws-system-identity", "external-id": "ext-1"},
    "another cloud": {"type": "gcs"},
    "cloudflare r2": {
        "credential-type": "cloudflare-r2",
        "access-key-id": "AK",
        "secret-access-key": "secret",
        "token": "t",
        "account-id": "0123456789abcdef0123456789abcdef",
    },
    "alibaba oss": {
        "credential-type": "aliyun-oss",
        "access-key-id": "AK",
        "secret-access-key": "secret",
        "external-id": "ext-1",
    },
    "another kind": {"credential-type": "stackit"},
    "no kind": {},
    "wrong type": {"type": "s4"},
    "no secret": {"credential-type": "access-key", "access-key-id": "AK"},
    "unknown field": {"credential-type": "access-key", "access-key-id": "AK", "secret": "x"},
    "blank": {"credential-type": "access-key", "access-key-id": "AK", "secret-access-key": "a b"},
    "text": "s3",
}

LOCATIONS: Final = (
    *("s3://warehouse/base/ns/t1", "s3a://warehouse/base/t1/", "S3N://warehouse/base/Straße", "s3://warehouse/t1"),
    *("s3://warehouse/base/t*${x}", "s3://warehouse/base/of/warehouse/é", "s3://warehouse/base", "s3://warehouse"),
    *("s3://other/base/t1", "s3://warehouse/base//t", "s3://warehouse/base/../t", "s3://warehouse/base/a%2e%2e"),
    *("gs://warehouse/base/t1", "file:///base/t1", "/base/t1", "s3://Warehouse/base/t1", "s3://warehouse/b/t 1"),
    *("s3://warehouse/base/a?b", "s3://warehouse/b/" + "x" * 1024, "s3://user@warehouse/base/t", "s3:/warehouse/b"),
)

_TABLES = (
    ("base", "ns", "t1"),
    ("base", "a*b", "${x}"),
    ("base", "中"),
    tuple(f"{level:030}" for level in range(14)),
    ("$" * 40,) * 14,
)


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except CatalogError as refused:
        return {"type": refused.type, "code": refused.code, "message": refused.message}


def _of_profile(profile: S3Profile) -> dict[str, Any]:
    temporary = S3TemporaryCredential(
        access_key_id="ASIA",
        secret_access_key="secret",
        session_token="token",
        expires_at=datetime(2026, 11, 21, 12, tzinfo=UTC),
    )
    return {
        "stored": msgspec.json.encode(profile).decode(),
        "base": profile.base_location().prefix_text,
        "base key": profile.base_location().overlap_key,
        "locations": {text: _outcome(lambda text=text: profile.parse_location(text).text) for text in LOCATIONS[:10]},  # type: ignore[misc]  # a default
        "policies": {
            f"{'/'.join(path)} {level}": _outcome(lambda path=path, level=level: policy(profile, path, level))  # type: ignore[misc]  # a default
            for path in _TABLES
            for level in AccessLevel
        },
        "no contact": profile.no_contact,
        "properties": profile.client_properties(None, refresh_endpoint="v1/refresh"),
        "properties with credentials": profile.client_properties(temporary, refresh_endpoint="v1/refresh"),
    }


def policy(profile: S3Profile, path: tuple[str, ...], level: AccessLevel) -> str:
    location = Location(SCHEME, profile.bucket, path)
    if isinstance(profile.downscoping, Downscoping):
        return profile.downscoping.policy(location, level)
    return build_session_policy(
        location,
        level,
        escapes_known=profile.escapes_known,
        kms_key_arn=profile.aws_kms_key_arn,
        partition=profile.partition,
    )


def stored_credential(given: Any) -> Any:
    document = {"type": "s3", **given} if isinstance(given, dict) else given
    credential = decode_credential(json.dumps(document).encode())
    return {
        "stored": encode_credential(credential).decode(),
        "digest": credential.digest,
    }


def parsed(text: str, *, escapes_known: bool) -> Any:
    location = SCHEME.parse(text, escapes_known=escapes_known)
    return {"text": location.text, "key": location.overlap_key, "above": [each.text for each in location.ancestors()]}


def as_of_now() -> dict[str, Any]:
    return {
        "profiles": {
            name: _of_profile(typed(decode_profile(json.dumps(given).encode()), S3Profile))
            for name, given in PROFILES.items()
        },
        "wrong profiles": {
            name: _outcome(partial(decode_profile, json.dumps(given).encode(), rules=_RULES))
            for name, given in WRONG_PROFILES.items()
        },
        "credentials": {name: _outcome(partial(stored_credential, given)) for name, given in CREDENTIALS.items()},
        "locations": {
            text: [_outcome(partial(parsed, text, escapes_known=known)) for known in (True, False)]
            for text in LOCATIONS
        },
    }


@pytest.mark.parametrize("part", ["profiles", "wrong profiles", "credentials", "locations"])
def test_stored_and_published_formats_are_unchanged(part: str) -> None:
    frozen = json.loads(FROZEN.read_text())
    assert as_of_now()[part] == frozen[part]


def test_the_frozen_formats_include_a_fitting_and_an_oversized_policy() -> None:
    policies = [
        policy for each in json.loads(FROZEN.read_text())["profiles"].values() for policy in each["policies"].values()
    ]
    assert len([policy for policy in policies if isinstance(policy, str)]) > 60
    assert {policy["type"] for policy in policies if isinstance(policy, dict)} == {"InvalidLocation", "PolicyTooLarge"}


if __name__ == "__main__":
    FROZEN.write_text(json.dumps(as_of_now(), indent=1, ensure_ascii=False) + "\n")
