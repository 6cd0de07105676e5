# SPDX-License-Identifier: Apache-2.0
"""Requests to Entra ID and for delegation keys, checked against their documentation by servers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.scope.profile import STORED, STRICTEST
from gateway.storage.adls.client import AdlsSessions, correlation_id
from gateway.storage.adls.credential import AdlsClientCredentials, AdlsSas, AdlsSharedKey
from gateway.storage.adls.delegation import Delegation
from gateway.storage.adls.profile import SCHEME, AdlsProfile
from gateway.storage.adls.proof import prove_scope
from gateway.storage.adls.sas import build_directory
from gateway.storage.errors import ShortTermCredentialError, StorageSessionUnavailable
from tests.support.servers.azure_services import KEY, delegation_key, entra_id
from tests.support.servers.certificates import authority
from tests.support.servers.loopback import Service, serving

_PROFILE = AdlsProfile(account_name="account1", filesystem="lake", key_prefix="wh")
_TENANT = "33333333-3333-3333-3333-333333333333"
_OWN = AdlsClientCredentials(
    client_id="44444444-4444-4444-4444-444444444444", tenant_id=_TENANT, client_secret="s3cr3t~value"
)
_TABLE = Location(SCHEME, "lake@account1.dfs.core.windows.net", ("wh", "t1"))


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[tuple[Delegation, Service, Service]]:
    issuer = authority(tmp_path / "authority")
    with ExitStack() as running:
        entra = running.enter_context(serving(entra_id, issuer.server("127.0.0.1")))
        blobs = running.enter_context(serving(delegation_key))
        made = Delegation(
            authority=entra.url, blob_endpoint=blobs.url + "/{account}", ca_bundle=str(issuer.file), total_seconds=20
        )
        running.callback(made.close)
        yield made, entra, blobs


def sessions(delegation: Delegation) -> AdlsSessions:
    return AdlsSessions(delegation, STRICTEST)


async def make(delegation: Delegation, *, level: AccessLevel = AccessLevel.READ, **more: Any) -> AdlsSas:
    given: dict[str, Any] = {
        "profile": _PROFILE,
        "credential": _OWN,
        "session_name": "ann-0123",
        "seconds": 3600,
    } | more
    made = await sessions(delegation).make(policy=build_directory(_TABLE, level), **given)
    assert isinstance(made, AdlsSas)
    return made


async def test_a_signature_is_made_with_a_key_that_is_requested_as_documented(
    azure: tuple[Delegation, Service, Service],
) -> None:
    delegation, entra, blobs = azure
    now = datetime.now(UTC)
    made = await make(delegation)
    token = next(each for each in entra.seen if each.method == "POST")
    assert token.path == f"/{_TENANT}/oauth2/v2.0/token"
    form = parse_qs(token.body.decode())
    assert form["grant_type"] == ["client_credentials"] and form["scope"] == ["https://storage.azure.com/.default"]
    assert form["client_id"] == [_OWN.client_id] and form["client_secret"] == [_OWN.client_secret]
    [asked] = blobs.seen
    assert (asked.method, asked.path) == ("POST", "/account1/")
    assert asked.query == {"restype": ["service"], "comp": ["userdelegationkey"]}
    assert asked.headers["authorization"] == "Bearer entra-token" and asked.headers["x-ms-version"] == "2022-11-02"
    assert asked.body.startswith(b"<?xml version='1.0' encoding='utf-8'?><KeyInfo><Start>20")
    fields = {name: values[0] for name, values in parse_qs(made.token).items()}
    assert (fields["sr"], fields["sdd"], fields["sp"], fields["spr"]) == ("d", "2", "rl", "https")
    assert fields["scid"] == correlation_id("ann-0123")
    # A key lives for seven days at most, and the signature for what was requested.
    start, end = (datetime.fromisoformat(fields[name]) for name in ("skt", "ske"))
    assert end - start == timedelta(days=7)
    assert timedelta(seconds=3595) <= made.expires_at - now <= timedelta(seconds=3605)
    assert prove_scope(made.token, KEY, _TABLE, AccessLevel.READ, ("wh/t10/f", "wh")) == []


async def test_a_key_is_reused_and_a_longer_signature_ends_with_it(azure: tuple[Delegation, Service, Service]) -> None:
    delegation, _, blobs = azure
    await make(delegation)
    longest = await make(delegation, seconds=604800)
    assert len(blobs.seen) == 1
    fields = {name: values[0] for name, values in parse_qs(longest.token).items()}
    assert fields["se"] == fields["ske"] and longest.expires_at == datetime.fromisoformat(fields["ske"])


async def test_the_key_of_an_account_signs_without_any_request(azure: tuple[Delegation, Service, Service]) -> None:
    delegation, entra, blobs = azure
    shared = AdlsSharedKey(key="a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")
    made = await make(delegation, credential=shared, level=AccessLevel.READ_WRITE_DELETE)
    assert (entra.seen, blobs.seen) == ([], [])
    assert "skoid" not in made.token and shared.key not in made.token
    assert prove_scope(made.token, b"k" * 32, _TABLE, AccessLevel.READ_WRITE_DELETE, ("wh/t10/f",)) == []


@pytest.mark.threat("LG-DEC-05")
async def test_a_host_that_the_operator_does_not_list_receives_no_token(
    azure: tuple[Delegation, Service, Service],
) -> None:
    delegation, entra, blobs = azure
    elsewhere = msgspec.structs.replace(_PROFILE, host="dfs.fabric.microsoft.com")
    with pytest.raises(ShortTermCredentialError, match="LAKEGATE__STORAGE__ADLS_HOSTS") as refused:
        await make(delegation, profile=elsewhere)
    assert refused.value.reason == "endpoint" and (entra.seen, blobs.seen) == ([], [])
    allowed = AdlsSessions(delegation, STORED)
    made = await allowed.make(
        profile=elsewhere,
        credential=_OWN,
        policy=build_directory(_TABLE, AccessLevel.READ),
        session_name="ann",
        seconds=3600,
    )
    assert made.expires_at <= datetime.now(UTC) + timedelta(hours=1)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (403, b"<Error>acme</Error>", "refused"),
        (401, b"", "refused"),
        (500, b"acme", "unreachable"),
        (302, b"acme", "malformed"),
        (200, b"<acme/>", "malformed"),
        (200, b'<!DOCTYPE a [<!ENTITY b "acme">]><a>&b;</a>', "malformed"),
    ],
)
async def test_errors_are_of_a_closed_set_and_contain_nothing_of_the_answer(
    tmp_path: Path, status: int, body: bytes, reason: str
) -> None:
    issuer = authority(tmp_path / "authority")
    with serving(entra_id, issuer.server("127.0.0.1")) as entra, serving(lambda _: (status, {}, body)) as blobs:
        delegation = Delegation(authority=entra.url, blob_endpoint=blobs.url + "/{account}", ca_bundle=str(issuer.file))
        with pytest.raises(ShortTermCredentialError) as refused:
            await make(delegation)
        delegation.close()
    assert refused.value.reason == reason
    assert "acme" not in refused.value.message and "s3cr3t" not in refused.value.message


async def test_a_refused_secret_is_reported_without_the_secret(tmp_path: Path) -> None:
    issuer = authority(tmp_path / "authority")
    wrong = b'{"error":"invalid_client","error_description":"AADSTS7000215: acme s3cr3t"}'

    def refuse(request: Any) -> Any:
        return (401, {"content-type": "application/json"}, wrong) if request.method == "POST" else entra_id(request)

    with serving(refuse, issuer.server("127.0.0.1")) as entra:
        delegation = Delegation(authority=entra.url, blob_endpoint=None, ca_bundle=str(issuer.file))
        with pytest.raises(ShortTermCredentialError) as refused:
            await make(delegation)
        delegation.close()
    assert refused.value.reason == "credential"
    assert "acme" not in refused.value.message and "s3cr3t" not in refused.value.message


async def test_an_unreachable_authority_is_an_outage(tmp_path: Path) -> None:
    issuer = authority(tmp_path / "authority")
    delegation = Delegation(authority="https://127.0.0.1:9", ca_bundle=str(issuer.file), total_seconds=3)
    with pytest.raises(StorageSessionUnavailable):
        await make(delegation)
    delegation.close()


@pytest.mark.threat("LG-AUT-15")
def test_no_representation_contains_the_secret() -> None:
    for value in (_OWN, AdlsSharedKey(key="a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")):
        for text in (repr(value), str(value), repr([value]), str(list(value.__rich_repr__())), value.digest):
            assert "s3cr3t" not in text and "a2tr" not in text
