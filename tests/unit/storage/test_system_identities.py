# SPDX-License-Identifier: Apache-2.0
"""The gateway's own identity in Google Cloud and Azure serves only stores that the operator listed (LG-POL-13)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.iceberg.errors import BadRequestException
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.scope.profile import STRICTEST, Downscoping, IdentityRules, StorageProfile, StorageRules
from gateway.settings import load
from gateway.storage.errors import ShortTermCredentialError, StorageDenied
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.registry import decode_credential, decode_profile, open_clients, parse_location

GCS = {"type": "gcs", "bucket": "lake", "key-prefix": "base"}
ADLS = {"type": "adls", "account-name": "lakeaccount", "filesystem": "lake", "key-prefix": "base"}
CLOUDS = {
    "gcs": (GCS, {"type": "gcs", "credential-type": "gcp-system-identity"}, "lake", "gs://lake/base/t"),
    "adls": (
        ADLS,
        {"type": "az", "credential-type": "azure-system-identity"},
        "lakeaccount/lake",
        "abfss://lake@lakeaccount.dfs.core.windows.net/base/t",
    ),
}


def _rules(provider: str, **fields: Any) -> StorageRules:
    return StorageRules(identities=((provider, IdentityRules(**fields)),))


@pytest.mark.threat("LG-POL-13")
@pytest.mark.parametrize("provider", CLOUDS)
def test_such_a_credential_is_refused_in_a_request_unless_enabled(provider: str) -> None:
    text = json.dumps(CLOUDS[provider][1]).encode()
    for rules in (STRICTEST, _rules("s3", enabled=True, direct=True), _rules(provider, direct=True)):
        with pytest.raises(BadRequestException, match="not enabled"):
            decode_credential(text, rules=rules)
    decode_credential(text, rules=_rules(provider, enabled=True))


@pytest.mark.threat("LG-POL-13")
@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize(
    "fields",
    [
        {"enabled": False, "direct": True, "stores": "own"},
        {"enabled": True, "direct": True, "stores": ()},
        {"enabled": True, "direct": True, "stores": ("other", "lak", "LAKE", "lakeaccount/other", "other/lake")},
    ],
    ids=["not enabled", "none listed", "others listed"],
)
async def test_neither_files_nor_sessions_use_it_for_a_store_that_is_not_listed(
    provider: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked for a token: the identity's own service is never reached."""
    asked = _no_tokens(monkeypatch)
    profile_fields, given, store, text = CLOUDS[provider]
    listed = (store,) if fields["stores"] == "own" else fields["stores"]
    clients = open_clients(ClientOptions(rules=_rules(provider, **{**fields, "stores": listed})))
    profile = decode_profile(json.dumps(profile_fields).encode())
    credential = decode_credential(json.dumps(given).encode())
    client = clients.of(profile)
    with pytest.raises(StorageDenied, match="not enabled|does not allow"):
        await client.files.get(profile, credential, "base/x", 10)
    with pytest.raises(ShortTermCredentialError, match="not enabled|does not allow"):
        await _session(client, profile, credential, parse_location(text))
    assert asked == []
    clients.close()


@pytest.mark.parametrize("provider", CLOUDS)
async def test_it_is_used_for_a_listed_store(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _no_tokens(monkeypatch)
    profile_fields, given, store, text = CLOUDS[provider]
    clients = open_clients(ClientOptions(rules=_rules(provider, enabled=True, direct=True, stores=(store,))))
    profile = decode_profile(json.dumps(profile_fields).encode())
    with pytest.raises(ShortTermCredentialError):
        await _session(
            clients.of(profile), profile, decode_credential(json.dumps(given).encode()), parse_location(text)
        )
    assert asked != []
    clients.close()


def test_the_settings_list_the_stores_of_each_cloud() -> None:
    settings = load(
        {
            "LAKEGATE__ENABLE_GCP_SYSTEM_CREDENTIALS": "true",
            "LAKEGATE__GCS_SYSTEM_CREDENTIALS_BUCKETS": "lake,other",
            "LAKEGATE__ADLS_SYSTEM_CREDENTIALS_FILESYSTEMS": "account/lake",
        }
    )
    rules = settings.storage_rules()
    assert rules.identity("gcs") == IdentityRules(enabled=True, direct=True, stores=("lake", "other"))
    assert rules.identity("adls") == IdentityRules(enabled=False, direct=True, stores=("account/lake",))
    assert settings.enabled_system_identities() == {"gcp"}


def _no_tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the libraries find no identity; return the list of those that were asked."""
    import azure.identity
    import google.auth
    import google.auth.exceptions

    asked: list[str] = []

    def google_default(**_: Any) -> Any:
        asked.append("google")
        raise google.auth.exceptions.DefaultCredentialsError("none here")

    class NoIdentity:
        def __init__(self, **_: Any) -> None:
            asked.append("azure")
            raise ValueError("none here")

    monkeypatch.setattr(google.auth, "default", google_default)
    monkeypatch.setattr(azure.identity, "WorkloadIdentityCredential", NoIdentity)
    monkeypatch.setattr(azure.identity, "ManagedIdentityCredential", NoIdentity)
    return asked


async def _session(client: StorageClient, profile: StorageProfile, credential: Any, location: Location) -> None:
    assert client.sessions is not None and isinstance(profile.downscoping, Downscoping)
    policy: Callable[[Location, AccessLevel], str] = profile.downscoping.policy
    await client.sessions.make(
        profile=profile,
        credential=credential,
        policy=policy(location, AccessLevel.READ),
        session_name="alice-0123456789abcdef",
        seconds=3600,
    )
