# SPDX-License-Identifier: Apache-2.0
"""Rows of credentials in a store outside of PostgreSQL: no interleaving loses a used credential or keeps an unused one.

Each test runs on the database of the stack, with a store in memory whose failures it controls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import psutil
import pytest
from sqlalchemy import text

from gateway.access.dependency_errors import CommitUnknown
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.secrets import Sealer, SecretUnreadable
from gateway.db.credentials.stored_secrets import CredentialExpired, PostgresSecrets, reserve
from gateway.db.engine.database import Database
from gateway.secret_stores.port import SecretStores, SecretStoreUnavailable
from gateway.settings.env import Secret
from gateway.settings.postgres import asyncpg_url
from gateway.storage.registry import decode_credential, stored_profile
from lakegate.conformance.secrets import SecretSubject, check_secret_store
from lakegate.local.ready import Ready

PLAIN = (
    b'{"type":"s3","credential-type":"access-key","access-key-id":"AKIAEXAMPLE","secret-access-key":"wJalrXUtnFEMI"}'
)


class MemoryStore:
    """A secret store in memory. While `down`, every call fails; `reads` counts reads."""

    name = "memory"

    def __init__(self) -> None:
        self.held: dict[UUID, bytes] = {}
        self.down = False
        self.late = False
        self.reads = 0

    async def put(self, id: UUID, plain: bytes) -> None:
        if self.late:
            self.held[id] = plain
        self._require_up()
        self.held[id] = plain

    async def get(self, id: UUID) -> bytes:
        self.reads += 1
        await asyncio.sleep(0.01)
        self._require_up()
        if id not in self.held:
            raise SecretUnreadable("the secret does not exist")
        return self.held[id]

    async def delete(self, id: UUID) -> None:
        self._require_up()
        self.held.pop(id, None)

    async def check(self) -> None:
        self._require_up()

    async def close(self) -> None:
        """Keep everything."""

    def _require_up(self) -> None:
        if self.down:
            raise SecretStoreUnavailable("down")


@pytest.fixture
async def database(stack: Ready) -> AsyncIterator[Database]:
    database = Database(asyncpg_url(Secret(stack.postgres)), pool_size=3, acquire_timeout=5)
    yield database
    async with database.transaction() as connection:
        await connection.execute(text("delete from secrets where store = 'memory'"))
    await database.close()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def storage(database: Database, store: MemoryStore) -> StorageCredentials:
    postgres = PostgresSecrets(database, Sealer(["a key that seals nothing here"]))
    return StorageCredentials(database, SecretStores(store, [postgres]))


async def age(database: Database, id: UUID) -> None:
    """Make an unused credential older than its retention."""
    async with database.transaction() as connection:
        old = "update secrets set replaced_at = replaced_at - interval '11 minutes' where id = :id"
        await connection.execute(text(old), {"id": id})


async def is_recorded(database: Database, id: UUID) -> bool:
    async with database.read() as connection:
        return (await connection.execute(text("select 1 from secrets where id = :id"), {"id": id})).first() is not None


async def used(database: Database, storage: StorageCredentials) -> UUID:
    async with storage.written_content(PLAIN) as written, database.transaction() as connection:
        id = await written.use(connection)
    assert id is not None
    return id


def warehouse(id: UUID) -> ResolvedWarehouse:
    """Return a warehouse with the credential `id`."""
    return ResolvedWarehouse(
        id=uuid4(),
        project_id="project",
        name="warehouse",
        active=True,
        decode=stored_profile,
        profile=b"{}",
        profile_version=1,
        credential_id=id,
        allowed_format_versions=(2,),
        default_format_version=None,
    )


async def test_a_used_credential_survives_every_sweep(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    id = await used(database, storage)
    await age(database, id)
    await storage.sweep(limit=100)
    assert store.held == {id: PLAIN}
    assert await storage.of(warehouse(id)) == decode_credential(PLAIN)


async def test_a_failed_transaction_deletes_the_credential_at_once(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    ids: list[UUID] = []
    with pytest.raises(ZeroDivisionError):
        async with storage.written_content(PLAIN) as written, database.transaction() as connection:
            ids += [id for id in [await written.use(connection)] if id]
            assert list(store.held) == ids
            raise ZeroDivisionError
    assert store.held == {}
    # A write may still be on its way, so the row remains until a second deletion.
    assert await is_recorded(database, ids[0])
    store.held[ids[0]] = PLAIN
    await age(database, ids[0])
    await storage.sweep(limit=100)
    assert store.held == {} and not await is_recorded(database, ids[0])


async def test_an_unknown_outcome_of_a_committed_transaction_keeps_the_credential(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    with pytest.raises(CommitUnknown):
        async with storage.written_content(PLAIN) as written:
            async with database.transaction() as connection:
                await written.use(connection)
            raise CommitUnknown("COMMIT was sent, and its answer was lost")
    assert list(store.held) == [written.id]
    assert written.id is not None
    await age(database, written.id)
    await storage.sweep(limit=100)
    assert list(store.held) == [written.id]


async def test_a_cancelled_request_waits_for_its_open_commit_before_it_deletes(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    async with database.engine.connect() as connection:
        await connection.begin()

        async def lost() -> None:
            async with storage.written_content(PLAIN) as written:
                await written.use(connection)
                raise CommitUnknown("the connection was lost")

        request = asyncio.create_task(lost())
        await asyncio.sleep(0.3)
        assert not request.done() and len(store.held) == 1
        await connection.commit()
        with pytest.raises(CommitUnknown):
            await request
    assert len(store.held) == 1


async def test_a_write_that_failed_is_swept_even_if_it_arrived(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    store.down = store.late = True
    with pytest.raises(SecretStoreUnavailable):
        await used(database, storage)
    [id] = store.held
    await age(database, id)
    await storage.sweep(limit=100)
    assert list(store.held) == [id] and await is_recorded(database, id), "an outage must not lose the row"
    store.down = False
    await storage.sweep(limit=100)
    assert store.held == {} and not await is_recorded(database, id)


async def test_a_transaction_that_comes_too_late_is_refused(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    with pytest.raises(CredentialExpired):
        async with storage.written_content(PLAIN) as written:
            assert written.id is not None
            await age(database, written.id)
            async with database.transaction() as connection:
                await written.use(connection)
    assert store.held == {}


async def test_a_sweep_skips_a_credential_that_an_open_transaction_uses(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    async with storage.written_content(PLAIN) as written:
        assert written.id is not None
        await age(database, written.id)
        async with database.transaction() as connection:
            # As a transaction that marked the row in time, and has been open for longer than the retention.
            marked = text("update secrets set replaced_at = null where id = :id")
            await connection.execute(marked, {"id": written.id})
            await storage.sweep(limit=100)
    assert list(store.held) == [written.id]
    assert await is_recorded(database, written.id)


async def test_cached_credentials_outlive_an_outage_and_failures_are_not_cached(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    known, unread = await used(database, storage), await used(database, storage)
    await storage.of(warehouse(known))
    store.down = True
    assert await storage.of(warehouse(known)) == decode_credential(PLAIN)
    for _ in range(2):
        with pytest.raises(SecretStoreUnavailable):
            await storage.of(warehouse(unread))
    store.down = False
    assert await storage.of(warehouse(unread)) == decode_credential(PLAIN)
    with pytest.raises(SecretUnreadable):
        await storage.of(warehouse(uuid4()))


async def test_concurrent_requests_share_a_read_and_a_cancelled_one_does_not_end_it(
    database: Database, storage: StorageCredentials, store: MemoryStore
) -> None:
    id = await used(database, storage)
    requests = [asyncio.create_task(storage.of(warehouse(id))) for _ in range(20)]
    await asyncio.sleep(0)
    requests[0].cancel()
    found = await asyncio.gather(*requests[1:])
    assert found == [decode_credential(PLAIN)] * 19
    assert store.reads == 1


async def test_a_failed_transaction_leaves_no_row_in_postgresql(database: Database) -> None:
    postgres = PostgresSecrets(database, Sealer(["a key that is long enough"]))
    storage = StorageCredentials(database, SecretStores(postgres))
    id = await used(database, storage)
    assert await postgres.get(id) == PLAIN
    with pytest.raises(ZeroDivisionError):
        async with storage.written_content(PLAIN) as written:
            raise ZeroDivisionError
    assert written.id is not None and not await is_recorded(database, written.id)
    await postgres.delete(id)
    assert await is_recorded(database, id), "a used credential must not be deleted"
    async with database.transaction() as connection:
        await connection.execute(text("delete from secrets where id = :id"), {"id": id})


async def test_the_store_in_postgresql_keeps_the_rules_of_secret_stores(stack: Ready, database: Database) -> None:
    async def reserved() -> UUID:
        async with database.transaction() as connection:
            return await reserve(connection, "postgres")

    # The key of the stack: with another one, the store would report that it cannot read the credentials of warehouses.
    sealer = Sealer([psutil.Process(stack.pids["gateway"][0]).environ()["LAKEGATE__PG_ENCRYPTION_KEY"]])
    await check_secret_store(SecretSubject("postgres", lambda: PostgresSecrets(database, sealer), reserved))
