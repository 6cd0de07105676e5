# SPDX-License-Identifier: Apache-2.0
"""Profiles and properties of warehouses in Google Cloud Storage, and refusals of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import AccessLevel
from gateway.scope.endpoint import StoreAddresses
from gateway.scope.errors import InvalidLocation
from gateway.scope.profile import STORED, STRICTEST, Downscoping, NoVending
from gateway.storage.errors import StorageDenied, StorageUnavailable
from gateway.storage.gcs.credential import GcsSystemIdentity, GcsToken
from gateway.storage.gcs.profile import SCHEME, GcsProfile
from gateway.storage.provider import ClientOptions, StorageClient, StorageClients
from gateway.storage.registry import credential_kind, decode_credential, decode_profile, encode_credential, open_clients
from gateway.vending.vendor import BelowCredentialFloor, NoCredentials, SessionIdentity, Vended, Vendor
from tests.support.servers.gcs_emulator import google_tokens, service_account_key
from tests.support.servers.storage_servers import serving

_TOKEN = GcsToken(token="t0ken", expires_at=datetime(2026, 11, 21, 12, tzinfo=UTC))


def profile(**more: Any) -> GcsProfile:
    document = {"type": "gcs", "bucket": "lake-1", "key-prefix": "wh"}
    document |= {name.replace("_", "-"): value for name, value in more.items()}
    found = decode_profile(json.dumps(document).encode(), rules=STRICTEST)
    assert isinstance(found, GcsProfile)
    return found


@contextmanager
def client(url: str, *, tokens: str | None = None) -> Iterator[StorageClient]:
    clients = open_clients(ClientOptions(addresses={"gcs": StoreAddresses(files=url, tokens=tokens)}, total_seconds=8))
    yield clients.of(profile())
    clients.close()


def test_the_defaults_are_those_of_the_reference_system() -> None:
    found = profile(key_prefix="wh/", storage_layout=None)
    assert found == profile() and found.sts_enabled
    assert decode_profile(msgspec.json.encode(found)) == found
    downscoping = found.downscoping
    assert isinstance(downscoping, Downscoping)
    # The token exchange has no parameter for a lifetime.
    assert (downscoping.seconds, downscoping.shortest_seconds) == (3600, 3600)
    assert isinstance(profile(sts_enabled=False).downscoping, NoVending)


@pytest.mark.parametrize(
    "fields",
    [
        {"bucket": "Lake"},
        {"bucket": "la"},
        {"bucket": "10.0.0.1"},
        {"bucket": "goog-lake"},
        {"bucket": "my-google-lake"},
        {"bucket": "a/b"},
        {"key_prefix": "/wh"},
        {"key_prefix": "a//b"},
        {"key_prefix": "a" * 897},
        {"endpoint": "https://attacker.example"},
        {"sts_enabled": "yes"},
    ],
)
def test_a_wrong_profile_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as refused:
        profile(**fields)
    assert refused.value.code == 400


def test_credentials_round_trip_and_state_their_kind() -> None:
    key = {"type": "gcs", "credential-type": "service-account-key", "key": service_account_key()}
    for given in (key, {"type": "gcs", "credential-type": "gcp-system-identity"}):
        found = decode_credential(json.dumps(given).encode(), rules=STORED)
        assert decode_credential(encode_credential(found)) == found
        assert credential_kind(found) == given["credential-type"]


@pytest.mark.threat("LG-AUT-15")
@pytest.mark.parametrize(
    "given",
    [
        {"credential-type": "service-account-key", "key": "s3cr3t"},
        {"credential-type": "service-account-key", "key": {"private_key": "s3cr3t"}},
        {"credential-type": "service-account-key"},
        {"credential-type": "s3cr3t"},
        {"credential-type": "service-account-key", "key": {}, "s3cr3t": 1},
        {"credential-type": "gcp-system-identity"},
    ],
)
def test_a_wrong_credential_is_refused_without_its_values(given: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as refused:
        decode_credential(json.dumps({"type": "gcs", **given}).encode(), rules=STRICTEST)
    assert refused.value.code == 400 and "s3cr3t" not in refused.value.message


@pytest.mark.threat("LG-LOC-01")
@pytest.mark.parametrize(
    "text",
    [
        "gs://lake-1/wh",
        "gs://lake-1/wh0/t",
        "gs://lake-2/wh/t",
        "gs://lake-1/wh/../t",
        "gs://lake-1/wh/.well-known/t",
        "gs://lake-1/wh/t#1",
        "gs://lake-1/wh/t\r\n",
        "s3://lake-1/wh/t",
        "gcs://lake-1/wh/t",
    ],
)
def test_a_location_outside_of_the_warehouse_or_with_a_reserved_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidLocation):
        profile().parse_location(text)


def test_properties_have_the_names_of_every_client() -> None:
    from pyiceberg import io

    found = profile().client_properties(_TOKEN, refresh_endpoint="v1/w/namespaces/n/tables/t/credentials")
    assert found == {
        "gcs.oauth2.token": "t0ken",
        "gcs.oauth2.token-expires-at": "1795262400000",
        "expiration-time": "1795262400000",
        "gcs.oauth2.refresh-credentials-endpoint": "v1/w/namespaces/n/tables/t/credentials",
        "gcs.oauth2.refresh-credentials-enabled": "true",
    }
    assert {io.GCS_TOKEN, io.GCS_TOKEN_EXPIRES_AT_MS} <= found.keys()
    assert profile().client_properties(None, refresh_endpoint="v1/x") == {}
    named = profile().client_properties(msgspec.structs.replace(_TOKEN, project="p-1"), refresh_endpoint=None)
    assert named["gcs.project-id"] == "p-1" and "gcs.oauth2.refresh-credentials-endpoint" not in named


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_is_reported_as_such_for_every_request(status: int) -> None:
    with serving(status, body=b"<Error>s3cr3t</Error>") as server, client(server.url) as found:
        for attempt in (
            found.files.put(profile(), _TOKEN, "wh/a", b"x"),
            found.files.get(profile(), _TOKEN, "wh/a", 10),
            found.files.list(profile(), _TOKEN, "wh/", 1),
            found.files.delete(profile(), _TOKEN, ["wh/a"]),
        ):
            with pytest.raises(StorageDenied) as denied:
                await attempt
            assert "s3cr3t" not in denied.value.message and "t0ken" not in denied.value.message


async def test_an_outage_of_the_token_service_is_an_outage_and_no_refusal() -> None:
    document = {"type": "gcs", "credential-type": "service-account-key", "key": service_account_key()}
    own = decode_credential(json.dumps(document).encode())
    with serving(200) as server, client(server.url, tokens="http://127.0.0.1:9") as found:
        with pytest.raises(StorageUnavailable):
            await found.files.list(profile(), own, "wh/", 1)
        assert server.seen == []


async def test_a_system_identity_is_not_used_unless_the_operator_allows_it() -> None:
    with serving(200) as server, client(server.url) as found:
        with pytest.raises(StorageDenied, match="gcp-system-identity"):
            await found.files.get(profile(), GcsSystemIdentity(), "wh/a", 5)
        assert server.seen == []


async def test_a_shorter_limit_than_an_hour_gives_no_token_and_the_reason() -> None:
    """A token for a shorter time cannot be made, and a longer one would outlive the grant."""
    document = {"type": "gcs", "credential-type": "service-account-key", "key": service_account_key()}
    own = decode_credential(json.dumps(document).encode())
    with google_tokens() as (url, seen), client(url, tokens=url) as found:
        vendor = Vendor(StorageClients({"gcs": found}))

        async def vend(seconds: int) -> Vended | NoCredentials:
            return await vendor.vend(
                profile=profile(),
                profile_version="1",
                credential=own,
                location=SCHEME.parse("gs://lake-1/wh/t1"),
                level=AccessLevel.READ,
                seconds=seconds,
                session=SessionIdentity(principal="oidc~ann"),
            )

        with pytest.raises(BelowCredentialFloor, match="at most 3599 seconds.*3600 seconds"):
            await vend(3599)
        assert seen == []
        made = await vend(86400)
        assert isinstance(made, Vended) and made.prefix == "gs://lake-1/wh/t1/"
        assert made.expires_at <= datetime.now(UTC) + timedelta(seconds=3600)


async def test_missing_files_count_as_deleted_and_the_others_are_deleted() -> None:
    with serving(404) as server, client(server.url) as found:
        await found.files.delete(profile(), _TOKEN, [f"wh/{number}" for number in range(40)])
        assert {path.rpartition("%2F")[2] for _, path, _ in server.seen} == {str(number) for number in range(40)}
