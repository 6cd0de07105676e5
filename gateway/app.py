# SPDX-License-Identifier: Apache-2.0
"""The composition root: the only module that names concrete classes and joins them.

`create_app` is what Granian calls in each worker. Everything that needs the running loop is made in the lifespan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.audit_record import AuditRecord
from gateway.access.door import Door
from gateway.access.listing import ReachesInUse
from gateway.access.ports import Policies
from gateway.access.tuples import TupleKey
from gateway.api.build import Application, build_api
from gateway.api.context import Parts
from gateway.audit.sink import BufferedAudit
from gateway.catalog.commits import Commits
from gateway.catalog.config import Configurations
from gateway.catalog.credentials import Credentials
from gateway.catalog.deleted import DeletedTables
from gateway.catalog.generic_tables import GenericTables
from gateway.catalog.lists import Lists
from gateway.catalog.metadata_files import MetadataFiles
from gateway.catalog.namespaces import Namespaces
from gateway.catalog.registrations import Registrations
from gateway.catalog.renames import Renames
from gateway.catalog.reports import Reports
from gateway.catalog.tables import Tables
from gateway.catalog.views import Views
from gateway.db import audit_log, servers
from gateway.db.credentials import StorageCredentials
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database
from gateway.db.idempotency import Idempotency
from gateway.db.migrate import require_current_schema
from gateway.db.models import ActiveModel, active_model
from gateway.db.pending_files import PendingFiles
from gateway.db.resolver import DatabaseResolver
from gateway.db.secrets import Sealer
from gateway.db.tasks import Queue
from gateway.db.turns import SharedTurns
from gateway.fga.client import FgaClient
from gateway.fga.model import ModelNotReady, StoreAndModel, find_model
from gateway.fga.reach import FollowedReaches
from gateway.fga.relationships import FgaRelationships, to_wire
from gateway.fga.remembered import RememberedRelationships
from gateway.governance.checks import Checks
from gateway.governance.grant_lists import GrantLists
from gateway.governance.grants import Grants
from gateway.governance.managed_access import ManagedAccess
from gateway.governance.namespace_moves import NamespaceMoves
from gateway.governance.projects import Projects
from gateway.governance.protection import Protection
from gateway.governance.rights import Rights
from gateway.governance.roles import Roles
from gateway.governance.search import Search
from gateway.governance.servers import Servers
from gateway.governance.statistics import Statistics
from gateway.governance.storage_reports import StorageTrials
from gateway.governance.task_queues import TaskQueues
from gateway.governance.tasks import Tasks
from gateway.governance.users import Users
from gateway.governance.warehouse_changes import WarehouseChanges
from gateway.governance.warehouse_storage import WarehouseStorage
from gateway.governance.warehouses import Warehouses
from gateway.iceberg.limits import Limits
from gateway.identity.bearer import bearer_token
from gateway.identity.fetch import HttpFetcher
from gateway.identity.keys import KeyRing
from gateway.identity.remembered import RememberedTokens
from gateway.identity.tokens import TokenRules, TokenVerifier
from gateway.opa.decider import OpaDecider
from gateway.opa.remembered import RememberedPolicies
from gateway.scope.endpoint import DEFAULT_RULES
from gateway.settings import Settings, asyncpg_url, certificate_sources, load, metrics_directory
from gateway.storage.files import Files
from gateway.tasks.drift import DriftKeeper, External
from gateway.tasks.housekeeping import Housekeeping
from gateway.tasks.keys import KeyChange, SealAnew
from gateway.tasks.log_cleanup import LogCleanup
from gateway.tasks.model_changes import NOTICED_WITHIN, REQUIRED
from gateway.tasks.models import ModelWatch
from gateway.tasks.outbox import run_delivery, run_expiry
from gateway.tasks.purge import Purge
from gateway.tasks.reconcile import Comparison, Reconcile, Tell
from gateway.tasks.soft_deletion import SoftDeletion
from gateway.tasks.staged import ExpireStaged
from gateway.tasks.statistics import StatisticsKeeper
from gateway.tasks.watch import DriftWatch
from gateway.tasks.worker import Handler, Worker
from gateway.telemetry.calls import Calls
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.logs import configure_logging
from gateway.telemetry.metrics import Metrics
from gateway.trust import Trust, for_postgres, trusted
from gateway.vending.cache import CredentialCache, RememberedCredentials, uncached
from gateway.vending.sts import Sts
from gateway.vending.vendor import Vendor


def create_app(settings: Settings | None = None) -> Application:
    """The application of one worker, from the environment unless `settings` are given."""
    settings = settings or load()
    settings.require_serving()
    configure_logging(level=settings.log_level.upper())
    directory = metrics_directory()
    metrics = Metrics(multiprocess_dir=Path(directory) if directory else None)
    calls = Calls()

    async def assemble(stack: AsyncExitStack) -> Parts:
        return await _assemble(settings, metrics, calls, stack)

    application, _ = build_api(
        assemble,
        observer=metrics,
        calls=calls,
        max_body_bytes=settings.max_request_body_size,
        max_seconds=settings.max_request_time,
        max_silence=settings.max_request_silence,
    )
    return application


async def _assemble(settings: Settings, metrics: Metrics, calls: Calls, stack: AsyncExitStack) -> Parts:
    """All parts of one process; `stack` closes them in the reverse order."""
    trust = trusted(*certificate_sources())
    database = await _database(settings, trust, stack)
    async with database.transaction() as connection:
        server_id = await servers.ensure(connection, settings.server_id)
    fga = await _openfga(settings, trust, database, stack)
    opa = _opa(settings, trust, stack)
    audit = await _audit(settings, metrics, database, stack)
    keys, verifier = await _identity(settings, trust, metrics, stack)
    policies = RememberedPolicies(opa, entries=settings.memory.policy_answers, observer=metrics)
    stack.callback(asyncio.create_task(policies.watch(), name="policies").cancel)
    reaches = FollowedReaches(fga)
    await reaches()
    door = _door(settings, database, fga, reaches, policies, audit, metrics)
    delivery = _delivery(settings, database, fga, metrics)
    # Not paused by read-only maintenance: what was acknowledged is finished, and drift gives rights nobody gave.
    stack.callback(asyncio.create_task(run_delivery(delivery, database), name="outbox").cancel)
    keeper, reconcile = _drift(settings, database, fga, delivery, door, metrics)
    watch = DriftWatch(
        database=database,
        client=fga,
        keeper=keeper,
        reconcile=reconcile,
        observer=metrics,
        every=settings.drift.interval,
        overlap=settings.drift.overlap,
    )
    stack.push_async_callback(_ended, asyncio.create_task(watch.run(), name="drift"))
    health = HealthMonitor(
        interval_seconds=settings.health_check_frequency_seconds, maintenance_mode=settings.maintenance_mode
    )
    health.register("catalog", "write_pool", database.ping)
    health.register("auth", "openfga", fga.ping)
    health.register("policy", "opa", opa.ping)
    health.register("identity", "oidc", keys.check)
    await stack.enter_async_context(health)
    sts = Sts(on_latency=lambda seconds, outcome: metrics.sts_took(outcome, seconds), ca_bundle=trust.bundle)
    stores = Stores(
        storage=StorageCredentials(database, Sealer(settings.encryption_keys())),
        sts=sts,
        files=Files(own_role=sts.assume_own_role, certificates=trust.pem),
        vendor=Vendor(sts, cache=_credential_cache(settings, metrics)),
    )
    await stores.storage.require_right_key()
    if settings.maintenance_mode == "off":
        _work(settings, metrics, database, door, delivery, stores, stack)
        _count(settings, database, calls, stack)
    return _parts(settings, metrics, database, door, delivery, health, verifier, server_id, stores, reaches)


def _count(settings: Settings, database: Database, calls: Calls, stack: AsyncExitStack) -> None:
    """Write statistics down from time to time, and at the end."""
    keeper = StatisticsKeeper(
        database=database,
        calls=calls,
        default_project=settings.default_project_id if settings.enable_default_project else None,
        every=settings.endpoint_stat_flush_interval,
    )
    stack.push_async_callback(keeper.flush)
    stack.callback(asyncio.create_task(keeper.run(), name="statistics").cancel)


async def reconcile(
    settings: Settings, *, repair: bool, tell: Tell, restored: Literal["revoke", "give-back"] | None = None
) -> Comparison:
    """Compare all tuples with all rows, once, as `lakegate authz reconcile` asks for it.

    `restored` says what becomes of grants in a restored database that OpenFGA does not have, and settles it there.
    Raises what starting a gateway and passing its door raise, and `NothingToGoBy`.
    """
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        anywhere = restored is not None or not repair
        database, fga, door = await _for_a_command(settings, metrics, stack, anywhere=anywhere)
        delivery = _delivery(settings, database, fga, metrics)
        revoke = restored == "revoke"
        _, comparing = _drift(settings, database, fga, delivery, door, metrics, revoke_lost=revoke)
        if revoke and repair:
            await comparing.require_some_grants()
        settles = restored is not None and repair
        put_off = await comparing.forget_what_was_under_way() if settles else 0
        compared = await comparing.run(repair=repair, tell=tell)
        compared.put_off = put_off
        if settles:
            async with database.transaction() as connection:
                await servers.settle(connection)
        return compared


async def change_keys(settings: Settings, *, seal: bool) -> KeyChange:
    """Seal every stored credential with the first key, or only count, as `lakegate secrets rotate` asks for it.

    Raises `NotAllReadable`, and what starting a gateway and passing its door raise.
    """
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        return await SealAnew(database=database, door=door, sealer=Sealer(settings.encryption_keys())).run(seal=seal)


async def _for_a_command(
    settings: Settings, metrics: Metrics, stack: AsyncExitStack, *, anywhere: bool = False
) -> tuple[Database, FgaClient, Door]:
    """What a verb of the command line needs to pass the door."""
    trust = trusted(*certificate_sources())
    database = await _database(settings, trust, stack, anywhere=anywhere)
    fga = await _openfga(settings, trust, database, stack)
    audit = await _audit(settings, metrics, database, stack)
    return (
        database,
        fga,
        _door(settings, database, fga, FollowedReaches(fga), _opa(settings, trust, stack), audit, metrics),
    )


def _door(
    settings: Settings,
    database: Database,
    fga: FgaClient,
    reaches: FollowedReaches,
    policies: Policies,
    audit: BufferedAudit,
    metrics: Metrics,
) -> Door:
    return Door(
        resolver=DatabaseResolver(database),
        relationships=RememberedRelationships(
            FgaRelationships(fga, reaches),
            model_id=lambda: fga.model_id,
            entries=settings.memory.allows,
            seconds=settings.memory.allow_seconds,
            observer=metrics,
        ),
        policies=policies,
        audit=audit,
        observer=metrics,
        read_only=settings.maintenance_mode == "read-only",
    )


def _delivery(settings: Settings, database: Database, fga: FgaClient, metrics: Metrics) -> TupleDelivery:
    async def write_tuples(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        written = [to_wire(key, expires_at=end) for key, end in writes.items()]
        await fga.write(written, [to_wire(key) for key in deletes])

    settle_seconds = settings.openfga.timeout + settings.openfga.server_timeout + 1.0
    return TupleDelivery(database, write_tuples, metrics, settle_seconds=settle_seconds)


def _drift(
    settings: Settings,
    database: Database,
    fga: FgaClient,
    delivery: TupleDelivery,
    door: Door,
    metrics: Metrics,
    *,
    revoke_lost: bool = False,
) -> tuple[DriftKeeper, Reconcile]:
    keeper = DriftKeeper(
        database=database,
        client=fga,
        delivery=delivery,
        door=door,
        observer=metrics,
        external=External(settings.drift.external_grants),
        revoke_lost=revoke_lost,
    )
    return keeper, Reconcile(database=database, client=fga, door=door, keeper=keeper)


async def _ended(task: asyncio.Task[None]) -> None:
    """End a task that has something to leave behind."""
    task.cancel()
    await asyncio.wait([task], timeout=3)


@dataclass(frozen=True, slots=True)
class Stores:
    """What reaches object stores, shared by requests and background tasks."""

    storage: StorageCredentials
    sts: Sts
    files: Files
    vendor: Vendor


def _work(
    settings: Settings,
    metrics: Metrics,
    database: Database,
    door: Door,
    delivery: TupleDelivery,
    stores: Stores,
    stack: AsyncExitStack,
) -> None:
    """Start what this process changes by itself, beside requests."""
    handlers: dict[Queue, Handler] = {
        Queue.TABULAR_PURGE: Purge(
            database=database, door=door, files=stores.files, storage=stores.storage, vendor=stores.vendor
        ),
        Queue.EXPIRE_STAGED_TABLE: ExpireStaged(database=database, door=door),
        Queue.TASK_LOG_CLEANUP: LogCleanup(database=database, door=door),
        Queue.SOFT_DELETION: SoftDeletion(database=database, door=door, delivery=delivery),
    }
    slots = {
        Queue.SOFT_DELETION: settings.task_soft_deletion_workers,
        Queue.TABULAR_PURGE: settings.task_tabular_purge_workers,
        Queue.TASK_LOG_CLEANUP: settings.task_log_cleanup_workers,
        Queue.EXPIRE_STAGED_TABLE: settings.task_expire_staged_table_workers,
    }
    worker = Worker(database, handlers, observer=metrics, slots=slots, every=settings.task_poll_interval)
    housekeeping = Housekeeping(
        database=database,
        door=door,
        files=stores.files,
        storage=stores.storage,
        file_seconds=settings.metadata_cleanup_window,
    )
    # Ended with care: tasks that are under way are given back, so that another process has them at once.
    stack.push_async_callback(_ended, asyncio.create_task(worker.run(), name="worker"))
    for name, work in (("housekeeping", housekeeping.run()), ("expiry", run_expiry(delivery, database))):
        stack.callback(asyncio.create_task(work, name=name).cancel)


def _parts(
    settings: Settings,
    metrics: Metrics,
    database: Database,
    door: Door,
    delivery: TupleDelivery,
    health: HealthMonitor,
    verifier: RememberedTokens,
    server_id: UUID,
    stores: Stores,
    reaches: ReachesInUse,
) -> Parts:
    """The use cases, joined."""
    lists = Lists(database, door, reaches)
    once = settings.idempotency
    limits = _limits(settings)
    metadata_files = MetadataFiles(
        files=stores.files,
        storage=stores.storage,
        vendor=stores.vendor,
        pending=PendingFiles(database),
        limits=limits,
    )
    credentials = Credentials(database=database, door=door, vendor=stores.vendor, storage=stores.storage)
    tables = Tables(
        database=database, door=door, delivery=delivery, files=metadata_files, credentials=credentials, lists=lists
    )
    turns = SharedTurns(database)
    views = Views(database=database, delivery=delivery, files=metadata_files, turns=turns, lists=lists)
    trials = StorageTrials(
        files=stores.files,
        sts=stores.sts,
        endpoints=DEFAULT_RULES,
        skip=settings.skip_storage_validation,
        request_seconds=settings.max_request_time,
    )
    default_project = settings.default_project_id if settings.enable_default_project else None
    return Parts(
        door=door,
        authenticate=_authenticator(verifier, frozenset(settings.instance_admins)),
        health=health,
        swagger_ui=settings.serve_swagger_ui,
        page_size_max=settings.pagination_size_max,
        limits=limits,
        default_project_id=default_project,
        configurations=Configurations(
            base_uri=settings.base_uri,
            page_size=settings.pagination_size_default,
            idempotency_seconds=once.lifetime if once.enabled else None,
        ),
        namespaces=Namespaces(
            database=database,
            lists=lists,
            delivery=delivery,
            reserved=frozenset(name.lower() for name in settings.reserved_namespaces),
            limits=limits,
        ),
        tables=tables,
        commits=Commits(database=database, delivery=delivery, files=metadata_files, tables=tables, turns=turns),
        views=views,
        renames=Renames(database=database, delivery=delivery),
        generic_tables=GenericTables(
            database=database, delivery=delivery, files=metadata_files, credentials=credentials, lists=lists
        ),
        registrations=Registrations(
            database=database, delivery=delivery, files=metadata_files, tables=tables, views=views
        ),
        credentials=credentials,
        deleted=DeletedTables(database=database, lists=lists),
        servers=Servers(database=database, delivery=delivery, server_id=server_id, default_project_id=default_project),
        users=Users(database=database, delivery=delivery, page_size=settings.pagination_size_max),
        projects=Projects(database=database, door=door, delivery=delivery, server_id=server_id, reaches=reaches),
        warehouses=Warehouses(
            database=database,
            door=door,
            delivery=delivery,
            storage=stores.storage,
            trials=trials,
            reaches=reaches,
        ),
        warehouse_changes=WarehouseChanges(database=database, delivery=delivery),
        warehouse_storage=WarehouseStorage(database=database, storage=stores.storage, trials=trials),
        grants=Grants(database=database, door=door, delivery=delivery),
        grant_lists=GrantLists(database=database, door=door, page_size=settings.pagination_size_max),
        checks=Checks(door=door),
        rights=Rights(door=door),
        search=Search(database=database, door=door, reaches=reaches),
        statistics=Statistics(database=database, page_size=settings.pagination_size_max),
        roles=Roles(database=database, delivery=delivery, page_size=settings.pagination_size_max),
        managed_access=ManagedAccess(database=database, delivery=delivery),
        tasks=Tasks(database=database, door=door, page_size=settings.pagination_size_max),
        task_queues=TaskQueues(database=database),
        namespace_moves=NamespaceMoves(
            database=database,
            delivery=delivery,
            reserved=frozenset(name.lower() for name in settings.reserved_namespaces),
        ),
        protection=Protection(database=database),
        met=set(),
        reports=Reports(database=database),
        repetitions=(
            Idempotency(
                database,
                delivery,
                keep_seconds=once.lifetime + once.grace_period,
                lease_seconds=max(60.0, 2 * settings.max_request_time),
            )
            if once.enabled
            else None
        ),
    )


def _limits(settings: Settings) -> Limits:
    given = settings.limits
    return Limits(
        request_values=given.request_values,
        file_bytes=given.metadata_file_size,
        document_bytes=given.metadata_size,
        document_values=given.metadata_values,
        snapshots=given.snapshots,
        structures=given.structures,
        properties=given.properties,
    )


async def _database(settings: Settings, trust: Trust, stack: AsyncExitStack, *, anywhere: bool = False) -> Database:
    """The primary, which has exactly this version's schema and, unless it may be `anywhere`, is where it was."""
    url = asyncpg_url(settings.write_url())
    tls = for_postgres(settings.pg_ssl_mode, trust, settings.pg_ssl_root_cert)
    await require_current_schema(url, tls=tls)
    database = Database(
        url, pool_size=settings.pg_write_pool_connections, acquire_timeout=settings.pg_acquire_timeout, tls=tls
    )
    stack.push_async_callback(database.close)
    if not anywhere:
        async with database.read() as connection:
            await servers.require_home(connection)
    return database


async def _openfga(settings: Settings, trust: Trust, database: Database, stack: AsyncExitStack) -> FgaClient:
    """A client that asks by the model that serves, and follows when another one does."""
    at = settings.openfga
    key = at.api_key.reveal() if at.api_key else None
    async with database.read() as connection:
        active = await active_model(connection)
    if active is None:
        raise ModelNotReady("No relationship model serves yet; run `lakegate migrate` first.")

    async def fits(model: ActiveModel) -> StoreAndModel:
        found = await find_model(
            at.endpoint, key, at.store_name, demanded=REQUIRED, model_id=model.model_id, ca_bundle=trust.bundle
        )
        if found.store_id != model.store_id:
            raise ModelNotReady(
                f"The store {at.store_name!r} of OpenFGA is {found.store_id}, PostgreSQL knows {model.store_id}: one "
                "of the two was restored or made anew without the other."
            )
        return found

    found = await fits(active)
    client = FgaClient(
        at.endpoint,
        key,
        found.store_id,
        found.model_id,
        timeout_s=at.timeout,
        max_batch=at.max_batch_check_size,
        tls=trust.context,
    )
    stack.push_async_callback(client.aclose)
    watch = ModelWatch(database, client, fits=fits)
    stack.callback(asyncio.create_task(watch.run(every=NOTICED_WITHIN), name="model-watch").cancel)
    return client


def _opa(settings: Settings, trust: Trust, stack: AsyncExitStack) -> OpaDecider:
    token = settings.opa.token.reveal() if settings.opa.token else None
    opa = OpaDecider(settings.opa.url, token, timeout_s=settings.opa.timeout, tls=trust.context)
    stack.push_async_callback(opa.aclose)
    return opa


async def _audit(settings: Settings, metrics: Metrics, database: Database, stack: AsyncExitStack) -> BufferedAudit:
    async def write(records: Sequence[AuditRecord]) -> None:
        async with database.read() as connection:
            await audit_log.insert(connection, records)

    audit = BufferedAudit(
        write,
        counted=metrics.audited,
        capacity=settings.audit.buffer_size,
        flush_seconds=settings.audit.flush_interval / 2,
    )
    audit.start()
    stack.push_async_callback(audit.stop)
    return audit


def _credential_cache(settings: Settings, metrics: Metrics) -> CredentialCache:
    entries = settings.memory.credentials
    return RememberedCredentials(entries=entries, observer=metrics) if entries else uncached


async def _identity(
    settings: Settings, trust: Trust, metrics: Metrics, stack: AsyncExitStack
) -> tuple[KeyRing, RememberedTokens]:
    issuer = settings.openid_provider_uri or ""
    fetch = await stack.enter_async_context(HttpFetcher(tls=trust.context))
    keys = KeyRing(issuer, fetch)
    stack.push_async_callback(keys.aclose)
    rules = TokenRules(
        issuer=issuer,
        audiences=frozenset(settings.openid_audience),
        project_audiences=settings.project_audiences(),
        additional_issuers=frozenset(settings.openid_additional_issuers),
        required_scope=settings.openid_scope,
        subject_claims=settings.openid_subject_claim,
    )
    verifier = RememberedTokens(
        TokenVerifier(rules, keys).verify,
        generation=lambda: keys.generation,
        entries=settings.memory.tokens,
        seconds=settings.memory.token_seconds,
        observer=metrics,
    )
    return keys, verifier


def _authenticator(
    verifier: RememberedTokens, instance_admins: frozenset[str]
) -> Callable[[list[bytes]], Awaitable[Actor]]:
    async def authenticate(header_values: list[bytes]) -> Actor:
        token = await verifier.verify(bearer_token(header_values))
        return Actor.user(
            token.user_id,
            name=token.name,
            email=token.email,
            application=token.kind == "application",
            instance_admin=token.user_id in instance_admins,
            project=token.project_id,
        )

    return authenticate
