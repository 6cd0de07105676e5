# SPDX-License-Identifier: Apache-2.0
"""The operator's addresses of stores."""

from __future__ import annotations

import pytest

from gateway import settings
from gateway.scope.endpoint import StoreAddresses, parse_store_address
from gateway.settings import SettingsError


@pytest.mark.parametrize(
    ("text", "account", "parsed"),
    [
        ("https://storage-x.p.googleapis.com", False, "https://storage-x.p.googleapis.com"),
        ("https://store.example:8443/path/", False, "https://store.example:8443/path"),
        ("http://127.0.0.1:4443", False, "http://127.0.0.1:4443"),
        ("http://[::1]:4443", False, "http://[::1]:4443"),
        ("https://{account}.blob.example", True, "https://{account}.blob.example"),
        ("http://127.0.0.1:10000/{account}", True, "http://127.0.0.1:10000/{account}"),
    ],
)
def test_addresses_are_accepted_over_tls_or_on_loopback(text: str, account: bool, parsed: str) -> None:
    assert parse_store_address(text, account=account) == parsed


@pytest.mark.threat("LG-DEC-05")
@pytest.mark.parametrize(
    ("text", "account", "why"),
    [
        ("http://store.example", False, "https://"),
        ("http://10.0.0.1:4443", False, "https://"),
        ("http://localhost:4443", False, "https://"),
        ("http://127.0.0.1.example", False, "https://"),
        ("ftp://127.0.0.1", False, "https://"),
        ("https://user@store.example", False, "only"),
        ("https://store.example/?x=1", False, "only"),
        ("https://store.example/#x", False, "only"),
        ("https://", False, "only"),
        ("https://store.example:x", False, "valid URL"),
        ("https://blob.example", True, "{account}"),
        ("https://{account}.{account}.example", True, "{account}"),
        ("https://{account}.blob.example", False, ""),
    ],
)
def test_other_addresses_are_refused_with_the_reason(text: str, account: bool, why: str) -> None:
    if not why:
        assert parse_store_address(text) == text  # a host name that no server has
        return
    with pytest.raises(ValueError, match=why.replace("{", r"\{")):
        parse_store_address(text, account=account)


def test_only_plain_http_is_an_unencrypted_store() -> None:
    assert StoreAddresses(files="http://127.0.0.1:1").unencrypted
    assert not StoreAddresses(files="https://127.0.0.1:1").unencrypted
    assert not StoreAddresses(tokens="http://127.0.0.1:1").unencrypted


def test_settings_name_the_addresses_by_provider() -> None:
    given = {
        "LAKEGATE__STORAGE__GCS_ENDPOINT": "http://127.0.0.1:1/",
        "LAKEGATE__STORAGE__GCS_TOKEN_ENDPOINT": "https://tokens.example",
        "LAKEGATE__STORAGE__ADLS_ENDPOINT": "https://{account}.blob.example",
        "LAKEGATE__STORAGE__ADLS_HOSTS": "dfs.fabric.microsoft.com",
    }
    found = settings.load(given)
    assert found.storage.addresses() == {
        "gcs": StoreAddresses(files="http://127.0.0.1:1", tokens="https://tokens.example"),
        "adls": StoreAddresses(files="https://{account}.blob.example"),
    }
    assert found.storage_rules().hosts == ("dfs.fabric.microsoft.com",)
    # The embedded stack passes them on to its gateway.
    passed = {f"LAKEGATE__{name}": value for name, value in found.storage.variables().items()}
    assert passed == given
    assert settings.load({}).storage.variables() == {} and settings.load({}).storage_rules().hosts == ()


@pytest.mark.parametrize("name", ["GCS_ENDPOINT", "GCS_TOKEN_ENDPOINT", "ADLS_ENDPOINT", "ADLS_TOKEN_ENDPOINT"])
def test_a_wrong_address_names_its_setting(name: str) -> None:
    with pytest.raises(SettingsError, match=f"^LAKEGATE__STORAGE__{name}: "):
        settings.load({f"LAKEGATE__STORAGE__{name}": "http://store.example/{account}"}).storage.addresses()
