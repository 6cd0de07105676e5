# SPDX-License-Identifier: Apache-2.0
"""Storage credentials in Vault, through a gateway on the stack: life of a credential, outages, moves between stores."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.secrets import Sealer
from gateway.db.credentials.stored_secrets import PostgresSecrets
from gateway.db.engine.database import Database
from gateway.secret_stores.port import SecretStores
from gateway.secret_stores.vault import VaultSecrets
from gateway.secret_stores.vault_session import UserPassLogin, VaultAddress
from gateway.settings.env import Secret
from gateway.settings.postgres import asyncpg_url
from tests.support.lakegate_command import run_lakegate
from tests.support.servers.toxic import second_gateway
from tests.support.servers.vault_server import MOUNT, PASSWORD, USER, VaultServer, vault_server
from tests.support.stack import warehouses
from tests.support.stack.warehouses import Made
from tests.support.stack.world import Person, World

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

NOT_YET = 3


@pytest.fixture(scope="module")
def server() -> Iterator[VaultServer]:
    with vault_server() as running:
        yield running


def settings(server: VaultServer, **more: str) -> dict[str, str]:
    return {
        "SECRET_BACKEND": "kv2",
        "KV2__URL": server.url,
        "KV2__USER": USER,
        "KV2__PASSWORD": PASSWORD,
        "KV2__SECRET_MOUNT": MOUNT,
        **more,
    }


@pytest.fixture(scope="module")
def admin(world: World, server: VaultServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Return the administrator at a gateway whose new secrets go to Vault. It caches no vended credentials."""
    more = {"MEMORY__CREDENTIALS": "0", "HEALTH_CHECK_FREQUENCY_SECONDS": "1"}
    log = tmp_path_factory.mktemp("vault") / "gateway.log"
    with second_gateway(world.ready, log, **settings(server, **more)) as (base, _):
        person = Person("admin", world.admin.id, world.admin.token, base)
        yield person
        person.http.close()
    text = log.read_text()
    for secret in (PASSWORD, world.ready.s3.secret_key, *server.tokens):
        assert secret not in text, "a secret is in the log of the gateway"


@pytest.fixture(autouse=True)
def _unsealed(server: VaultServer) -> Iterator[None]:
    yield
    server.sealed = False


def lakegate(world: World, *arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
    main = psutil.Process(world.ready.pids["gateway"][0])
    environment = main.environ() | {f"LAKEGATE__{name}": value for name, value in changed.items()}
    return run_lakegate(*arguments, environment=environment, directory=os.sep)


def vended(admin: Person, table: str) -> httpx.Response:
    return admin.get(f"{table}/credentials")


def secret_id(world: World, made: Made) -> str:
    [row] = world.sql("select secret_id from warehouses where id = $1", made.id)
    return str(row["secret_id"])


def in_vault(server: VaultServer, id: str) -> bool:
    return f"lakegate/{id}" in server.secrets


def sweep(world: World, server: VaultServer) -> None:
    """Make all unused credentials old, and run the cleanup that each gateway runs every ten seconds."""
    world.sql("update secrets set replaced_at = replaced_at - interval '1 hour' where replaced_at is not null")

    async def run() -> None:
        database = Database(asyncpg_url(Secret(world.ready.postgres)), pool_size=1, acquire_timeout=5)
        address = VaultAddress(url=server.url, ca_bundle=None, namespace=None, timeout=2)
        vault = VaultSecrets(
            address, UserPassLogin("userpass", USER, PASSWORD), mount=MOUNT, prefix="lakegate", timeout=4
        )
        postgres = PostgresSecrets(database, Sealer(["an encryption key that seals nothing"]))
        await StorageCredentials(database, SecretStores(vault, [postgres])).sweep(limit=100)
        await vault.close()
        await database.close()

    asyncio.run(run())
    # The gateways would delete these soon, while a later test counts the rows.
    world.sql("delete from secrets where store = 'postgres' and replaced_at < now() - interval '30 minutes'")


def test_a_credential_lives_in_vault_from_creation_to_deletion(
    world: World, admin: Person, server: VaultServer
) -> None:
    made = warehouses.make(world, admin)
    first = secret_id(world, made)
    assert in_vault(server, first) and world.ready.s3.secret_key in server.text()
    [row] = world.sql("select store, sealed, replaced_at from secrets where id = $1", first)
    assert tuple(row) == ("kv2", None, None)
    table = made.table(admin)
    assert vended(admin, table).json()["storage-credentials"]

    body = {"new-storage-credential": warehouses.credential(world)}
    assert admin.post(f"{made.path}/storage-credential", body).status_code == 200
    second = secret_id(world, made)
    assert second != first and in_vault(server, first) and in_vault(server, second)
    sweep(world, server)
    assert (in_vault(server, first), in_vault(server, second)) == (False, True)
    assert vended(admin, table).json()["storage-credentials"]

    assert admin.delete(table).status_code == 204
    [name] = admin.get(f"{made.root}/namespaces").json()["namespaces"][0]
    assert admin.delete(f"{made.root}/namespaces/{name}").status_code == 204
    world.quiet()
    assert admin.delete(f"{made.path}?abandon-files=true").status_code in (200, 204)
    sweep(world, server)
    assert not in_vault(server, second)
    assert world.sql("select 1 from secrets where id::text = any($1)", [first, second]) == []


def test_a_creation_that_fails_in_its_transaction_leaves_no_secret(
    world: World, admin: Person, server: VaultServer
) -> None:
    made = warehouses.make(world, admin)
    before = set(server.secrets)
    writes = server.count("POST", f"{MOUNT}/data/")
    taken = admin.post(warehouses.WAREHOUSE, warehouses.creation(world, **{"warehouse-name": made.name}))
    assert taken.json()["error"]["type"] == "WarehouseNameAlreadyTaken", taken.text
    assert server.count("POST", f"{MOUNT}/data/") == writes + 1, (
        "the credential was not written, so this proves nothing"
    )
    assert set(server.secrets) == before


def test_an_outage_stops_only_credentials_that_were_not_read_before(
    world: World, admin: Person, server: VaultServer
) -> None:
    known, unread = warehouses.make(world, admin), warehouses.make(world, admin)
    table = known.table(admin)
    assert vended(admin, table).status_code == 200
    server.sealed = True
    before = world.sql("select count(*) as n from warehouses")[0]["n"]
    refused = admin.post(warehouses.WAREHOUSE, warehouses.creation(world))
    assert refused.status_code == 503
    assert "secret store does not answer" in refused.json()["error"]["message"]
    assert refused.headers["Retry-After"]
    assert world.sql("select count(*) as n from warehouses")[0]["n"] == before
    assert vended(admin, table).json()["storage-credentials"]
    assert admin.get(f"{unread.root}/namespaces").status_code == 200, "metadata needs no secret"
    # A change of the catalog gets 429: clients would read 503 as an unknown outcome.
    space = {"namespace": ["outage"]}
    assert admin.post(f"{unread.root}/namespaces", space).status_code == 200
    schema: dict[str, Any] = {"type": "struct", "fields": []}
    failed = admin.post(f"{unread.root}/namespaces/outage/tables", {"name": "t", "schema": schema})
    assert failed.status_code == 429, failed.text

    def reported() -> str:
        health = admin.get("/health")
        assert health.status_code == 200, "an outage of the secret store must not take gateways out of service"
        return str(health.json()["services"]["secrets"][0]["status"])

    warehouses.until(lambda: reported() == "error")
    server.sealed = False
    assert admin.post(f"{unread.root}/namespaces/outage/tables", {"name": "t", "schema": schema}).status_code == 200
    # The credential of the refused creation may have arrived late: its id was recorded before.
    sweep(world, server)
    used = {str(row["id"]) for row in world.sql("select id from secrets where store = 'kv2'")}
    assert {key.removeprefix("lakegate/") for key in server.secrets} == used


def test_a_gateway_that_vault_refuses_does_not_start(world: World, server: VaultServer) -> None:
    wrong = lakegate(world, "serve", **settings(server, KV2__PASSWORD="not the password"))
    assert wrong.returncode == 1
    assert "cannot serve: The secret store kv2 cannot be used: Vault refused the login at auth/userpass" in wrong.stderr
    assert "not the password" not in wrong.stderr
    mount = lakegate(world, "serve", **settings(server, KV2__SECRET_MOUNT="elsewhere"))
    assert (mount.returncode, "'elsewhere' (KV2__SECRET_MOUNT) does not exist" in mount.stderr) == (1, True)
    missing = lakegate(world, "serve", SECRET_BACKEND="kv2", KV2__URL=server.url)
    assert missing.returncode == 1
    for name in ("SECRET_MOUNT", "USER", "PASSWORD"):
        assert f"LAKEGATE__KV2__{name} must be set" in missing.stderr
    unknown = lakegate(world, "serve", SECRET_BACKEND="kv3")
    assert (unknown.returncode, "lakegate.secrets has the name 'kv3'. Known names: kv2" in unknown.stderr) == (1, True)


def test_credentials_are_moved_into_vault_and_back(world: World, admin: Person, server: VaultServer) -> None:
    table = world.table(world.namespace())
    held = "select count(*) as n from warehouses w join secrets s on s.id = w.secret_id where s.store = $1"

    def count(store: str) -> int:
        return int(world.sql(held, store)[0]["n"])

    elsewhere, total = count("postgres"), count("postgres") + count("kv2")
    assert elsewhere
    try:
        dry = lakegate(world, "secrets", "move", "--dry-run", **settings(server))
        assert (dry.returncode, f"0 credentials moved to kv2, {elsewhere} left" in dry.stdout) == (NOT_YET, True), dry
        server.sealed = True
        outage = lakegate(world, "secrets", "move", **settings(server))
        assert (outage.returncode, "does not answer" in outage.stderr) == (1, True)
        assert count("postgres") == elsewhere
        server.sealed = False
        done = lakegate(world, "secrets", "move", **settings(server))
        assert (done.returncode, f"{elsewhere} credentials moved to kv2, 0 left" in done.stdout) == (0, True), done
        assert (count("postgres"), count("kv2")) == (0, total)
        assert vended(admin, table.path).json()["storage-credentials"]
        again = lakegate(world, "secrets", "move", **settings(server))
        assert (again.returncode, "0 credentials moved to kv2, 0 left" in again.stdout) == (0, True)
    finally:
        back = {"SECRET_BACKEND": "postgres", "SECRET_BACKENDS_ALSO_READ": "kv2"}
        returned = lakegate(world, "secrets", "move", **settings(server, **back))
        assert (returned.returncode, f"{total} credentials moved to postgres" in returned.stdout) == (0, True), returned
    assert vended(world.admin, table.path).json()["storage-credentials"]
    sweep(world, server)
    assert server.secrets == {}
    recorded = world.sql("select 1 from audit_log where operation = 'move_secret'")
    assert len(recorded) >= elsewhere + total
