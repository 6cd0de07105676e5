# SPDX-License-Identifier: Apache-2.0
"""Files of Azure storage: lists and deletions with a signature, and refusals of the blob service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.scope.endpoint import StoreAddresses
from gateway.scope.profile import STORED, STRICTEST, StorageRules
from gateway.storage.adls.credential import AdlsCredential, AdlsSas, AdlsSharedKey, AdlsSystemIdentity
from gateway.storage.adls.profile import AdlsProfile
from gateway.storage.errors import FileMissing, StorageDenied, StorageEndpointRefused, StorageUnavailable
from gateway.storage.provider import ClientOptions, FileClient
from gateway.storage.registry import open_clients
from tests.support.servers.certificates import authority
from tests.support.servers.loopback import Reply, Request, Service, serving

_PROFILE = AdlsProfile(account_name="account1", filesystem="lake", key_prefix="wh")
_SAS = AdlsSas(token="sv=2022-11-02&sr=d&sdd=1&sig=s3cr3t", expires_at=datetime.now(UTC) + timedelta(hours=1))
_KEY = AdlsSharedKey(key="a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")


@contextmanager
def files(service: Service, rules: StorageRules = STRICTEST) -> Iterator[FileClient]:
    addresses = {"adls": StoreAddresses(files=service.url + "/{account}")}
    clients = open_clients(ClientOptions(addresses=addresses, rules=rules, total_seconds=5, request_seconds=2))
    yield clients.of(_PROFILE).files
    clients.close()


def pages(request: Request) -> Reply:
    """Answer a list as https://learn.microsoft.com/en-us/rest/api/storageservices/datalakestoragegen2/path/list."""
    first = {"paths": [{"name": "wh/t1/data", "isDirectory": "true"}, {"name": "wh/t1/data/a", "contentLength": "1"}]}
    second = {"paths": [{"name": "wh/t1/data/b", "contentLength": "1"}]}
    if "continuation" in request.query:
        return 200, {}, json.dumps(second).encode()
    return 200, {"x-ms-continuation": "next=="}, json.dumps(first).encode()


async def test_a_list_with_a_signature_names_its_directory_and_follows_pages() -> None:
    with serving(pages) as service, files(service) as found:
        assert await found.list(_PROFILE, _SAS, "wh/t1/", 10) == ["wh/t1/data/a", "wh/t1/data/b"]
        assert await found.list(_PROFILE, _SAS, "wh/t1/", 1) == ["wh/t1/data/a"]
    first = service.seen[0]
    assert (first.method, first.path) == ("GET", "/account1/lake")
    assert first.query["resource"] == ["filesystem"] and first.query["recursive"] == ["true"]
    assert first.query["directory"] == ["wh/t1"] and first.query["sig"] == ["s3cr3t"]
    assert service.seen[1].query["continuation"] == ["next=="]
    assert "authorization" not in first.headers


async def test_deletions_with_a_signature_are_requests_on_single_files() -> None:
    """https://learn.microsoft.com/en-us/rest/api/storageservices/datalakestoragegen2/path/delete"""
    missing = "/account1/lake/wh/t1/none"
    with (
        serving(lambda request: (404 if request.path == missing else 200, {}, b"")) as service,
        files(service) as found,
    ):
        await found.delete(_PROFILE, _SAS, ["wh/t1/a", "wh/t1/none", "wh/t1/é"])
    assert {(each.method, each.path) for each in service.seen} == {
        ("DELETE", "/account1/lake/wh/t1/a"),
        ("DELETE", missing),
        ("DELETE", "/account1/lake/wh/t1/%C3%A9"),
    }


@pytest.mark.parametrize("credential", [_SAS, _KEY], ids=["signature", "key"])
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_is_reported_as_such_for_every_request(
    credential: AdlsSas | AdlsSharedKey, status: int
) -> None:
    with serving(lambda _: (status, {}, b"<Error>s3cr3t</Error>")) as service, files(service) as found:
        for attempt in (
            found.put(_PROFILE, credential, "wh/a", b"x"),
            found.get(_PROFILE, credential, "wh/a", 10),
            found.list(_PROFILE, credential, "wh/", 1),
            found.delete(_PROFILE, credential, ["wh/a", "wh/b"]),
        ):
            with pytest.raises(StorageDenied) as denied:
                await attempt
            assert "s3cr3t" not in denied.value.message


@pytest.mark.parametrize(("status", "body"), [(500, b""), (302, b""), (200, b"<html>"), (200, b'{"paths": 5}')])
async def test_an_unexpected_answer_is_no_empty_list(status: int, body: bytes) -> None:
    with serving(lambda _: (status, {"location": "/"}, body)) as service, files(service) as found:
        with pytest.raises(StorageUnavailable) as raised:
            await found.list(_PROFILE, _SAS, "wh/t1/", 1)
        assert "s3cr3t" not in raised.value.message


async def test_a_missing_directory_is_empty_and_a_missing_file_an_error() -> None:
    with serving(lambda _: (404, {}, b"")) as service, files(service) as found:
        assert await found.list(_PROFILE, _SAS, "wh/none/", 5) == []
        with pytest.raises(FileMissing):
            await found.get(_PROFILE, _SAS, "wh/none", 5)


async def test_a_server_with_an_unknown_certificate_receives_no_signature(tmp_path: Path) -> None:
    unknown = authority(tmp_path / "authority").server("127.0.0.1")
    with serving(pages, unknown) as service, files(service) as found:
        with pytest.raises(StorageUnavailable):
            await found.list(_PROFILE, _SAS, "wh/t1/", 1)
        with pytest.raises(StorageUnavailable):
            await found.delete(_PROFILE, _SAS, ["wh/t1/a"])
    assert service.seen == []


@pytest.mark.threat("LG-DEC-05")
async def test_each_use_checks_the_operators_current_rules() -> None:
    elsewhere = AdlsProfile(account_name="account1", filesystem="lake", host="dfs.attacker.example")
    identity: AdlsCredential = AdlsSystemIdentity()
    with serving(lambda _: (200, {}, b"")) as service, files(service) as found:
        with pytest.raises(StorageEndpointRefused, match="LAKEGATE__STORAGE__ADLS_HOSTS"):
            await found.get(elsewhere, _KEY, "wh/a", 5)
        with pytest.raises(StorageDenied, match="azure-system-identity"):
            await found.get(_PROFILE, identity, "wh/a", 5)
        assert service.seen == []
    with serving(lambda _: (404, {}, b"")) as service, files(service, STORED) as found, pytest.raises(FileMissing):
        await found.get(elsewhere, _KEY, "wh/a", 5)
