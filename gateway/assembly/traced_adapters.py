# SPDX-License-Identifier: Apache-2.0
"""Traces of calls to PostgreSQL and object stores, and hooks for calls to OpenFGA and OPA."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.access.door.permit import Permit
from gateway.access.operation import Operation
from gateway.db.engine.database import Connection, Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import AnyRow
from gateway.db.pools.statement_hooks import summary, summary_of, watch_statements
from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.profile import StorageProfile
from gateway.storage.provider import FileClient, Sessions, StorageClient
from gateway.telemetry.spans import Attributes
from gateway.telemetry.tracing import Tracer

if TYPE_CHECKING:
    import aiohttp


def call_hooks(tracer: Tracer | None, system: str) -> Sequence[aiohttp.TraceConfig]:
    """Return the hooks for the HTTP session of a client of `system`; none without a tracer."""
    if tracer is None:
        return ()
    from gateway.telemetry.client_spans import client_spans

    return (client_spans(tracer, system),)


class TracedDatabase(Database):
    """Database with a span for each statement of a request and for each transaction with a change.

    A span has the verb and the tables of its statement (`db.query.summary`), never its values.
    """

    def __init__(self, tracer: Tracer, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._tracer = tracer
        watch_statements(self.engine, begin=self._begin, end=self._end, committing=lambda: tracer.mark("commit"))

    async def read_all(self, read: DirectRead, parameters: Mapping[str, Any]) -> Sequence[AnyRow]:
        """Return the rows of a read. Raises DatabaseUnavailable."""
        if not self._tracer.is_recording():
            return await super().read_all(read, parameters)
        with self._tracer.span("postgresql.statement", _named(summary_of(read))):
            return await super().read_all(read, parameters)

    async def read_shared(self, read: DirectRead, parameters: Mapping[str, Any], principal: str) -> AnyRow:
        """Return the row of a read, which may share its statement. Raises DatabaseUnavailable."""
        if self._shared is None or not self._tracer.is_recording():
            return await super().read_shared(read, parameters, principal)
        attributes = {**_named(summary_of(read)), "lakegate.waits_for_slot": self._shared.is_busy}
        with self._tracer.span("postgresql.statement", attributes):
            return await super().read_shared(read, parameters, principal)

    @asynccontextmanager
    async def change(self, permit: Permit[Operation]) -> AsyncIterator[Connection]:
        """Yield a connection in a transaction, as `Database` does. The event `commit` of the span precedes COMMIT."""
        with self._tracer.span("postgresql.transaction", {"db.system.name": "postgresql"}):
            async with super().change(permit) as connection:
                yield connection

    def _begin(self, statement: str) -> Any:
        if not self._tracer.is_recording():
            return None
        return self._tracer.begin("postgresql.statement", _named(summary(statement)))

    def _end(self, span: Any, error: str | None) -> None:
        self._tracer.end(span, error=error)


def _named(statement: str) -> Attributes:
    return {"db.system.name": "postgresql", "db.query.summary": statement}


def traced_client(tracer: Tracer, client: StorageClient) -> StorageClient:
    """Return the client of a provider, with spans for its files and sessions."""
    sessions = None if client.sessions is None else TracedSessions(client.sessions, tracer)
    return replace(client, files=TracedFiles(client.files, tracer), sessions=sessions)


class TracedFiles:
    """Client of files with a span for each call. Spans contain no keys: they are names that users choose."""

    def __init__(self, files: FileClient, tracer: Tracer) -> None:
        self._files = files
        self._tracer = tracer

    async def put(self, profile: StorageProfile, credential: Credential, key: str, data: bytes) -> None:
        """Write a new file."""
        with self._tracer.span("store.put", {**_of(profile), "lakegate.bytes": len(data)}):
            await self._files.put(profile, credential, key, data)

    async def get(self, profile: StorageProfile, credential: Credential, key: str, max_bytes: int) -> bytes:
        """Return the whole file."""
        with self._tracer.span("store.get", _of(profile)) as span:
            data = await self._files.get(profile, credential, key, max_bytes)
            span.set_attribute("lakegate.bytes", len(data))
            return data

    async def delete(self, profile: StorageProfile, credential: Credential, keys: Sequence[str]) -> None:
        """Delete the files."""
        with self._tracer.span("store.delete", {**_of(profile), "lakegate.files": len(keys)}):
            await self._files.delete(profile, credential, keys)

    async def list(self, profile: StorageProfile, credential: Credential, prefix: str, limit: int) -> list[str]:
        """Return at most `limit` keys that start with `prefix`."""
        with self._tracer.span("store.list", {**_of(profile), "lakegate.limit": limit}):
            return await self._files.list(profile, credential, prefix, limit)


class TracedSessions:
    """Sessions of a store with a span for each new credential."""

    def __init__(self, sessions: Sessions, tracer: Tracer) -> None:
        self._sessions = sessions
        self._tracer = tracer

    async def make(
        self, *, profile: StorageProfile, credential: Credential, policy: str, session_name: str, seconds: int
    ) -> TemporaryCredential:
        """Return a credential with the rights of `policy`."""
        with self._tracer.span("store.session", {**_of(profile), "lakegate.seconds": seconds}):
            return await self._sessions.make(
                profile=profile, credential=credential, policy=policy, session_name=session_name, seconds=seconds
            )

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed if the credential can remove its policy by means of the store."""
        with self._tracer.span("store.require_confined", _of(profile)):
            await self._sessions.require_confined(profile, temporary)


def _of(profile: StorageProfile) -> Attributes:
    return {"lakegate.store": profile.provider}
