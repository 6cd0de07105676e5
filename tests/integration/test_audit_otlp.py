# SPDX-License-Identifier: Apache-2.0
"""The continuous export of audit records to a collector: none is lost by failures, restarts and late transactions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from sqlalchemy import text

from gateway.db.audit import audit_log
from gateway.db.engine.database import Database
from gateway.features.audit.audit_chain import AuditSealer
from gateway.features.audit.audit_export import AuditExport
from gateway.settings.env import Secret
from gateway.settings.postgres import asyncpg_url
from gateway.telemetry.otlp_client import JSON, CollectorRefused, CollectorUnavailable, OtlpClient
from lakegate.local.ready import Ready
from tests.support.load.kills import Killable
from tests.support.rows.audit_records import insert_records, recent_record
from tests.support.rows.parts import Parts

pytestmark = pytest.mark.servers


@dataclass
class Collector:
    """A receiver of OTLP logs. `answers` are the statuses of the next requests, then 200."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    body: str = "{}"
    received: Counter[str] = field(default_factory=Counter)
    tokens: set[str | None] = field(default_factory=set)

    async def handle(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization"))
        sent = json_format.Parse(await request.read(), ExportLogsServiceRequest())
        status = self.answers.pop(0) if self.answers else 200
        # An error after the records were stored: the sender cannot know it.
        for resource in sent.resource_logs if status != 400 else ():
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    values = {each.key: each.value.string_value for each in record.attributes}
                    self.received[values["lakegate.audit.id"]] += 1
        return web.Response(
            status=status, body=self.body, content_type="application/json", headers={"Retry-After": "2"}
        )


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    made = Collector()
    app = web.Application(client_max_size=20 * 1024 * 1024)
    app.router.add_post("/v1/logs", made.handle)
    async with TestServer(app) as server:
        made.url = f"http://127.0.0.1:{server.port}"
        yield made


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=5, acquire_timeout=10)
    async with database.transaction() as connection:
        await connection.execute(text("truncate audit_log, audit_blocks, audit_block_records, audit_exports"))
    yield database
    await database.close()


@pytest.fixture
async def send(collector: Collector) -> AsyncIterator[OtlpClient]:
    async with OtlpClient(
        f"{collector.url}/v1/logs",
        encoding=JSON,
        headers={"Authorization": "Bearer secret"},
        timeout=30,
        tls=None,
    ) as send:
        yield send


async def _seal(database: Database, count: int) -> set[str]:
    """Write and seal records in blocks of ten; return their ids."""
    ids = await insert_records(database, count)
    await AuditSealer(database, every=1.0, key=None, most=10).seal_all()
    return {str(id) for id in ids}


async def test_each_record_is_sent_once_and_a_restart_continues(
    database: Database, collector: Collector, send: OtlpClient
) -> None:
    ids = await _seal(database, 25)
    assert await AuditExport(database, send, every=1.0).export_all() == 3
    assert await AuditExport(database, send, every=1.0).export_all() == 0
    ids |= await _seal(database, 5)
    assert await AuditExport(database, send, every=1.0).export_all() == 1
    assert collector.received == dict.fromkeys(ids, 1)
    assert collector.tokens == {"Bearer secret"}


@pytest.mark.parametrize(
    ("status", "error"),
    [(503, CollectorUnavailable), (429, CollectorUnavailable), (400, CollectorRefused), (302, CollectorRefused)],
)
async def test_a_block_that_was_not_accepted_is_sent_again(
    database: Database, collector: Collector, send: OtlpClient, status: int, error: type[Exception]
) -> None:
    ids = await _seal(database, 20)
    collector.answers = [200, status]
    export = AuditExport(database, send, every=1.0)
    with pytest.raises(error) as raised:
        await export.export_all()
    if isinstance(raised.value, CollectorUnavailable):
        assert raised.value.retry_after == 2
    assert await AuditExport(database, send, every=1.0).export_all() == 1, "the failed process still holds the export"
    assert set(collector.received) == ids


async def test_a_record_of_a_late_transaction_is_exported(
    database: Database, collector: Collector, send: OtlpClient
) -> None:
    late = recent_record()
    export = AuditExport(database, send, every=1.0)
    async with database.transaction() as slow:
        await audit_log.insert(slow, [late])
        ids = await _seal(database, 5)
        await export.export_all()
        assert str(late.id) not in collector.received
    await AuditSealer(database, every=1.0, key=None).seal_all()
    await export.export_all()
    assert collector.received == dict.fromkeys({*ids, str(late.id)}, 1)


async def test_only_one_process_sends(database: Database, collector: Collector, send: OtlpClient) -> None:
    ids = await _seal(database, 100)
    exports = [AuditExport(database, send, every=1.0) for _ in range(3)]
    while set(collector.received) != ids:
        await asyncio.gather(*(export.export_all() for export in exports))
    assert collector.received == dict.fromkeys(ids, 1)


async def test_rejected_records_are_not_sent_again(database: Database, collector: Collector, send: OtlpClient) -> None:
    await _seal(database, 5)
    collector.body = '{"partialSuccess":{"rejectedLogRecords":"5","errorMessage":"too old"}}'
    export = AuditExport(database, send, every=1.0)
    assert await export.export_all() == 1
    assert await export.export_all() == 0


async def test_the_health_check_reports_a_collector_that_is_down_until_it_works(
    database: Database, collector: Collector, send: OtlpClient
) -> None:
    ids = await _seal(database, 5)
    collector.answers = [400]
    export = AuditExport(database, send, every=0.01)
    await export.check()
    task = asyncio.create_task(export.run())
    try:
        async with asyncio.timeout(60):
            while not await _fails(export):
                await asyncio.sleep(0.01)
            while await _fails(export):
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
    assert set(collector.received) == ids


async def _fails(export: AuditExport) -> bool:
    try:
        await export.check()
    except CollectorUnavailable:
        return True
    return False


async def test_a_running_gateway_exports_its_records(
    killed_stack: Ready, gateway: Killable, collector: Collector
) -> None:
    await asyncio.to_thread(gateway.kill)
    settings = {"AUDIT__SEAL_INTERVAL": "0.2", "AUDIT__OTLP__ENDPOINT": collector.url}
    await asyncio.to_thread(lambda: gateway.start(**settings))
    database = Database(asyncpg_url(Secret(killed_stack.postgres)), pool_size=2, acquire_timeout=10)
    sealed = "select record_id from audit_block_records"
    try:
        async with asyncio.timeout(120):
            while True:
                async with database.read() as connection:
                    ids = {str(row[0]) for row in await connection.execute(text(sealed))}
                if ids and ids <= set(collector.received):
                    break
                await asyncio.sleep(0.2)
    finally:
        await database.close()


async def test_the_backlog_counts_the_sealed_records_that_were_not_exported(
    database: Database, collector: Collector, send: OtlpClient
) -> None:
    """The blocks before the position must not count, and an empty backlog has no age."""
    counted: list[tuple[str, int, float]] = []

    class Observer:
        def export_counted(self, export: str, records: int, oldest_seconds: float) -> None:
            counted.append((export, records, oldest_seconds))

    export = AuditExport(database, send, every=1.0, observer=Observer())
    await export.count_backlog()
    await _seal(database, 15)
    await export.count_backlog()
    await export.export_all()
    await export.count_backlog()
    await _seal(database, 5)
    async with database.transaction() as connection:
        await connection.execute(text("update audit_blocks set sealed_at = sealed_at - interval '1 hour'"))
    await export.count_backlog()
    assert [(name, records) for name, records, _ in counted] == [("otlp", 0), ("otlp", 15), ("otlp", 0), ("otlp", 5)]
    assert counted[0][2] == counted[2][2] == 0
    assert counted[3][2] >= 3600
