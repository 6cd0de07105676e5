# SPDX-License-Identifier: Apache-2.0
"""Store the metrics reports of engines about scans and commits, as rows for the statistics."""

from __future__ import annotations

from typing import Final

import msgspec

from gateway.access.operations.tables import ReportMetrics
from gateway.access.permit import Permit
from gateway.db import reports
from gateway.db.engine import Database
from gateway.iceberg.errors import PayloadTooLarge

MAX_BYTES: Final = 256 * 1024
"""The largest report that is stored. A scan report grows with its columns; ten thousand of them fit."""


class Reports:
    """The use case of metrics reports."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def store(self, permit: Permit[ReportMetrics]) -> None:
        """Store the report as a row. Raises PayloadTooLarge."""
        operation = permit.operation
        table = permit.table(operation.table)
        text = msgspec.json.encode(operation.report)
        if len(text) > MAX_BYTES:
            raise PayloadTooLarge(f"A metrics report must have at most {MAX_BYTES} bytes; this one has {len(text)}.")
        async with self._database.change(permit) as connection:
            await reports.add(
                connection,
                warehouse_id=table.warehouse.id,
                table_id=table.id,
                kind=str(operation.facts()["report_type"]),
                snapshot_id=operation.report.snapshot_id,
                reported_by=permit.actor.id,
                report=text.decode(),
            )
