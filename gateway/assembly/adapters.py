# SPDX-License-Identifier: Apache-2.0
"""Create the clients of external systems from the settings: PostgreSQL, OpenFGA, OPA and object stores.

A client belongs to the event loop in which it is created. The exit stack `stack` closes the clients in reverse order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit
from uuid import UUID

from gateway.access.audit.audit_record import AuditRecord, IssuedCredential
from gateway.access.tuples import TupleKey
from gateway.assembly.traced_tasks import TracedDelivery
from gateway.assembly.tracing import call_hooks
from gateway.audit.sink import CAPACITY, BufferedAudit
from gateway.db.audit import audit_log
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.secrets import Sealer, sealer_for
from gateway.db.credentials.signing_keys import SigningKeys
from gateway.db.engine.database import Database
from gateway.db.engine.event_outbox import EventOutbox
from gateway.db.migrate import require_current_schema
from gateway.db.pools.statement_hooks import watch_statements
from gateway.db.resolver.resolver import frequent_reads
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.new_tuple_delivery import NewTuples
from gateway.db.warehouses import servers
from gateway.db.warehouses.models import ActiveModel, read_active_model
from gateway.db.warehouses.read_pool import ReadPool
from gateway.features.server.model_changes import NOTICED_WITHIN, REQUIRED, ModelWatch
from gateway.fga.client import FgaClient
from gateway.fga.model import ModelNotReady, StoreAndModel, find_model
from gateway.fga.relationships import to_wire
from gateway.identity.delegated import KEY_SIGNS_SECONDS, KEY_VERIFIES_SECONDS, DelegatedTokens
from gateway.identity.own_keys import OwnKeys
from gateway.opa.decider import OpaDecider
from gateway.scope.profile import StorageRules
from gateway.secret_stores.port import SecretStores
from gateway.settings import Settings
from gateway.settings.postgres import asyncpg_url
from gateway.storage.connector import Connector
from gateway.storage.files import Files
from gateway.storage.provider import ClientOptions, StorageClients
from gateway.storage.registry import open_clients
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.tracing import Tracer
from gateway.tls import Trust, for_postgres
from gateway.vending.cache import CachedCredentials, CredentialCache, uncached
from gateway.vending.vendor import Vendor


def event_outbox(settings: Settings) -> EventOutbox | None:
    """Return the outbox of change events; None if no sink is configured. Raises SettingsError for unusable sinks."""
    settings.events.require_usable()
    if not settings.events.sinks:
        return None
    host = urlsplit(settings.base_uri or "").hostname or "lakegate"
    return EventOutbox(
        source=f"uri:iceberg-catalog-service:{host}",
        sinks=settings.events.sink_names(),
        credentials_vended=settings.events.credentials_vended,
    )


async def open_database(
    settings: Settings,
    trust: Trust,
    stack: AsyncExitStack,
    *,
    accept_moved_database: bool = False,
    traced: bool = False,
) -> Database:
    """Open the primary database.

    Raises SettingsError for unusable event sinks, SchemaMismatch if the schema belongs to another version, and
    DatabaseUnavailable. Raises RestoredDatabase for a restored or copied database, unless `accept_moved_database` is
    set.
    """
    url = asyncpg_url(settings.write_url())
    tls = for_postgres(settings.postgres_tls_mode(), trust, settings.pg_ssl_root_cert)
    await require_current_schema(url, tls=tls)
    database = Database(
        url,
        pool_size=settings.pg_write_pool_connections,
        acquire_timeout=settings.pg_acquire_timeout,
        tls=tls,
        direct_reads=settings.pg_direct_reads,
        unshared_reads=settings.pg_unshared_reads,
        event_outbox=event_outbox(settings),
    )
    if traced:
        watch_statements(database.engine)
    stack.push_async_callback(database.close)
    await database.prepare(frequent_reads())
    if not accept_moved_database:
        async with database.read() as connection:
            await servers.require_same_database(connection)
    return database


def open_read_pool(
    settings: Settings, trust: Trust, database: Database, server_id: UUID, stack: AsyncExitStack
) -> ReadPool:
    """Return the pool for reads of the management API: the primary and, if configured, the replica, which may be
    unavailable.
    """
    url = settings.read_url()
    if url is None:
        return ReadPool(database, None, server_id)
    replica = Database(
        asyncpg_url(url),
        pool_size=settings.pg_read_pool_connections,
        acquire_timeout=settings.pg_acquire_timeout,
        # Shorter than on the primary: after this timeout, the primary runs the query.
        statement_timeout=5.0,
        tls=for_postgres(settings.postgres_tls_mode(url), trust, settings.pg_ssl_root_cert),
        read_only=True,
    )
    stack.push_async_callback(replica.close)
    return ReadPool(database, replica, server_id)


async def open_openfga(
    settings: Settings, trust: Trust, database: Database, stack: AsyncExitStack, *, traced: bool = False
) -> FgaClient:
    """Open a client of OpenFGA that uses the active model. Start a task that switches it when another model is
    activated.

    Raises ModelNotReady if no model is active, if the model lacks a required relation, or if the store is not the
    recorded one.
    """
    at = settings.openfga
    key = at.api_key.reveal() if at.api_key else None
    active = await read_active_model(database)
    if active is None:
        raise ModelNotReady("No relationship model is active; run `lakegate migrate` first.")

    async def require_model(model: ActiveModel) -> StoreAndModel:
        found = await find_model(
            at.endpoint, key, at.store_name, demanded=REQUIRED, model_id=model.model_id, ca_bundle=trust.bundle
        )
        if found.store_id != model.store_id:
            raise ModelNotReady(
                f"The store {at.store_name!r} of OpenFGA has the id {found.store_id}, but PostgreSQL records the id "
                f"{model.store_id}: one of the two was restored or recreated without the other. Restore the matching "
                "backup, or run `lakegate model push` and `lakegate model migrate`."
            )
        return found

    found = await require_model(active)
    client = FgaClient(
        at.endpoint,
        key,
        found.store_id,
        found.model_id,
        timeout_s=at.timeout,
        max_batch=at.max_batch_check_size,
        tls=trust.context,
        hooks=call_hooks("openfga") if traced else (),
    )
    stack.push_async_callback(client.aclose)
    watch = ModelWatch(database, client, require_model=require_model)
    stack.callback(asyncio.create_task(watch.run(every=NOTICED_WITHIN), name="model-watch").cancel)
    return client


def tuple_delivery(
    settings: Settings, database: Database, fga: FgaClient, metrics: Metrics, tracer: Tracer | None = None
) -> TupleDelivery:
    """Create the delivery, which writes to OpenFGA the tuples that the rows require."""

    async def write_tuples(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        written = [to_wire(key, expires_at=end) for key, end in writes.items()]
        await fga.write(written, [to_wire(key) for key in deletes])

    settle_seconds = settings.openfga.timeout + settings.openfga.server_timeout + 1.0
    new_tuples = NewTuples(settings.openfga.new_tuples)
    kind = TupleDelivery if tracer is None else partial(TracedDelivery, tracer)
    return kind(database, write_tuples, metrics, settle_seconds=settle_seconds, new_tuples=new_tuples)


def open_opa(settings: Settings, trust: Trust, stack: AsyncExitStack, *, traced: bool = False) -> OpaDecider:
    """Create the client of OPA."""
    token = settings.opa.token.reveal() if settings.opa.token else None
    hooks = call_hooks("opa") if traced else ()
    opa = OpaDecider(settings.opa.url, token, timeout_s=settings.opa.timeout, tls=trust.context, hooks=hooks)
    stack.push_async_callback(opa.aclose)
    return opa


async def open_audit(settings: Settings, metrics: Metrics, database: Database, stack: AsyncExitStack) -> BufferedAudit:
    """Start the audit sink, which writes its buffer to the database periodically."""

    outbox = event_outbox(settings)

    async def write(records: Sequence[AuditRecord], issued: Sequence[IssuedCredential]) -> None:
        await database.execute_repeatable(*audit_log.batch(records, issued, outbox))

    audit = BufferedAudit(
        write,
        counted=metrics.audited,
        share=min(settings.audit.principal_share, CAPACITY // 4),
    )
    audit.start()
    stack.push_async_callback(audit.stop)
    return audit


async def open_sealer(settings: Settings, database: Database) -> Sealer:
    """Create the sealer that encrypts stored secrets. It derives its keys once, in a thread."""
    async with database.read() as connection:
        return await sealer_for(connection, settings.encryption_keys())


def delegated_tokens(sealer: Sealer, database: Database, server_id: UUID) -> DelegatedTokens:
    """Create the signer and verifier of the gateway's own tokens. All processes share its keys."""
    keys = SigningKeys(database, sealer, signs_seconds=KEY_SIGNS_SECONDS, verifies_seconds=KEY_VERIFIES_SECONDS)
    return DelegatedTokens(server_id, OwnKeys(keys))


@dataclass(frozen=True, slots=True)
class Stores:
    """The components for access to object stores, shared by requests and background tasks."""

    storage: StorageCredentials
    clients: StorageClients
    files: Files
    vendor: Vendor
    rules: StorageRules
    sealer: Sealer


def open_stores(
    settings: Settings,
    trust: Trust,
    metrics: Metrics,
    database: Database,
    sealer: Sealer,
    secret_stores: SecretStores,
    stack: AsyncExitStack,
) -> Stores:
    """Create the components for access to object stores. The caller must await `storage.check()`."""
    rules = settings.storage_rules()
    connector = Connector(rules.endpoints)
    stack.callback(connector.close)
    clients = open_clients(
        ClientOptions(
            rules=rules,
            route=connector.route,
            certificates=trust.pem,
            ca_bundle=trust.bundle,
            own_keys_sign_anywhere=settings.sign_with_warehouse_keys,
            addresses=settings.storage.addresses(),
            on_session=lambda seconds, outcome: metrics.session_took(outcome, seconds),
        )
    )
    stack.callback(clients.close)
    return Stores(
        storage=StorageCredentials(database, secret_stores),
        clients=clients,
        files=Files(clients),
        vendor=Vendor(clients, cache=_credential_cache(settings, metrics)),
        rules=rules,
        sealer=sealer,
    )


def _credential_cache(settings: Settings, metrics: Metrics) -> CredentialCache:
    entries = settings.memory.credentials
    return CachedCredentials(entries=entries, observer=metrics) if entries else uncached
