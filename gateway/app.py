# SPDX-License-Identifier: Apache-2.0
"""The composition root: connect the components of a process, which `gateway.assembly` creates from the settings.

Granian calls `create_worker` in each worker process. Components that need the running event loop are created in the
lifespan of the application.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Literal
from uuid import UUID, uuid4

import gateway.features.all_routes  # noqa: F401 - importing the module registers all routes
from gateway.access.door.door import Door
from gateway.access.operations.live_credentials import LiveCredential
from gateway.api.build import Application, build_api
from gateway.api.services import Services
from gateway.assembly.adapters import (
    open_audit,
    open_database,
    open_opa,
    open_openfga,
    open_read_pool,
    open_sealer,
    open_stores,
    tuple_delivery,
)
from gateway.assembly.answers import answer_engines
from gateway.assembly.audit import count_refused_logins, start_audit_tasks
from gateway.assembly.authorizers import open_authorizers
from gateway.assembly.background import (
    drift_repair,
    scope_canary,
    start_counting,
    start_tasks,
    warn_of_former_grants,
    watch_drift,
)
from gateway.assembly.door import build_door
from gateway.assembly.events import start_events
from gateway.assembly.identity import Identity, open_identity
from gateway.assembly.secret_stores import open_secret_stores, watch_secret_stores
from gateway.assembly.tracing import open_tracer, traced_application
from gateway.assembly.use_cases import build_services, open_kit
from gateway.assembly.verifiers import open_verifiers
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.secrets import Sealer
from gateway.db.engine.database import Database
from gateway.db.migrate import SchemaMismatch
from gateway.db.pools.connection_errors import connection_fault
from gateway.db.warehouses import servers
from gateway.features.credentials import encryption_keys
from gateway.features.credentials.encryption_keys import KeyRotation, MoveResult, RotationResult, SecretMove
from gateway.features.credentials.scope_canary import require_no_escape
from gateway.features.live_credentials import live_credentials as register
from gateway.features.principals import scim_tokens as provisioning_tokens
from gateway.features.server import servers as bootstrap
from gateway.features.tuples.reconcile import Comparison, ReportFinding
from gateway.features.tuples.watch import run_delivery
from gateway.fga.client import FgaClient
from gateway.fga.model import ModelNotReady
from gateway.fga.model_analysis import FollowedReaches
from gateway.opa.cache import CachedPolicies
from gateway.opa.decider import OpaDecider
from gateway.settings import Settings, certificate_sources, load, metrics_directory
from gateway.storage.registry import stored_profile
from gateway.telemetry.calls import Calls
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.logs import configure_logging, get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.tracing import Tracer
from gateway.tls import trusted
from gateway.vending.scope_proof import ProofReport, prove_locations
from gateway.vending.scope_verdict import ScopeReport
from gateway.worker_processes import collection_paused, end_with_main_process

_log = get_logger("app")


def create_app(settings: Settings | None = None, *, cannot_start: Callable[[str], None] | None = None) -> Application:
    """Return the application of one worker process. If `settings` is None, read them from the environment.

    `cannot_start` is called with the reason if a service that is needed for the start does not respond or refuses.
    """
    settings = settings or load()
    settings.require_serving()
    configure_logging(level=settings.log_level.upper())
    directory = metrics_directory()
    metrics = Metrics(multiprocess_dir=Path(directory) if directory else None)
    calls = Calls()
    tracer = open_tracer(settings, metrics)

    async def assemble(stack: AsyncExitStack) -> Services:
        try:
            return await _assemble(settings, metrics, calls, tracer, stack)
        except Exception as error:
            refused = str(error) if isinstance(error, (ModelNotReady, SchemaMismatch)) else None
            reason = connection_fault(error) or refused
            if cannot_start is not None and reason is not None:
                cannot_start(reason)
            raise

    application, _ = build_api(
        assemble,
        observer=metrics,
        calls=calls,
        max_body_bytes=settings.max_request_body_size,
        max_seconds=settings.max_request_time,
        max_silence=settings.max_request_silence,
        compress=settings.compress_responses,
        allowed_origins=settings.allow_origin,
    )
    return traced_application(application, tracer)


def create_worker() -> Application:
    """Return the application of a worker process, which ends with the main process. Exclude existing objects from
    garbage collection.

    About 200,000 objects, mostly of modules, live as long as the process. A full collection that visits them would
    block all requests of the worker for about 0.1 seconds.
    """
    end_with_main_process()
    with collection_paused():
        return create_app(cannot_start=_end_process)


def _end_process(reason: str) -> None:
    """Log the reason and end the process. Otherwise the server would print the traceback twice for each worker."""
    _log.error("gateway.start_failed", reason=reason)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


async def _assemble(
    settings: Settings, metrics: Metrics, calls: Calls, tracer: Tracer | None, stack: AsyncExitStack
) -> Services:
    """Create all components of one process. Closing `stack` closes them in reverse order."""
    trust = trusted(*certificate_sources())
    database = await open_database(settings, trust, stack, traced=tracer is not None)
    async with database.transaction() as connection:
        server_id = await servers.ensure(connection, settings.server_id)
    reads = open_read_pool(settings, trust, database, server_id, stack)
    fga = await open_openfga(settings, trust, database, stack, traced=tracer is not None)
    opa = open_opa(settings, trust, stack, traced=tracer is not None)
    audit = await open_audit(settings, metrics, database, stack)
    refused = count_refused_logins(settings, audit, stack)
    identity = await open_identity(settings, trust, metrics, stack)
    policies = CachedPolicies(
        opa,
        observer=metrics,
        silent_callers=settings.memory.silent_callers,
    )
    stack.callback(asyncio.create_task(policies.watch(), name="policies").cancel)
    reaches = FollowedReaches(fga)
    await reaches()
    narrowed = open_authorizers(settings.authorizers, database, fga, stack)
    door = build_door(settings, database, fga, reaches, server_id, policies, audit, metrics, narrowed)
    delivery = tuple_delivery(settings, database, fga, metrics, tracer)
    # The delivery also runs in read-only maintenance: acknowledged changes must take effect, and drift may give rights
    # without a grant.
    stack.callback(asyncio.create_task(run_delivery(delivery, database), name="outbox").cancel)
    keeper, reconcile = drift_repair(settings, database, fga, delivery, door, metrics)
    watch_drift(settings, metrics, database, fga, keeper, reconcile, stack)
    health = await _health(settings, database, fga, opa, identity, stack)
    sealer = await open_sealer(settings, database)
    secret_stores = open_secret_stores(settings, trust, database, sealer, stack)
    stores = open_stores(settings, trust, metrics, database, sealer, secret_stores, stack)
    await stores.storage.check()
    watch_secret_stores(health, secret_stores)
    start_events(settings, trust, metrics, database, health, stack, tracer)
    panel = open_verifiers(settings, trust, metrics, health, stack)
    narrowed.watch(health)
    if settings.maintenance_mode == "off":
        start_tasks(settings, metrics, database, door, delivery, stores, stack, tracer)
        warn_of_former_grants(database, fga, stack)
        await start_audit_tasks(settings, trust, metrics, health, stack, tracer)
        start_counting(settings, database, calls, stack)
    slots = door.hypothetical_checks.slots
    answers = answer_engines(settings, database, fga, reaches, opa, metrics, narrowed, slots)
    kit = open_kit(settings, metrics, database, reads, door, delivery, server_id, stores, reaches, answers, panel)
    return build_services(settings, metrics, kit, health, identity, refused)


async def _health(
    settings: Settings, database: Database, fga: FgaClient, opa: OpaDecider, identity: Identity, stack: AsyncExitStack
) -> HealthMonitor:
    """Start the health monitor, which checks each external system."""
    health = HealthMonitor(
        interval_seconds=settings.health_check_frequency_seconds, maintenance_mode=settings.maintenance_mode
    )
    health.register("catalog", "write_pool", database.ping)
    health.register("auth", "openfga", fga.ping)
    health.register("policy", "opa", opa.ping)
    health.register("storage", "credential_scope", partial(require_no_escape, database), required=False)
    for id, check in identity.checks.items():
        health.register("identity", id, check, alternative=True)
    return await stack.enter_async_context(health)


async def reconcile(
    settings: Settings, *, repair: bool, report: ReportFinding, restored: Literal["revoke", "give-back"] | None = None
) -> Comparison:
    """Compare all tuples with all rows once, for `lakegate authz reconcile`. With `repair`, repair the drift.

    `report` is called with each finding. `restored` is for a restored database: grants that OpenFGA does not have are
    revoked (`revoke`) or written to OpenFGA again (`give-back`). If `repair` is set too, the database is recorded as
    the current one, so that gateways start. Raises EmptyStore, the errors of starting a gateway, and those of the door.
    """
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        accept_moved_database = restored is not None or not repair
        database, fga, door = await _for_a_command(
            settings, metrics, stack, accept_moved_database=accept_moved_database
        )
        delivery = tuple_delivery(settings, database, fga, metrics)
        revoke = restored == "revoke"
        _, comparing = drift_repair(settings, database, fga, delivery, door, metrics, revoke_lost=revoke)
        if revoke and repair:
            await comparing.require_some_grants()
        settles = restored is not None and repair
        postponed = await comparing.discard_pending_work() if settles else 0
        compared = await comparing.run(repair=repair, report=report)
        compared.postponed = postponed
        if settles:
            async with database.transaction() as connection:
                await servers.settle(connection)
        return compared


async def change_keys(settings: Settings, *, seal: bool) -> RotationResult:
    """Encrypt every stored credential with the first key in the current format, for `lakegate secrets rotate`.

    Without `seal`, only count. Raises NotAllReadable, the errors of starting a gateway, and those of the door.
    """
    async with AsyncExitStack() as stack:
        sealer = Sealer(settings.encryption_keys())
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        return await KeyRotation(database=database, door=door, sealer=sealer).run(seal=seal)


async def move_secrets(settings: Settings, *, move: bool) -> MoveResult:
    """Move every storage credential into the secret store in the settings, for `lakegate secrets move`.

    Without `move`, only count. Raises the errors of the secret stores and of starting a gateway, and those of the door.
    """
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        sealer = await open_sealer(settings, database)
        stores = open_secret_stores(settings, trusted(*certificate_sources()), database, sealer, stack)
        await stores.current.check()
        storage = StorageCredentials(database, stores)
        return await SecretMove(database=database, door=door, storage=storage, to=stores.current.name).run(move=move)


async def verify_scope(
    settings: Settings, *, warehouse: str, locations: int, seed: int
) -> tuple[str, ScopeReport, ProofReport | None]:
    """Run the canary for a warehouse, and prove its policies for random locations, for `lakegate verify-scope`.

    Return (name of the warehouse, result of the canary, result of the proof; None if there are no policies). Raises
    NoSuchWarehouse, the errors of starting a gateway, and those of the door.
    """
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, metrics, stack)
        sealer = await open_sealer(settings, database)
        trust = trusted(*certificate_sources())
        secret_stores = open_secret_stores(settings, trust, database, sealer, stack)
        stores = open_stores(settings, trust, metrics, database, sealer, secret_stores, stack)
        found, report = await scope_canary(settings, metrics, database, door, stores).verify(warehouse)
    return found.name, report, prove_locations(stored_profile(found.profile), count=locations, seed=seed)


async def reopen_bootstrap(settings: Settings, *, user_id: str | None) -> bool:
    """Allow one more bootstrap of the server, for `lakegate reopen-bootstrap`.

    `user_id` is the only user who can do it. If it is None, the first caller with a token can. Return True if the
    server still has an administrator. Raises the errors of starting a gateway, and those of the door.
    """
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        return await bootstrap.reopen(database=database, door=door, user_id=user_id)


async def revoke_own_signing_keys(settings: Settings) -> int:
    """Revoke the signing keys of the gateway's own tokens, for `lakegate secrets withdraw-signing-keys`.

    Return the number of revoked keys. Raises the errors of starting a gateway, and those of the door.
    """
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        return await encryption_keys.revoke(database=database, door=door)


async def change_events(settings: Settings, work: Callable[[Database, Door], Awaitable[int]]) -> int:
    """Return the result of `work`, a function of `gateway.features.events.events`, for `lakegate events`.

    Raises the errors of starting a gateway, and those of the door.
    """
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        return await work(database, door)


async def issue_scim_token(
    settings: Settings, make: Callable[[UUID], tuple[str, bytes]], provider: str, project: str, days: int
) -> tuple[str, provisioning_tokens.Issued]:
    """Issue a SCIM provisioning token for an identity provider and a project, for `lakegate secrets scim-token issue`.

    `make` returns (token, digest) for a token id; `days` is the lifetime. Return (token, stored record). Raises
    NoSuchProject, the errors of starting a gateway, and those of the door.
    """
    id = uuid4()
    text, digest = make(id)
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        issued = await provisioning_tokens.issue(
            database=database, door=door, id=id, digest=digest, provider_id=provider, project_id=project, days=days
        )
    return text, issued


async def revoke_scim_token(settings: Settings, id: UUID) -> bool:
    """Revoke a SCIM provisioning token. Return False if no valid token has this id.

    Raises the errors of `revoke_own_signing_keys`.
    """
    async with AsyncExitStack() as stack:
        database, _, door = await _for_a_command(settings, Metrics(), stack)
        return await provisioning_tokens.revoke(database=database, door=door, id=id)


async def scim_tokens(settings: Settings) -> list[provisioning_tokens.Known]:
    """Return all issued SCIM provisioning tokens, newest first. Raises the errors of `open_database`."""
    async with AsyncExitStack() as stack:
        return await provisioning_tokens.list_all(await open_database(settings, trusted(*certificate_sources()), stack))


async def live_credentials(
    settings: Settings, warehouse: str | None, table: str | None, user: str | None
) -> list[LiveCredential]:
    """Return live credentials, for `lakegate live-credentials`. Raises NotFound and the errors of `open_database`."""
    async with AsyncExitStack() as stack:
        database = await open_database(settings, trusted(*certificate_sources()), stack)
        return await register.find(database, warehouse=warehouse, table=table, user=user)


async def _for_a_command(
    settings: Settings, metrics: Metrics, stack: AsyncExitStack, *, accept_moved_database: bool = False
) -> tuple[Database, FgaClient, Door]:
    """Return (database, OpenFGA client, door) for a command. `accept_moved_database` is passed to `open_database`."""
    trust = trusted(*certificate_sources())
    database = await open_database(settings, trust, stack, accept_moved_database=accept_moved_database)
    fga = await open_openfga(settings, trust, database, stack)
    audit = await open_audit(settings, metrics, database, stack)
    opa = open_opa(settings, trust, stack)
    return database, fga, build_door(settings, database, fga, FollowedReaches(fga), None, opa, audit, metrics)
