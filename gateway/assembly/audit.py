# SPDX-License-Identifier: Apache-2.0
"""Create those parts of the audit log that are enabled in the settings."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from gateway.access.audit.audit_chain import Anchor
from gateway.assembly.adapters import open_database
from gateway.assembly.traced_tasks import traced_export
from gateway.audit.refused_logins import RefusedLogins
from gateway.audit.sink import BufferedAudit
from gateway.db.engine.database import Database
from gateway.features.audit import audit_chain
from gateway.features.audit.audit_chain import AuditSealer, Exported, Verified
from gateway.features.audit.audit_export import OTLP, AuditExport
from gateway.features.audit.audit_retention import AuditPartitions, Retention
from gateway.settings import Settings, certificate_sources
from gateway.settings.postgres import asyncpg_url
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.otlp_client import JSON, OtlpClient
from gateway.telemetry.tracing import Tracer
from gateway.tls import Trust, for_postgres, trusted

_STATEMENT_SECONDS = 600.0
"""Limit of one statement of the tasks below. They may read a whole partition."""


def count_refused_logins(settings: Settings, audit: BufferedAudit, stack: AsyncExitStack) -> RefusedLogins | None:
    """Start to count refused logins; return None if they are not recorded.

    `stack` must close the sink afterwards: the last counts are written when the process ends.
    """
    if not settings.audit.refused_logins:
        return None
    counting = RefusedLogins(audit.buffer, window=settings.audit.refused_logins)
    stack.callback(counting.flush)
    stack.callback(asyncio.create_task(counting.run(), name="refused logins").cancel)
    return counting


async def start_audit_tasks(
    settings: Settings,
    trust: Trust,
    metrics: Metrics,
    health: HealthMonitor,
    stack: AsyncExitStack,
    tracer: Tracer | None = None,
) -> None:
    """Start the tasks of the audit log: its partitions, and sealing and export if they are configured.

    They have their own connections, so their long statements occupy no connection of requests.
    """
    audit = settings.audit
    of_tasks = audit_database(settings, trust, stack)
    exported = audit.otlp.endpoint is not None
    rules = Retention(keep=audit.keep(), sealed=audit.seal_interval > 0, export=OTLP if exported else None)
    tasks = {"audit partitions": AuditPartitions(of_tasks, rules).run()}
    if audit.seal_interval:
        tasks["audit sealer"] = AuditSealer(of_tasks, every=audit.seal_interval, key=audit.key()).run()
    if audit.otlp.endpoint is not None:
        collector = OtlpClient(
            audit.otlp.endpoint.rstrip("/") + "/v1/logs",
            encoding=JSON,
            headers={"Authorization": f"Bearer {audit.otlp.token.reveal()}"} if audit.otlp.token else {},
            timeout=audit.otlp.timeout,
            tls=trust.context,
        )
        send = traced_export(await stack.enter_async_context(collector), tracer)
        export = AuditExport(of_tasks, send, every=audit.seal_interval, observer=metrics.audit_export)
        # Requests do not need the export, so an outage of the collector keeps the gateway in service.
        health.register("audit", "otlp", export.check, required=False)
        tasks["audit export"] = export.run()
    for name, work in tasks.items():
        stack.callback(asyncio.create_task(work, name=name).cancel)


def audit_database(settings: Settings, trust: Trust, stack: AsyncExitStack) -> Database:
    """Open the primary database for long statements on audit records. It connects at its first use."""
    url = settings.write_url()
    database = Database(
        asyncpg_url(url),
        pool_size=2,
        acquire_timeout=settings.pg_acquire_timeout,
        statement_timeout=_STATEMENT_SECONDS,
        tls=for_postgres(settings.postgres_tls_mode(), trust, settings.pg_ssl_root_cert),
        direct_reads=False,
    )
    stack.push_async_callback(database.close)
    return database


async def verify_audit(settings: Settings, anchor: Anchor | None) -> Verified:
    """Verify the chain over audit records: `lakegate audit verify`. Raises the errors of `open_database`."""
    async with AsyncExitStack() as stack:
        database = await _database_of_command(settings, stack)
        return await audit_chain.verify(database, key=settings.audit.key(), anchor=anchor)


async def export_audit(settings: Settings, path: Path, after: int) -> Exported:
    """Export sealed audit records: `lakegate audit export`. Raises the errors of `audit_chain.export`."""
    async with AsyncExitStack() as stack:
        return await audit_chain.export(await _database_of_command(settings, stack), path, after=after)


async def _database_of_command(settings: Settings, stack: AsyncExitStack) -> Database:
    """Return the database for long statements, after the database for requests has checked the schema."""
    trust = trusted(*certificate_sources())
    await open_database(settings, trust, stack)
    return audit_database(settings, trust, stack)
