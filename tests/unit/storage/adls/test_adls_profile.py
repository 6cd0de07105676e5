# SPDX-License-Identifier: Apache-2.0
"""Profiles, credentials and properties of warehouses in Azure storage."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from gateway.iceberg.errors import CatalogError
from gateway.scope.errors import InvalidLocation, InvalidStorageCredential, InvalidStorageProfile
from gateway.scope.profile import STORED, STRICTEST, Downscoping, NoVending, StorageRules
from gateway.storage.adls.credential import AdlsSas
from gateway.storage.adls.profile import AdlsProfile
from gateway.storage.registry import (
    credential_kind,
    credential_type,
    decode_credential,
    decode_profile,
    encode_credential,
    parse_location,
    require_same_provider,
)
from gateway.storage.s3.credential import S3AccessKey

_GUID = "11111111-1111-1111-1111-111111111111"
_GIVEN: dict[str, Any] = {"type": "adls", "account-name": "account1", "filesystem": "lake", "key-prefix": "wh"}
_SHARED = {"type": "az", "credential-type": "shared-access-key", "key": "a2tr" * 16}
_CLIENT = {
    "type": "az",
    "credential-type": "client-credentials",
    "client-id": _GUID,
    "tenant-id": _GUID,
    "client-secret": "s3cr3t~",
}


def profile(rules: StorageRules = STRICTEST, **more: Any) -> AdlsProfile:
    document = _GIVEN | {name.replace("_", "-"): value for name, value in more.items()}
    found = decode_profile(json.dumps(document).encode(), rules=rules)
    assert isinstance(found, AdlsProfile)
    return found


def test_the_defaults_and_the_alias_are_those_of_the_reference_system() -> None:
    found = profile()
    assert (found.host, found.authority_host) == ("dfs.core.windows.net", "https://login.microsoftonline.com")
    assert (found.sas_enabled, found.sas_token_validity_seconds) == (True, 3600)
    assert not found.allow_alternative_protocols
    assert profile(type="azdls") == found
    assert json.loads(msgspec.json.encode(profile(type="azdls")))["type"] == "adls"
    assert decode_profile(msgspec.json.encode(found)) == found
    assert profile(host=None, authority_host=None, sas_token_validity_seconds=None, storage_layout=None) == found
    assert profile(key_prefix="wh/", authority_host="https://login.microsoftonline.com/") == found


@pytest.mark.parametrize(
    "fields",
    [
        {"account_name": "Account"},
        {"account_name": "a"},
        {"filesystem": "a--b"},
        {"filesystem": "-ab"},
        {"key_prefix": "/wh"},
        {"key_prefix": "a/../b"},
        {"key_prefix": "a" * 513},
        {"key_prefix": "a%2fb"},
        {"host": "attacker.example"},
        {"host": "dfs.core.windows.net.attacker.example"},
        {"host": "dfs.core.windows.net/x"},
        {"host": "dfs.core.windows.net:444"},
        {"host": "dfs.fabric.microsoft.com"},
        {"authority_host": "https://attacker.example"},
        {"authority_host": "http://login.microsoftonline.com"},
        {"sas_token_validity_seconds": 59},
        {"sas_token_validity_seconds": 604801},
        {"account_nam": "x"},
    ],
)
def test_a_wrong_profile_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as refused:
        profile(**fields)
    assert refused.value.code == 400


def test_a_further_host_needs_the_operators_setting_and_limits_the_lifetime() -> None:
    host = "dfs.fabric.microsoft.com"
    listed = StorageRules(hosts=(host,))
    found = profile(listed, host=host, sas_token_validity_seconds=86400)
    assert isinstance(found.downscoping, Downscoping) and found.downscoping.seconds == 3600
    stored = decode_profile(msgspec.json.encode(found), rules=STORED)
    with pytest.raises(InvalidStorageProfile, match="LAKEGATE__STORAGE__ADLS_HOSTS"):
        stored.check(STRICTEST)
    stored.check(listed)


def test_credentials_have_the_type_az() -> None:
    for given in (_SHARED, _CLIENT, {"type": "az", "credential-type": "azure-system-identity"}):
        found = decode_credential(json.dumps(given).encode(), rules=STORED)
        assert json.loads(encode_credential(found)) == given
        assert credential_kind(found) == given["credential-type"]
        require_same_provider(profile(), found)
    assert credential_type(profile()) == "az" and credential_kind(None) is None
    with pytest.raises(InvalidStorageCredential, match="'s3'.*'adls'"):
        require_same_provider(profile(), S3AccessKey(access_key_id="AK", secret_access_key="x"))
    with pytest.raises(InvalidStorageCredential, match="must be 's3' or 'gcs' or 'az'"):
        decode_credential(json.dumps(_SHARED | {"type": "adls"}).encode())


@pytest.mark.threat("LG-AUT-15")
@pytest.mark.parametrize(
    "given",
    [
        _SHARED | {"key": "s3cr3t"},
        _CLIENT | {"client-id": "s3cr3t"},
        _CLIENT | {"tenant-id": "https://s3cr3t.example/"},
        _CLIENT | {"client-secret": "s3cr3t\n"},
        _CLIENT | {"client-secret": ""},
        _CLIENT | {"s3cr3t": "x"},
        {"type": "az", "credential-type": "s3cr3t"},
        {"type": "az", "credential-type": "azure-system-identity"},
    ],
)
def test_a_wrong_credential_is_refused_without_its_values(given: dict[str, str]) -> None:
    with pytest.raises(CatalogError) as refused:
        decode_credential(json.dumps(given).encode(), rules=STRICTEST)
    assert refused.value.code == 400 and "s3cr3t" not in refused.value.message


def test_alternative_protocols_name_the_same_location() -> None:
    text = "abfss://lake@account1.dfs.core.windows.net/wh/t1"
    wide = profile(allow_alternative_protocols=True)
    for other in (
        "abfs://lake@account1.dfs.core.windows.net/wh/t1/",
        "wasbs://lake@account1.blob.core.windows.net/wh/t1",
        "WASB://lake@account1.blob.core.windows.net/wh/t1",
    ):
        assert wide.parse_location(other).text == text
        with pytest.raises(InvalidLocation, match="Allowed schemes: abfss$"):
            profile().parse_location(other)
    assert parse_location(text) == profile().parse_location(text)


@pytest.mark.threat("LG-LOC-01")
@pytest.mark.parametrize(
    "text",
    [
        "abfss://lake@account1.dfs.core.windows.net/wh",
        "abfss://lake@account1.dfs.core.windows.net/wh0/t",
        "abfss://lake@account2.dfs.core.windows.net/wh/t",
        "abfss://other@account1.dfs.core.windows.net/wh/t",
        "abfss://lake@account1.dfs.core.windows.net@attacker.example/wh/t",
        "abfss://lake@account1.dfs.core.windows.net.attacker.example/wh/t",
        "abfss://lake@account1.blob.core.windows.net/wh/t",
        "abfss://lake@account1.dfs.core.windows.net/wh/t%41",
        "abfss://lake@account1.dfs.core.windows.net/wh/t./f",
        "abfss://lake@account1.dfs.core.windows.net/wh/../t",
        "abfss:///wh/t",
        "gs://lake/wh/t",
    ],
)
def test_a_location_outside_of_the_warehouse_or_with_two_readings_is_refused(text: str) -> None:
    with pytest.raises(InvalidLocation):
        profile().parse_location(text)


def test_properties_have_the_names_of_every_client() -> None:
    temporary = AdlsSas(token="sv=1&sig=x", expires_at=datetime(2026, 11, 21, 12, tzinfo=UTC))
    found = profile().client_properties(temporary, refresh_endpoint="v1/w/namespaces/n/tables/t/credentials")
    assert found == {
        "adls.account-name": "account1",
        "adls.sas-token.account1.dfs.core.windows.net": "sv=1&sig=x",
        "adls.sas-token-expires-at-ms.account1.dfs.core.windows.net": "1795262400000",
        "adls.sas-token.account1": "sv=1&sig=x",
        "adls.sas-token-expires-at-ms.account1": "1795262400000",
        "adls.sas-token": "sv=1&sig=x",
        "expiration-time": "1795262400000",
        "adls.refresh-credentials-endpoint": "v1/w/namespaces/n/tables/t/credentials",
        "adls.refresh-credentials-enabled": "true",
    }
    assert profile().client_properties(None, refresh_endpoint="v1/x") == {"adls.account-name": "account1"}
    gov = profile(host="dfs.core.usgovcloudapi.net").client_properties(None, refresh_endpoint=None)
    assert gov["adls.account-host"] == "account1.blob.core.usgovcloudapi.net"
    assert gov["adls.blob-storage-authority"] == ".blob.core.usgovcloudapi.net"


def test_pyiceberg_reads_the_client_property_names() -> None:
    from pyiceberg import io

    temporary = AdlsSas(token="sv=1&sig=x", expires_at=datetime(2026, 11, 21, 12, tzinfo=UTC))
    found = profile(host="dfs.core.usgovcloudapi.net").client_properties(temporary, refresh_endpoint=None)
    expected = {io.ADLS_ACCOUNT_NAME, io.ADLS_SAS_TOKEN, io.ADLS_ACCOUNT_HOST}
    assert expected | {io.ADLS_BLOB_STORAGE_AUTHORITY, io.ADLS_DFS_STORAGE_AUTHORITY} <= found.keys()


def test_signatures_can_be_switched_off() -> None:
    assert isinstance(profile(sas_enabled=False).downscoping, NoVending)


def test_fields_that_move_a_warehouse_are_named() -> None:
    before = profile()
    for field, value in (("account-name", "account2"), ("filesystem", "other"), ("key-prefix", "x")):
        changed: dict[str, Any] = {field: value}
        assert before.moved(profile(**changed)) == [field]
    assert before.moved(profile(host="dfs.core.chinacloudapi.cn")) == ["host"]
    assert before.moved(profile(sas_enabled=False)) == []
