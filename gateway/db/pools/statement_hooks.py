# SPDX-License-Identifier: Apache-2.0
"""Hooks around the statements that SQLAlchemy executes, and the names of statements for traces."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.schema.whole import whole_schema
from gateway.spans import Attributes, begin, end, is_recording, mark

_CHANGE = re.compile(r"\b(insert)\s+into\s+(\w+)|\b(update)\s+(\w+)|\b(delete)\s+from\s+(\w+)", re.IGNORECASE)
_READ = re.compile(r"\b(?:from|join)\s+(\w+)", re.IGNORECASE)
_LONGEST = 4


@cache
def _tables() -> frozenset[str]:
    return frozenset(whole_schema().tables)


@lru_cache(maxsize=512)
def summary(sql: str) -> str:
    """Return the verb of a statement and its first tables, for example `SELECT warehouses tables`.

    For a statement that changes a table, the verb is that of its first change. Only names of tables of the schema are
    included. Values are parameters, so the text of a statement contains none.
    """
    known = _tables()
    changes = [[text for text in groups if text] for groups in _CHANGE.findall(sql)]
    verbs = [(verb.upper(), table) for verb, table in changes if table in known]
    read = [table for table in _READ.findall(sql) if table in known]
    tables = dict.fromkeys([*(table for _, table in verbs), *read])
    return " ".join([verbs[0][0] if verbs else "SELECT", *list(tables)[:_LONGEST]])


@lru_cache(maxsize=512)
def summary_of(read: DirectRead[Any]) -> str:
    """Return the summary of a read that is executed without SQLAlchemy.

    Composing the text of a large statement takes milliseconds, so the result is cached for each read.
    """
    return summary(str(read.statement))


def named(statement: str) -> Attributes:
    """Return the span attributes of a statement with this summary. They never contain values of the statement."""
    return {"db.system.name": "postgresql", "db.query.summary": statement}


def watch_statements(engine: AsyncEngine) -> None:
    """Record a span for each statement of this engine while a request is traced, and mark each COMMIT."""
    sync = engine.sync_engine

    def before(_connection: Any, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool) -> None:
        context.watched = begin("postgresql.statement", named(summary(statement))) if is_recording() else None

    def after(_connection: Any, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool) -> None:
        end(context.watched)

    def failed(error: Any) -> None:
        end(getattr(error.execution_context, "watched", None), error=type(error.original_exception).__name__)

    event.listen(sync, "before_cursor_execute", before)
    event.listen(sync, "after_cursor_execute", after)
    event.listen(sync, "handle_error", failed)
    event.listen(sync, "commit", lambda _connection: mark("commit"))
