# SPDX-License-Identifier: Apache-2.0
"""Storage profiles and credentials in requests."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest

from gateway.iceberg.errors import CatalogError
from gateway.scope.endpoint import EndpointRules, parse_networks, refuse_address
from gateway.scope.errors import (
    InvalidLocation,
    InvalidStorageCredential,
    InvalidStorageProfile,
    StorageTypeNotSupported,
)
from gateway.scope.location import (
    BaseLocation,
    DefaultLayout,
    FullHierarchyLayout,
    Location,
    TabularOnlyLayout,
    default_location,
)
from gateway.scope.profile import STORED, STRICTEST, StorageRules
from gateway.storage.registry import decode_credential, decode_profile
from gateway.storage.s3.credential import S3AccessKey, S3SystemIdentity, S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile, SigningUrlStyle

ROLE = "arn:aws:iam::123456789012:role/vend"


def profile(**fields: Any) -> S3Profile:
    given = {"type": "s3", "bucket": "warehouse", "region": "eu-west-1"} | {
        k.replace("_", "-"): v for k, v in fields.items()
    }
    found = decode_profile(json.dumps(given).encode())
    assert isinstance(found, S3Profile)
    return found


def test_the_defaults_equal_the_reference_except_for_sts() -> None:
    found = profile()
    assert (found.sts_enabled, found.flavor, found.path_style_access) == (False, Flavor.AWS, False)
    assert (found.sts_token_validity_seconds, found.remote_signing_enabled) == (3600, True)
    assert found.remote_signing_url_style is SigningUrlStyle.AUTO
    assert (found.push_s3_delete_disabled, found.allow_alternative_protocols, found.storage_layout) == (
        True,
        False,
        DefaultLayout(),
    )


def test_deprecated_field_aliases_are_accepted() -> None:
    found = profile(flavor="minio", endpoint="http://localhost:9000/", s3_url_detection_mode="path", key_prefix="a/b/")
    assert (found.flavor, found.endpoint, found.key_prefix) == (Flavor.S3_COMPAT, "http://localhost:9000", "a/b")
    assert found.remote_signing_url_style is SigningUrlStyle.PATH


@pytest.mark.parametrize(
    ("endpoint", "path_style"),
    [
        ("http://192.0.2.7:9000", True),
        ("https://[2001:db8::7]:9000", True),
        ("https://s3.example.com", False),
        (None, False),
    ],
)
def test_an_endpoint_at_an_ip_address_uses_path_style(endpoint: str | None, path_style: bool) -> None:
    for given in ({}, {"path_style_access": False}):
        assert profile(endpoint=endpoint, **given).path_style_access is path_style
    assert profile(endpoint=endpoint, path_style_access=True).path_style_access is True


def test_a_profile_round_trips() -> None:
    found = profile(
        sts_enabled=True, sts_role_arn=ROLE, key_prefix="a", sts_session_tags={"team": "x y"},
        storage_layout={"type": "tabular-only", "tabular": "{name}-{uuid}"},
    )  # fmt: skip
    assert decode_profile(msgspec.json.encode(found)) == found


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"key_prefx": "a"}, "key-prefx"),
        ({"key_prefix": "/a"}, "key-prefix"),
        ({"key_prefix": "a" * 897}, "896"),
        ({"key_prefix": "a//b"}, "segment"),
        ({"key_prefix": "a/../b"}, ".."),
        ({"bucket": "Warehouse"}, "bucket"),
        ({"bucket": "warehouse/x"}, "bucket"),
        ({"region": ""}, "region"),
        ({"region": "eu west"}, "region"),
        ({"flavor": "ceph"}, "flavor"),
        ({"flavor": "s3-compat"}, "endpoint"),
        ({"sts_enabled": True}, "sts-role-arn"),
        ({"sts_role_arn": "role"}, "sts-role-arn"),
        ({"assume_role_arn": ROLE + "*"}, "assume-role-arn"),
        ({"aws_kms_key_arn": "arn:aws:kms:eu-west-1:123456789012:alias/x"}, "alias"),
        ({"aws_kms_key_arn": "arn:aws:kms:eu-west-1:123456789012:key/*"}, "aws-kms-key-arn"),
        ({"sts_token_validity_seconds": 899}, "900"),
        ({"sts_token_validity_seconds": 43201}, "43200"),
        ({"sts_session_tags": {"a": "b" * 257}}, "sts-session-tags"),
        ({"s3_url_detection_mode": "path", "remote_signing_url_style": "auto"}, "alias"),
        ({"storage_layout": {"type": "tabular-only", "tabular": "{name}"}}, "{uuid}"),
        ({"storage_layout": {"type": "tabular-only", "tabular": "../{uuid}"}}, "tabular"),
        ({"storage_layout": {"type": "full-hierarchy", "namespace": "{name}", "tabular": "{uuid}"}}, "namespace"),
        ({"endpoint": 5}, "endpoint"),
    ],
)
def test_the_error_names_the_wrong_field(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(CatalogError) as refused:
        profile(**fields)
    assert refused.value.code == 400 and word in str(refused.value).lower()


@pytest.mark.parametrize("kind", ["stackit", "onelake"])
def test_errors_for_unsupported_types_list_the_supported_ones(kind: str) -> None:
    with pytest.raises(StorageTypeNotSupported, match="Supported types: s3"):
        decode_profile(json.dumps({"type": kind}).encode())


def test_a_stored_profile_of_a_package_that_is_missing_names_its_type() -> None:
    with pytest.raises(StorageTypeNotSupported, match="'s4'"):
        decode_profile(b'{"type":"s4"}')


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"type":["s3"]}'])
def test_an_invalid_profile_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidStorageProfile):
        decode_profile(data)


@pytest.mark.threat("LG-DEC-05")
@pytest.mark.parametrize(
    "endpoint",
    [
        "http://169.254.169.254", "http://169.254.170.2:80", "http://[fe80::1]", "http://[fd00:ec2::254]", "http://2852039166",
        "http://0xa9fea9fe", "http://0251.0376.0251.0376", "http://169.254.43518", "http://[::ffff:169.254.169.254]",
        "http://[64:ff9b::a9fe:a9fe]", "http://[2002:a9fe:a9fe::]", "http://metadata.google.internal", "http://0.0.0.0",
        "http://metadata.google.internal.", "http://100.100.100.200", "http://168.63.129.16", "http://224.0.0.1", "http://[::]",
        "http://[::a9fe:a9fe]", "http://240.0.0.1", "http://[fec0::1]", "http://[feff::1]",
        "http://169.254.169.254.", "file:///etc/passwd", "gopher://host", "host:9000", "http://user@host", "http://host/path",
        "http://host?x", "http://host#x", "http://", "http://ho st", "http://host:99999", "http://h%6fst", "http://host\\x",
        "http://a..b", "http://127.1", "http://ⅰ.example",
    ],
)  # fmt: skip
def test_metadata_service_and_malformed_endpoints_are_refused(endpoint: str) -> None:
    for field in ("endpoint", "sts_endpoint"):
        with pytest.raises(InvalidStorageProfile):
            profile(**{field: endpoint})


_INNER = (
    "127.0.0.1", "127.9.9.9", "localhost", "[::1]", "10.1.2.3", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1",
    "[fc00::1]", "[fd12:3456::1]", "a.localhost", "[::ffff:10.0.0.1]", "[::ffff:127.0.0.1]", "[64:ff9b::a00:1]",
    "[64:ff9b:1::a00:1]", "[64:ff9b:1::808:808]", "[64:ff9b:1:a00:0:100::]", "[2002:a00:1::]",
    "[2001:0:0:0:0:0:f5ff:fffe]", "[3fff::1]", "[3fff:fff:ffff::1]",
)  # fmt: skip


def _named(host: str) -> bytes:
    document = {"type": "s3", "bucket": "warehouse", "region": "r", "endpoint": f"http://{host}:9000"}
    return json.dumps(document).encode()


def _decoded(host: str, rules: StorageRules = STORED) -> S3Profile:
    found = decode_profile(_named(host), rules=rules)
    assert isinstance(found, S3Profile)
    return found


@pytest.mark.threat("LG-DEC-05")
@pytest.mark.parametrize("host", _INNER)
def test_loopback_and_private_addresses_need_an_allowed_network(host: str) -> None:
    assert _decoded(host).endpoint == f"http://{host}:9000"  # a stored profile is checked at its use
    with pytest.raises(InvalidStorageProfile, match="LAKEGATE__STORAGE_ENDPOINT_NETWORKS"):
        decode_profile(_named(host), rules=STRICTEST)
    other = parse_networks(["10.200.0.0/16", "fd99::/16"])
    with pytest.raises(InvalidStorageProfile):
        decode_profile(_named(host), rules=StorageRules(endpoints=other))


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("127.0.0.1", "127.0.0.0/8"),
        ("localhost", "::1/128"),
        ("10.1.2.3", "10.1.0.0/16"),
        ("[::ffff:10.1.2.3]", "10.1.0.0/16"),
        ("[fd12:3456::1]", "fd12:3456::/32"),
        ("100.64.0.1", "100.64.0.0/10"),
        ("[64:ff9b:1::a00:1]", "64:ff9b:1::/48"),
        ("[64:ff9b:1:808:8:800::]", "64:ff9b:1::/48"),
        ("[3fff::1]", "3fff::/20"),
    ],
)
def test_an_address_of_an_allowed_network_is_accepted(host: str, network: str) -> None:
    assert _decoded(host, StorageRules(endpoints=parse_networks([network]))).endpoint is not None


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "0.0.0.0", "[fe80::1]", "[fec0::1]", "[fd00:ec2::254]", "100.100.100.200",
        "[64:ff9b:1::a9fe:a9fe]", "[64:ff9b:1:a9fe:a9:fe00::]", "[64:ff9b:1:a9:fe:a9fe::]",
        "[64:ff9b:1:0:a9:fea9:fe00::]",
    ],
)  # fmt: skip
def test_metadata_and_link_local_addresses_are_refused_in_allowed_networks(host: str) -> None:
    with pytest.raises(InvalidStorageProfile, match="never allowed"):
        decode_profile(
            _named(host), rules=StorageRules(endpoints=parse_networks(["0.0.0.0/0", "::/0", "169.254.0.0/16"]))
        )


@pytest.mark.parametrize(("public", "private"), [("93.184.216.34", "10.0.0.1"), ("2606:4700::1", "fd00::1")])
def test_public_addresses_alone_need_no_allowed_network(public: str, private: str) -> None:
    refuse_address(public, "endpoint", EndpointRules())
    with pytest.raises(InvalidStorageProfile):
        refuse_address(private, "endpoint", EndpointRules())


@pytest.mark.parametrize("text", ["10.0.0.1/8", "private", "10.0.0.0/33", ""])
def test_an_invalid_network_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="CIDR"):
        parse_networks([text])


def test_a_base_location_without_a_prefix_is_not_a_location() -> None:
    assert profile().base_location() == BaseLocation(SCHEME, "warehouse", ())
    assert not isinstance(profile().base_location(), Location)
    assert profile(key_prefix="a/b").base_location() == Location(SCHEME, "warehouse", ("a", "b"))


def test_only_aws_is_trusted_to_support_policy_escapes() -> None:
    assert profile().escapes_known
    assert not profile(endpoint="https://store.example").escapes_known
    assert not profile(flavor="s3-compat", endpoint="https://store.example").escapes_known


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_the_partition_follows_the_region(region: str, partition: str) -> None:
    assert profile(region=region).partition == partition


def test_a_location_must_lie_below_the_base_and_have_an_allowed_scheme() -> None:
    narrow, wide = profile(key_prefix="base"), profile(key_prefix="base", allow_alternative_protocols=True)
    assert wide.parse_location("s3a://warehouse/base/t") == narrow.parse_location("s3://warehouse/base/t")
    for text in (
        "s3a://warehouse/base/t",
        "s3://warehouse/base",
        "s3://warehouse/base0/t",
        "s3://warehouse2/base/t",
        "s3://warehouse/t",
    ):
        with pytest.raises(InvalidLocation):
            narrow.parse_location(text)


# -- layouts ---------------------------------------------------------------------------------------------------------

ID, NS = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("layout", "path"),
    [
        (DefaultLayout(), f"b/{ID}"),
        (TabularOnlyLayout(tabular="{name}-{uuid}"), f"b/my%20t-{ID}"),
        (FullHierarchyLayout(namespace="{name}-{uuid}", tabular="t{uuid}"), f"b/n-{NS}/t{ID}"),
    ],
)
def test_a_default_location_contains_the_uuid(layout: Any, path: str) -> None:
    base = Location(SCHEME, "warehouse", ("b",))
    assert default_location(base, layout, (("n", NS),), "my t", ID).text == f"s3://warehouse/{path}"


@pytest.mark.threat("LG-LOC-11")
@pytest.mark.parametrize(
    "name", ["*", "${aws:username}", "a/../b", "%2e%2e", "..", "{uuid}", "?", "a\\b", '"', "é", "%252f", "[a]"]
)
def test_no_name_breaks_out_of_its_segment(name: str) -> None:
    base = Location(SCHEME, "warehouse", ("b",))
    location = default_location(base, TabularOnlyLayout(tabular="{name}-{uuid}"), (), name, ID)
    assert len(location.segments) == 2 and location.segments[1].endswith(f"-{ID}")


@pytest.mark.threat("LG-LOC-17")
def test_a_reused_table_name_gets_another_location() -> None:
    base, layout = Location(SCHEME, "warehouse", ("b",)), TabularOnlyLayout(tabular="{name}-{uuid}")
    assert not default_location(base, layout, (), "t", ID).overlaps(default_location(base, layout, (), "t", NS))


# -- credentials -----------------------------------------------------------------------------------------------------


def test_an_access_key_is_read_under_both_names() -> None:
    new = decode_credential(
        b'{"type":"s3","credential-type":"access-key","access-key-id":"AK","secret-access-key":"s3cr3t"}'
    )
    old = decode_credential(
        b'{"type":"s3","credential-type":"access-key","aws-access-key-id":"AK","aws-secret-access-key":"s3cr3t"}'
    )
    assert new == old == S3AccessKey(access_key_id="AK", secret_access_key="s3cr3t")
    assert decode_credential(b'{"type":"s3","credential-type":"aws-system-identity"}') == S3SystemIdentity()


@pytest.mark.parametrize(
    "fields",
    [
        {"credential-type": "s3cr3t"},
        {"credential-type": "access-key", "access-key-id": "AK", "s3cr3t": "x"},
        {"credential-type": "access-key", "access-key-id": "AK", "secret-access-key": "s3cr3t with spaces"},
        {"credential-type": "access-key", "access-key-id": "AK", "secret-access-key": ["s3cr3t"]},
        {"credential-type": "access-key", "access-key-id": "AK"},
        {
            "credential-type": "access-key",
            "secret-access-key": "s3cr3t",
            "aws-secret-access-key": "s3cr3t",
            "access-key-id": "a",
        },
        {"credential-type": "access-key", "access-key-id": "AK", "secret-access-key": "x", "external-id": "s3cr3t "},
        {"type": "s3cr3t"},
    ],
)
def test_credential_errors_never_contain_a_value(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidStorageCredential) as refused:
        decode_credential(json.dumps({"type": "s3"} | fields).encode())
    assert "s3cr3t" not in str(refused.value) and refused.value.__cause__ is None


@pytest.mark.threat("LG-AUT-15")
def test_secrets_are_absent_from_representations() -> None:
    expiry = msgspec.json.decode(b'"2026-11-21T00:00:00Z"', type=S3TemporaryCredential.__annotations__["expires_at"])
    temporary = S3TemporaryCredential(
        access_key_id="AK", secret_access_key="s3cr3t", session_token="t0ken", expires_at=expiry
    )
    for value in (S3AccessKey(access_key_id="AK", secret_access_key="s3cr3t"), temporary):
        for text in (repr(value), str(value), f"{value}", repr([value]), str(list(value.__rich_repr__()))):
            assert "s3cr3t" not in text and "t0ken" not in text and "AK" in text


def test_credential_digests_differ_and_reveal_nothing() -> None:
    one, other = (S3AccessKey(access_key_id="AK", secret_access_key=secret) for secret in ("s3cr3t", "s3cr3u"))
    assert one.digest != other.digest and "s3cr3t" not in one.digest
    assert one.digest == S3AccessKey(access_key_id="AK", secret_access_key="s3cr3t").digest
