# SPDX-License-Identifier: Apache-2.0
"""Start the background tasks of a process: task workers, housekeeping, drift repair, statistics.

Drift is a difference between OpenFGA's tuples and the rows. Closing the exit stack `stack` ends the tasks.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

from gateway.access.door.door import Door
from gateway.assembly.adapters import Stores
from gateway.assembly.engines import probe_rules
from gateway.assembly.traced_tasks import traced_handlers
from gateway.db.engine.database import Database
from gateway.db.tasks.tasks import Queue
from gateway.db.tuples.delivery import TupleDelivery
from gateway.features.credentials.scope_canary import ScopeCanary
from gateway.features.deletion.deleted import SoftDeletion
from gateway.features.deletion.purge import ExpireStaged, Purge
from gateway.features.engines.probe_expiry import ProbeExpiry
from gateway.features.principals.former_grantors import FormerGrantors
from gateway.features.server.housekeeping import Housekeeping
from gateway.features.statistics.statistics import StatisticsKeeper
from gateway.features.tasks.worker import Handler, LogCleanup, Worker
from gateway.features.tuples.drift import DriftKeeper
from gateway.features.tuples.drift_findings import External
from gateway.features.tuples.reconcile import Reconcile
from gateway.features.tuples.watch import DriftWatch, run_expiry
from gateway.fga.client import FgaClient
from gateway.fga.relationships import FgaRelationships
from gateway.settings import Settings
from gateway.telemetry.calls import Calls
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.tracing import Tracer


def drift_repair(
    settings: Settings,
    database: Database,
    fga: FgaClient,
    delivery: TupleDelivery,
    door: Door,
    metrics: Metrics,
    *,
    revoke_lost: bool = False,
) -> tuple[DriftKeeper, Reconcile]:
    """Return (repair of drift, full comparison). `revoke_lost` is passed to `DriftKeeper`."""
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


def watch_drift(
    settings: Settings,
    metrics: Metrics,
    database: Database,
    fga: FgaClient,
    keeper: DriftKeeper,
    reconcile: Reconcile,
    stack: AsyncExitStack,
) -> None:
    """Start the task that reads OpenFGA's change feed and repairs drift.

    It also runs in read-only maintenance, because drift can give rights without a grant.
    """
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


def warn_of_former_grants(database: Database, fga: FgaClient, stack: AsyncExitStack) -> None:
    """Start the task that warns of grants that their grantors could not give now."""
    grantors = FormerGrantors(database=database, relationships=FgaRelationships(fga))
    stack.callback(asyncio.create_task(grantors.run(), name="former-grants").cancel)


def start_tasks(
    settings: Settings,
    metrics: Metrics,
    database: Database,
    door: Door,
    delivery: TupleDelivery,
    stores: Stores,
    stack: AsyncExitStack,
    tracer: Tracer | None = None,
) -> None:
    """Start the background tasks that change data: task workers, housekeeping and expiry."""
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
    worker = Worker(
        database, traced_handlers(handlers, tracer), observer=metrics, slots=slots, every=settings.task_poll_interval
    )
    housekeeping = Housekeeping(
        database=database,
        door=door,
        files=stores.files,
        storage=stores.storage,
        file_seconds=settings.metadata_cleanup_window,
        observer=metrics,
    )
    # The worker releases its running tasks when it ends, so that another process can start them immediately.
    stack.push_async_callback(_ended, asyncio.create_task(worker.run(), name="worker"))
    probes = ProbeExpiry(
        database=database,
        observer=metrics.probes,
        valid_days=settings.engine_probes.valid_days,
        rules=probe_rules(settings.engine_probes),
    )
    works = (("housekeeping", housekeeping.run()), ("expiry", run_expiry(delivery, database)), ("probes", probes.run()))
    for name, work in works:
        stack.callback(asyncio.create_task(work, name=name).cancel)
    if settings.canary.interval and not settings.skip_storage_validation:
        canary = scope_canary(settings, metrics, database, door, stores)
        # A run in progress removes its test objects when it is cancelled.
        stack.push_async_callback(_ended, asyncio.create_task(canary.run(), name="canary"))


def scope_canary(settings: Settings, metrics: Metrics, database: Database, door: Door, stores: Stores) -> ScopeCanary:
    """Return the canary, which tests vended credentials on the stores of warehouses."""
    return ScopeCanary(
        database=database,
        door=door,
        storage=stores.storage,
        clients=stores.clients,
        observer=metrics,
        every=timedelta(seconds=settings.canary.interval),
        retry=timedelta(seconds=settings.canary.retry),
        keep=settings.canary.keep(),
    )


def start_counting(settings: Settings, database: Database, calls: Calls, stack: AsyncExitStack) -> None:
    """Start the task that writes statistics to the database periodically, and once more at shutdown."""
    keeper = StatisticsKeeper(
        database=database,
        calls=calls,
        default_project=settings.default_project_id if settings.enable_default_project else None,
        every=settings.endpoint_stat_flush_interval,
    )
    stack.push_async_callback(keeper.flush)
    stack.callback(asyncio.create_task(keeper.run(), name="statistics").cancel)


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait at most three seconds for its cleanup."""
    task.cancel()
    await asyncio.wait([task], timeout=3)
