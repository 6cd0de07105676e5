# SPDX-License-Identifier: Apache-2.0
"""Requests to Google's token services, checked against their documentation by a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import joserfc.jwk
import joserfc.jwt
import msgspec
import pytest

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidStorageCredential
from gateway.scope.location import Location
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.gcs.access_boundary import build_access_boundary
from gateway.storage.gcs.credential import GcsServiceAccountKey, ServiceAccountKey
from gateway.storage.gcs.profile import SCHEME
from gateway.storage.gcs.tokens import GcsTokens
from gateway.storage.registry import decode_credential
from tests.support.servers.gcs_emulator import google_tokens, service_account_key
from tests.support.servers.storage_servers import serving

_BOUNDARY = build_access_boundary(Location(SCHEME, "lake-1", ("wh", "t'1")), AccessLevel.READ)
_KEY = service_account_key()


def credential() -> GcsServiceAccountKey:
    document = {"type": "gcs", "credential-type": "service-account-key", "key": _KEY}
    found = decode_credential(json.dumps(document).encode())
    assert isinstance(found, GcsServiceAccountKey)
    return found


@pytest.fixture
def services() -> Iterator[tuple[GcsTokens, list[dict[str, Any]]]]:
    with google_tokens() as (url, seen):
        tokens = GcsTokens(address=url)
        yield tokens, seen
        tokens.close()


async def test_a_downscoped_token_is_requested_as_google_documents(
    services: tuple[GcsTokens, list[dict[str, Any]]],
) -> None:
    """The parameters of the assertion are in RFC 7523, those of the exchange in RFC 8693 and
    https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token.
    """
    tokens, seen = services
    before = datetime.now(UTC).replace(microsecond=0)
    made = await tokens.downscoped(credential(), _BOUNDARY, seconds=3600)
    own, exchange = seen
    assert (own["path"], exchange["path"]) == ("/token", "/v1/token")
    assert own["form"].keys() == {"grant_type", "assertion"}
    assert own["form"]["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    public = joserfc.jwk.RSAKey.import_key(_KEY["private_key"])
    claims = joserfc.jwt.decode(own["form"]["assertion"][0], public, algorithms=["RS256"]).claims
    assert claims["iss"] == _KEY["client_email"] and claims["aud"] == "https://oauth2.googleapis.com/token"
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert claims["exp"] - claims["iat"] == 3600
    options = json.loads(unquote(exchange["form"].pop("options")[0]))
    assert options == json.loads(_BOUNDARY)
    access_token = "urn:ietf:params:oauth:token-type:access_token"
    assert exchange["form"] == {
        "grant_type": ["urn:ietf:params:oauth:grant-type:token-exchange"],
        "subject_token": ["own-1"],
        "subject_token_type": [access_token],
        "requested_token_type": [access_token],
    }
    assert "authorization" not in exchange["headers"]
    assert (made.token, made.project) == ("downscoped-2", "project-1")
    # The exchange states no expiry: the token ends with the one that it was made from.
    assert before + timedelta(seconds=3590) <= made.expires_at <= datetime.now(UTC) + timedelta(seconds=3600)


async def test_the_own_token_is_cached_and_renewed_for_a_full_hour(
    services: tuple[GcsTokens, list[dict[str, Any]]],
) -> None:
    tokens, seen = services
    first = await tokens.own(credential())
    assert await tokens.own(credential()) is first
    assert await tokens.own(credential(), least=timedelta(hours=2)) is not first
    assert [each["path"] for each in seen] == ["/token", "/token"]


@pytest.mark.threat("LG-POL-06")
async def test_no_token_is_downscoped_without_a_boundary(services: tuple[GcsTokens, list[dict[str, Any]]]) -> None:
    tokens, seen = services
    with pytest.raises(ValueError, match="access boundary"):
        await tokens.downscoped(credential(), " ", seconds=3600)
    assert seen == []


async def test_a_token_that_outlives_the_limit_is_discarded(services: tuple[GcsTokens, list[dict[str, Any]]]) -> None:
    tokens, _ = services
    with pytest.raises(ShortTermCredentialError) as refused:
        await tokens.downscoped(credential(), _BOUNDARY, seconds=900)
    assert refused.value.reason == "too-long"


_OF_THE_MACHINE = """
import asyncio
from gateway.storage.gcs.credential import GcsSystemIdentity
from gateway.storage.gcs.tokens import GcsTokens

tokens = GcsTokens()
print(asyncio.run(tokens.own(GcsSystemIdentity())).token)
tokens.close()
"""


def test_a_system_identity_asks_the_metadata_service_of_the_machine(tmp_path: Path) -> None:
    """https://cloud.google.com/compute/docs/access/authenticate-workloads#applications

    Google's library reads its variables at import, so the test runs in a process of its own.
    """
    email = "machine@project-1.iam.gserviceaccount.com"
    answer = {"access_token": "machine", "expires_in": 3599, "token_type": "Bearer", "email": email, "scopes": []}
    headers = {"content-type": "application/json", "metadata-flavor": "Google"}
    with serving(200, headers, json.dumps(answer).encode()) as server:
        host = server.url.removeprefix("http://")
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", _OF_THE_MACHINE],
            env=environment | {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout.strip() == "machine", done.stderr
        paths = [path.partition("?")[0] for _, path, _ in server.seen]
        assert "/computeMetadata/v1/instance/service-accounts/default/token" in paths


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, b'{"error":"invalid_grant","error_description":"k3y of acme"}', "credential"),
        (401, b'{"error":"invalid_client"}', "credential"),
        (200, b"<html>k3y", "malformed"),
        (200, b'{"access_token":5}', "malformed"),
        (200, b'{"expires_in":3600}', "credential"),
        (302, b"", "credential"),
    ],
)
async def test_errors_are_of_a_closed_set_and_contain_nothing_of_the_answer(
    status: int, body: bytes, reason: str
) -> None:
    with serving(status, {"content-type": "application/json", "location": "http://127.0.0.1:1/"}, body) as server:
        tokens = GcsTokens(address=server.url)
        with pytest.raises(ShortTermCredentialError) as refused:
            await tokens.downscoped(credential(), _BOUNDARY, seconds=3600)
        tokens.close()
    assert refused.value.reason == reason
    assert "acme" not in refused.value.message and "k3y" not in refused.value.message


@pytest.mark.threat("LG-AUT-15")
def test_no_representation_of_the_key_contains_the_secret() -> None:
    for value in (credential(), credential().key):
        for text in (repr(value), str(value), f"{value}", repr([value]), str(list(value.__rich_repr__()))):
            assert "PRIVATE KEY" not in text and _KEY["private_key"][60:90] not in text


@pytest.mark.parametrize(
    "change",
    [
        {"token_uri": "https://attacker.example/token"},
        {"token_uri": "http://oauth2.googleapis.com/token"},
        {"universe_domain": "attacker.example"},
        {"type": "authorized_user"},
        {"client_email": "x@attacker.example"},
        {"private_key": "none"},
    ],
)
def test_a_key_file_that_names_another_server_or_kind_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(InvalidStorageCredential) as refused:
        msgspec.convert({**_KEY, **change}, type=ServiceAccountKey)
    assert _KEY["private_key"][60:90] not in refused.value.message
