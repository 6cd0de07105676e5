# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL and OpenFGA without a gateway, and a small set of rows, for tests of the gateway's own functions."""

from __future__ import annotations

import asyncio
import math
import random
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedWarehouse
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.migrate import run_migrations
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.desired_tuples import TRAVERSE, desired_tuples
from gateway.db.tuples.new_tuple_delivery import WriteTuples
from gateway.fga.client import FgaClient
from gateway.fga.model import push_model
from gateway.fga.relationships import to_wire
from gateway.fga.wire import FgaTuple
from gateway.iceberg.identifiers import Namespace
from gateway.storage.registry import stored_profile
from lakegate.local import account, ports, postgres, ready
from lakegate.local.children import GO_RUNTIME, Children, ChildSpec, until_answering
from tests.support.servers.openfga_program import openfga_program
from tests.support.stack.world import Loop

KEY = "key-of-the-test"

HELD = math.inf
"""Return value of `Proxy.plan` that holds a write until `release`."""


_UNSEEDED = random.SystemRandom()


def free_port() -> int:
    """Return a free port outside the ephemeral range, whose ports any client may take before the test listens."""
    while True:
        # The range of `lakegate.local.ports`. `random` is seeded in tests, so concurrent ones could pick equal ports.
        port = _UNSEEDED.randint(11_000, 32_000)
        if ports.is_free(port):
            return port


@contextmanager
def closed_port() -> Iterator[int]:
    """Yield a port that refuses connections; it stays bound until the block ends, so no other process takes it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


@dataclass(frozen=True)
class Parts:
    """A migrated database and an OpenFGA server with in-memory storage."""

    database_url: str
    openfga_url: str


@dataclass(frozen=True)
class Servers:
    """PostgreSQL, whose migrated database `template` nothing uses, and OpenFGA. `superuser` is an address."""

    template: str
    superuser: str
    openfga_url: str
    loop: Loop

    @contextmanager
    def parts(self) -> Iterator[Parts]:
        """Yield a copy of the migrated database, which is dropped after the block."""
        template, name = make_url(self.template), f"parts_{uuid4().hex}"
        self.loop.run(self._execute(f"create database {name} template {template.database} owner {template.username}"))
        try:
            yield Parts(template.set(database=name).render_as_string(hide_password=False), self.openfga_url)
        finally:
            self.loop.run(self._execute(f"drop database {name} with (force)"))

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.superuser)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@contextmanager
def running_servers() -> Iterator[Servers]:
    """Run both servers until the block ends."""
    loop = Loop()
    stack = AsyncExitStack()
    with tempfile.TemporaryDirectory(prefix="lakegate-test-", ignore_cleanup_errors=True) as scratch:
        try:
            template, superuser, openfga_url = loop.run(_start(stack, Path(scratch)))
            yield Servers(template, superuser, openfga_url, loop)
        finally:
            loop.run(stack.aclose())
            account.remove_data(Path(scratch) / "postgres")
            loop.close()


async def _start(stack: AsyncExitStack, scratch: Path) -> tuple[str, str, str]:
    """Return the addresses of a migrated database, of the superuser, and of OpenFGA."""
    binary = openfga_program()
    (scratch / "logs").mkdir()
    children = await stack.enter_async_context(Children(scratch / "logs"))
    made = ready.generate()
    port = free_port()
    await postgres.Postgres(scratch / "postgres", port, made, programs=None, fast=True).start(children)
    url = postgres.url(postgres.GATEWAY_ROLE, made.postgres_gateway, port).replace("postgresql:", "postgresql+asyncpg:")
    await run_migrations(url)
    http, grpc = free_port(), free_port()  # chosen last: another process may take a port that is not bound yet
    environment = {
        **GO_RUNTIME,
        "OPENFGA_HTTP_ADDR": f"127.0.0.1:{http}",
        "OPENFGA_GRPC_ADDR": f"127.0.0.1:{grpc}",
        "OPENFGA_AUTHN_METHOD": "preshared",
        "OPENFGA_AUTHN_PRESHARED_KEYS": KEY,
        "OPENFGA_PLAYGROUND_ENABLED": "false",
        "OPENFGA_METRICS_ENABLED": "false",
        "OPENFGA_LOG_LEVEL": "error",
        # Long, because the machine may be busy.
        "OPENFGA_REQUEST_TIMEOUT": "30s",
        "OPENFGA_HTTP_UPSTREAM_TIMEOUT": "31s",
    }
    server = await children.start(ChildSpec(name="openfga", argv=[str(binary), "run"], env=environment))
    await until_answering(server, http, "/healthz", timeout=60)
    superuser = postgres.url("postgres", made.postgres_superuser, port)
    return url, superuser, f"http://127.0.0.1:{http}"


class Silent:
    """Metrics observer that discards everything."""

    def tuple_delivered(self, seconds: float) -> None:
        """Ignore it."""

    def outbox_counted(self, pending: int) -> None:
        """Ignore it."""


@dataclass
class Rows:
    """One server, one project, two warehouses, namespaces and tables in the first, users and roles: rows only."""

    server: UUID = field(default_factory=uuid4)
    project: str = field(default_factory=lambda: str(uuid4()))
    warehouses: list[UUID] = field(default_factory=lambda: [uuid4(), uuid4()])
    outer: UUID = field(default_factory=uuid4)
    inner: UUID = field(default_factory=uuid4)
    other: UUID = field(default_factory=uuid4)
    table: UUID = field(default_factory=uuid4)
    view: UUID = field(default_factory=uuid4)
    role: UUID = field(default_factory=uuid4)
    role_above: UUID = field(default_factory=uuid4)
    users: tuple[str, ...] = ("oidc~ann", "oidc~ben", "oidc~cid")

    @property
    def objects(self) -> dict[str, ObjectKey]:
        """Return all objects by name."""
        named = {
            "server": (ObjectType.SERVER, self.server),
            "project": (ObjectType.PROJECT, self.project),
            "warehouse": (ObjectType.WAREHOUSE, self.warehouses[0]),
            "second": (ObjectType.WAREHOUSE, self.warehouses[1]),
            "outer": (ObjectType.NAMESPACE, self.outer),
            "inner": (ObjectType.NAMESPACE, self.inner),
            "other": (ObjectType.NAMESPACE, self.other),
            "table": (ObjectType.TABLE, self.table),
            "view": (ObjectType.VIEW, self.view),
            "role": (ObjectType.ROLE, self.role),
            "role_above": (ObjectType.ROLE, self.role_above),
        }
        return {name: ObjectKey(type, str(id)) for name, (type, id) in named.items()}

    @property
    def ann(self) -> Principal:
        """Return the first user."""
        return Principal(PrincipalType.USER, self.users[0])

    @property
    def ben(self) -> Principal:
        """Return the second user."""
        return Principal(PrincipalType.USER, self.users[1])

    @property
    def edges(self) -> list[TupleKey]:
        """Return the tuples of the hierarchy."""
        of = self.objects
        pairs = [
            ("server", "server", "project"),
            ("project", "project", "warehouse"),
            ("project", "project", "second"),
            ("project", "project", "role"),
            ("project", "project", "role_above"),
            ("warehouse", "parent", "outer"),
            ("outer", "parent", "inner"),
            ("second", "parent", "other"),
            ("inner", "parent", "table"),
            ("inner", "parent", "view"),
        ]
        return [TupleKey(of[above], relation, of[below]) for above, relation, below in pairs]

    async def insert(self, connection: AsyncConnection) -> None:
        """Delete all rows of the database and insert these."""
        names = (
            "server, users, projects, warehouses, namespaces, tables, roles, grants, grant_history, outbox, "
            "retired_locations, tasks"
        )
        await connection.execute(text(f"truncate {names} restart identity cascade"))

        async def add(statement: str, **values: object) -> None:
            await connection.execute(text(statement), values)

        await add("insert into server (id, revision) values (:id, gen_random_uuid())", id=self.server)
        for user in self.users:
            await add_user(connection, user)
        await add("insert into projects (id, name, name_key) values (:id, 'p', 'p')", id=self.project)
        for number, id in enumerate(self.warehouses):
            await add(
                "insert into warehouses (id, project_id, name, name_key, profile, base_key, delete_profile, managed_by,"
                " allowed_format_versions, revision) values (:id, :project, :name, :name, '{}', :name, '{}', 'x', "
                "'{2}', gen_random_uuid())",
                id=id,
                project=self.project,
                name=f"w{number}",
            )
        spaces: Sequence[tuple[UUID, UUID, UUID | None, list[UUID]]] = (
            (self.outer, self.warehouses[0], None, []),
            (self.inner, self.warehouses[0], self.outer, [self.outer]),
            (self.other, self.warehouses[1], None, []),
        )
        for space, warehouse, parent, ancestors in spaces:
            await add(
                "insert into namespaces (id, warehouse_id, parent_id, ancestors, levels, path_key, properties) "
                "values (:id, :warehouse, :parent, :ancestors, :levels, :key, '{}')",
                id=space,
                warehouse=warehouse,
                parent=parent,
                ancestors=ancestors,
                levels=[str(id) for id in (*ancestors, space)],
                key="\x1f".join(str(id) for id in (*ancestors, space)),
            )
        await add_table(connection, self.table, self.warehouses[0], self.inner)
        await add_table(connection, self.view, self.warehouses[0], self.inner, kind="view")
        for role in (self.role, self.role_above):
            await add_role(connection, role, self.project)


def resolved_outer(rows: Rows) -> ResolvedNamespace:
    """Return the outer namespace as the door resolves it."""
    warehouse = ResolvedWarehouse(
        id=rows.warehouses[0],
        project_id=rows.project,
        name="w0",
        active=True,
        decode=stored_profile,
        profile=b"{}",
        profile_version=1,
        credential_id=None,
        allowed_format_versions=(2,),
        default_format_version=None,
    )
    namespace = Namespace((str(rows.outer),))
    return ResolvedNamespace(id=rows.outer, warehouse=warehouse, namespace=namespace, ancestors=())


async def resolved_inner(connection: AsyncConnection, rows: Rows) -> ResolvedNamespace:
    """Return the inner namespace at its current position."""
    found = await connection.execute(
        text("select levels, ancestors from namespaces where id = :id"), {"id": rows.inner}
    )
    row = found.one()
    outer = resolved_outer(rows)
    return ResolvedNamespace(
        id=rows.inner,
        warehouse=outer.warehouse,
        namespace=Namespace(tuple(row.levels)),
        ancestors=tuple(row.ancestors),
    )


async def add_user(connection: AsyncConnection, id: str) -> None:
    """Insert a user."""
    statement = (
        "insert into users (id, name, user_type, last_updated_with) values (:id, 'x', 'human', 'test') "
        "on conflict do nothing"
    )
    await connection.execute(text(statement), {"id": id})


async def add_role(connection: AsyncConnection, id: UUID, project: str) -> None:
    """Insert a role."""
    statement = (
        "insert into roles (id, project_id, name, name_key, provider_id, source_id) "
        "values (:id, :project, :name, :name, 'lakekeeper', :name)"
    )
    await connection.execute(text(statement), {"id": id, "project": project, "name": str(id)})


async def add_table(
    connection: AsyncConnection, id: UUID, warehouse: UUID, namespace: UUID, *, kind: str = "table"
) -> None:
    """Insert a row of a table, view or generic table."""
    statement = (
        "insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key, "
        "metadata, format) values (:id, :warehouse, :namespace, :kind, :name, :name, :id, :name, :name, '{}', :format)"
    )
    format = "lance" if kind == "generic_table" else None
    values = {"format": format, "id": id, "warehouse": warehouse, "namespace": namespace, "kind": kind, "name": str(id)}
    await connection.execute(text(statement), values)


@asynccontextmanager
async def store(parts: Parts, *, endpoint: str | None = None, timeout_s: float = 30.0) -> AsyncIterator[FgaClient]:
    """Yield a client of a new, empty store. `endpoint` replaces OpenFGA's own address, for example by a proxy's."""
    pushed = await push_model(parts.openfga_url, KEY, f"test-{uuid4()}")
    client = FgaClient(endpoint or parts.openfga_url, KEY, pushed.store_id, pushed.model_id, timeout_s=timeout_s)
    try:
        yield client
    finally:
        await client.aclose()


def writing(client: FgaClient) -> WriteTuples:
    """Return the write function that `gateway.assembly` passes to TupleDelivery."""

    async def write(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        written = [to_wire(key, expires_at=end) for key, end in writes.items()]
        await client.write(written, [to_wire(key) for key in deletes])

    return write


def delivery(database: Database, client: FgaClient, *, settle_seconds: float = 1.0) -> TupleDelivery:
    """Return a delivery that writes to this client."""
    return TupleDelivery(database, writing(client), Silent(), settle_seconds=settle_seconds)


Seen = tuple[str, str, str, str | None]
"""(user, relation, object, expiry) of a tuple."""


def seen(found: FgaTuple) -> Seen:
    """Convert a tuple to a hashable value."""
    end = None if found.condition is None else str(found.condition.context["expires_at"])
    return found.user, found.relation, found.object, end


async def tuples(client: FgaClient) -> set[Seen]:
    """Return all tuples of a store."""
    return {seen(found) async for found in client.read()}


async def all_desired(connection: AsyncConnection, rows: Rows, extra: Sequence[TupleKey] = ()) -> set[Seen]:
    """Return all tuples that the rows require, found by computing the desired state of every possible key."""
    keys = dict.fromkeys([*rows.edges, *extra])
    found = (await connection.execute(text("select * from grants"))).all()
    for row in found:
        principal = Principal(PrincipalType(row.principal_type), row.principal_id)
        keys[TupleKey(principal, row.privilege, ObjectKey(ObjectType(row.object_type), row.object_id))] = None
        for name in ("project", "warehouse", "second", "outer", "inner", "other"):
            keys[TupleKey(principal, TRAVERSE, rows.objects[name])] = None
    for space in (rows.inner, rows.outer):
        for above in (rows.objects["warehouse"], rows.objects["outer"]):
            keys[TupleKey(above, "parent", ObjectKey(ObjectType.NAMESPACE, str(space)))] = None
    for row in (await connection.execute(text("select id, namespace_id, kind from tables"))).all():
        above = ObjectKey(ObjectType.NAMESPACE, str(row.namespace_id))
        keys[TupleKey(above, "parent", ObjectKey(ObjectType(row.kind), str(row.id)))] = None
    exist = await desired_tuples(connection, list(keys))
    return {seen(to_wire(key, expires_at=end)) for key, end in exist.items()}


class Proxy:
    """A proxy between a client and OpenFGA. It delays writes, and forwards them even if the client has disconnected.

    `plan` receives the body of a write and returns the delay in seconds. `HELD` waits for `release`; a negative number
    loses the write. A write that is delayed by more than `latest` seconds, for example on a stalled machine, is lost
    too: a server discards requests that it does not begin in time.
    """

    def __init__(self, target: str, *, latest: float = math.inf) -> None:
        self.plan: Callable[[str], float] = lambda _: 0.0
        self.failures_left = 0
        self._target = target
        self._latest = latest
        self._released = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Run the proxy; yield its endpoint."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        async with TestServer(app) as server, ClientSession() as session:
            self._session = session
            yield str(server.make_url("/")).rstrip("/")
            await self.drained()

    def release(self) -> None:
        """Forward all held writes, now and from now on."""
        self._released.set()

    async def drained(self) -> None:
        """Wait until no request is in flight."""
        while self.failures_left:
            await asyncio.sleep(0.02)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.failures_left += 1
        return await asyncio.shield(asyncio.ensure_future(self._forward(request, body)))

    async def _forward(self, request: web.Request, body: bytes) -> web.StreamResponse:
        try:
            began = time.monotonic()
            wait = self.plan(body.decode()) if request.path.endswith("/write") else 0.0
            await (self._released.wait() if wait == HELD else asyncio.sleep(abs(wait)))
            if wait < 0 or time.monotonic() - began > self._latest:
                return web.Response(status=504)
            headers = {"Authorization": request.headers["Authorization"], "Content-Type": "application/json"}
            async with self._session.request(
                request.method, self._target + request.path, data=body, headers=headers
            ) as answer:
                return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")
        finally:
            self.failures_left -= 1
