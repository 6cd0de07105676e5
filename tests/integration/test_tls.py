# SPDX-License-Identifier: Apache-2.0
"""Every kind of outgoing connection trusts a configured private authority, and no other private authority.

The servers are real TLS servers. A client has trusted one if it sends data after the handshake.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.db.engine.database import Database
from gateway.db.migrate import require_current_schema, run_migrations
from gateway.fga.client import FgaClient
from gateway.fga.model import find_model
from gateway.identity.discovery import HttpFetcher
from gateway.opa.decider import OpaDecider
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3AccessKey
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.tls import CertificatesUnusable, Trust, for_postgres, trusted
from tests.support.servers.certificates import Authority, authority, listening
from tests.support.servers.storage_routes import LOCAL, files_of

pytestmark = pytest.mark.servers

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
KEY = S3AccessKey(access_key_id="a", secret_access_key="b")

Client = Callable[[str, Trust], Awaitable[object]]


async def _opa(url: str, trust: Trust) -> None:
    opa = OpaDecider(url, "token", timeout_s=20, tls=trust.context)
    try:
        await opa.ping()
    finally:
        await opa.aclose()


async def _openfga(url: str, trust: Trust) -> None:
    client = FgaClient(url, "key", ULID, ULID, timeout_s=20, tls=trust.context)
    try:
        await client.ping()
    finally:
        await client.aclose()


async def _openfga_sdk(url: str, trust: Trust) -> object:
    return await find_model(url, "key", "lakegate", demanded={}, ca_bundle=trust.bundle)


async def _identity(url: str, trust: Trust) -> object:
    async with HttpFetcher(tls=trust.context) as fetch:
        return await fetch(f"{url}/.well-known/openid-configuration")


def _profile(url: str) -> S3Profile:
    return S3Profile(
        bucket="lake", region="r", endpoint=url, flavor=Flavor.S3_COMPAT, path_style_access=True, sts_enabled=True
    )


async def _object_store(url: str, trust: Trust) -> object:
    profile = _profile(url)
    files = files_of(certificates=trust.pem, connect_seconds=10, request_seconds=15, total_seconds=20)
    return await files.is_empty(profile, KEY, profile.base_location())  # type: ignore[arg-type]  # its base is a location


async def _sts(url: str, trust: Trust) -> object:
    sts = Sts(ca_bundle=trust.bundle, route=LOCAL, total_seconds=8)
    try:
        return await sts.assume(
            profile=_profile(url), credential=KEY, policy='{"Statement": []}', session_name="test", seconds=900
        )
    finally:
        sts.close()


HTTP: dict[str, Client] = {
    "opa": _opa,
    "openfga": _openfga,
    "openfga_sdk": _openfga_sdk,
    "identity": _identity,
    "object_store": _object_store,
    "sts": _sts,
}


def _url(url: str) -> str:
    return url.replace("https://", "postgresql+asyncpg://u:p@") + "/d"


async def _pool(url: str, trust: Trust) -> None:
    tls = for_postgres("verify-full", trust, None)
    database = Database(_url(url), pool_size=1, acquire_timeout=20, tls=tls)
    try:
        await database.ping()
    finally:
        await database.close()


async def _schema_check(url: str, trust: Trust) -> None:
    await require_current_schema(_url(url), tls=for_postgres("verify-full", trust, None))


async def _migrations(url: str, trust: Trust) -> None:
    await run_migrations(_url(url), tls=for_postgres("verify-full", trust, None))


POSTGRES: dict[str, Client] = {"pool": _pool, "schema_check": _schema_check, "migrations": _migrations}
ALL = HTTP | POSTGRES


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("theirs"), "Another authority")


async def _trusts(kind: str, server: Authority, trust: Trust, host: str = "127.0.0.1") -> bool:
    async with listening(server.server(host), postgres=kind in POSTGRES) as listener:
        with contextlib.suppress(Exception):
            # The server's answer has no useful content, so each request fails in the end; only the handshake matters.
            await ALL[kind](f"https://127.0.0.1:{listener.port}", trust)
        return bool(listener.trusted_by)


@pytest.mark.parametrize("kind", ALL)
async def test_private_authority_is_trusted_only_if_configured(
    kind: str, ours: Authority, theirs: Authority, tmp_path: Path
) -> None:
    directory = tmp_path / "certificates"
    directory.mkdir()
    (directory / "any-name").write_bytes(ours.file.read_bytes())
    (directory / "notes.txt").write_text("no certificate")
    assert await _trusts(kind, ours, trusted(str(ours.file), None))
    assert await _trusts(kind, ours, trusted(None, str(directory)))
    assert await _trusts(kind, ours, trusted(str(theirs.file), str(directory))), (
        "the system's and the configured authorities must both be trusted"
    )
    assert not await _trusts(kind, ours, trusted(None, None))
    assert not await _trusts(kind, ours, trusted(str(theirs.file), None))


@pytest.mark.parametrize("kind", ALL)
async def test_a_certificate_for_another_host_is_refused(kind: str, ours: Authority) -> None:
    assert not await _trusts(kind, ours, trusted(str(ours.file), None), host="elsewhere.example")


@pytest.mark.parametrize(
    ("mode", "named", "host", "expected"),
    [
        ("require", False, "127.0.0.1", True),
        ("verify-ca", False, "127.0.0.1", False),
        ("verify-ca", True, "elsewhere.example", True),
        ("verify-full", True, "elsewhere.example", False),
        ("verify-full", True, "127.0.0.1", True),
    ],
)
async def test_postgresql_supports_libpq_tls_modes_and_its_own_certificates(
    ours: Authority, mode: str, named: bool, host: str, expected: bool
) -> None:
    tls = for_postgres(mode, trusted(None, None), str(ours.file) if named else None)
    async with listening(ours.server(host), postgres=True) as listener:
        database = Database(_url(f"https://127.0.0.1:{listener.port}"), pool_size=1, acquire_timeout=20, tls=tls)
        with contextlib.suppress(Exception):
            await database.ping()
        await database.close()
        assert bool(listener.trusted_by) == expected


def test_unusable_certificates_are_named_in_the_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for file, directory, error in (
        (str(empty), None, "the file of SSL_CERT_FILE, .*empty.pem, contains no certificate"),
        (str(tmp_path / "gone"), None, "the file of SSL_CERT_FILE, .*gone, cannot be read"),
        (None, str(tmp_path), "no file in the directory of SSL_CERT_DIR, .*, contains a certificate"),
        (None, str(empty), "SSL_CERT_DIR must be a directory"),
    ):
        with pytest.raises(CertificatesUnusable, match=error):
            trusted(file, directory)
    with pytest.raises(CertificatesUnusable, match="the file of PG_SSL_ROOT_CERT"):
        for_postgres("verify-full", trusted(None, None), str(empty))
