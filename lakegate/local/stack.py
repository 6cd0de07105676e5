# SPDX-License-Identifier: Apache-2.0
"""Start all parts of the stack in the order of their dependencies, and describe the running stack."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lakegate.local import account, object_store, ports, postgres
from lakegate.local.children import Child, Children
from lakegate.local.decision_engines import Opa, OpenFga
from lakegate.local.errors import ChildFailed, StackError
from lakegate.local.gateway import ENVIRONMENT_FILE, Gateway, gateway_variables
from lakegate.local.identity_provider import IdentityProvider, origins_of
from lakegate.local.object_store import ObjectStore
from lakegate.local.ports import LOOPBACK, Ports
from lakegate.local.postgres import Postgres
from lakegate.local.ready import ObjectStoreAccess, OpaAccess, OpenFgaAccess, Ready, Secrets, User, load_or_generate
from lakegate.local.toolchain import Tools

DEFAULT_PROJECT = "00000000-0000-0000-0000-000000000000"

MIGRATION = "migration"
PARTS: Mapping[str, str] = {
    "identity-provider": "identity provider",
    "object-store": "object store",
    "opa": "OPA",
    "postgres": "PostgreSQL",
    "openfga": "OpenFGA",
    MIGRATION: "database schema and relationship model",
    "gateway": "gateway",
}
"""The parts in about the order of their start, with their names for users."""

_STARTS = 3
_LOCK_PATIENCE_SECONDS = 20.0
_LONGEST_SOCKET_DIRECTORY = 60  # the path of a Unix socket may have 107 bytes, on macOS 103


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The configuration of a stack: data directory, programs, and settings.

    ``fast``: PostgreSQL does not wait for the disk. ``with_gateway``: False leaves the gateway out, for tests of the
    other parts. ``free_ports``: False prefers the ports of ``ports.FIRST_CHOICES``. ``keep_dropped_days``: the time for
    which the created warehouse keeps dropped tables; 0 for none. ``gateway_settings``: settings of the gateway without
    the prefix ``LAKEGATE__``; they have precedence. ``redirect_uris``: further pages in which users may sign in.
    ``ready`` is called with each part that is ready (``PARTS``).
    """

    data: Path
    tools: Tools
    fast: bool = False
    with_gateway: bool = True
    free_ports: bool = True
    keep_dropped_days: int = 0
    gateway_settings: Mapping[str, str] = field(default_factory=dict)
    redirect_uris: tuple[str, ...] = ()
    ready: Callable[[str], None] = lambda part: None


@dataclass(slots=True)
class Stack:
    """A stack: its parts, their ports and secrets. ``running``: the started processes by name."""

    plan: Plan
    ports: Ports
    secrets: Secrets
    children: Children
    identity_provider: IdentityProvider
    object_store: ObjectStore
    openfga: OpenFga
    opa: Opa
    postgres: Postgres
    gateway: Gateway
    running: dict[str, Child] = field(default_factory=dict)

    async def start(self) -> None:
        """Start every part. Parts that do not depend on each other start at the same time.

        The caller stops the started parts by closing ``children``.

        Raises:
            StackError: a part did not start. Errors of parts that start at the same time are in an ExceptionGroup.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._start_data())
            group.create_task(self._keep(self.identity_provider.start(self.children)))
            group.create_task(self._keep(self.object_store.start(self.children)))
            group.create_task(self._keep(self.opa.start(self.children)))
        if self.plan.with_gateway:
            await self._keep(self.gateway.start(self.children))
            (self.plan.data / "served").touch(mode=0o600)

    async def _start_data(self) -> None:
        await self._keep(self.postgres.start(self.children))
        await self._keep(self.openfga.start(self.children))
        if self.plan.with_gateway:
            await self.gateway.migrate(self.children)
            self.plan.ready(MIGRATION)

    async def _keep(self, starting: Coroutine[None, None, Child]) -> None:
        child = await starting
        self.running[child.name] = child
        self.plan.ready(child.name)

    async def ready(self, warehouse: str | None, warehouse_id: str | None = None) -> Ready:
        """Return the description of the stack, with a new token for each user.

        ``warehouse``, ``warehouse_id``: name and id of its warehouse, if any.
        """
        store, model = await self.openfga.store_and_model() if self.plan.with_gateway else ("", "")
        tokens = await asyncio.gather(*map(self.identity_provider.token, self.secrets.clients))
        users = {
            name: User(id=f"oidc~{name}", token=token, client_id=name, client_secret=secret)
            for (name, secret), token in zip(self.secrets.clients.items(), tokens, strict=True)
        }
        return Ready(
            catalog_uri=f"{self.gateway.url}/catalog",
            management_uri=f"{self.gateway.url}/management",
            metrics_uri=f"http://{LOOPBACK}:{self.ports.metrics}/metrics",
            issuer=self.identity_provider.issuer,
            token_endpoint=self.identity_provider.token_endpoint,
            project_id=DEFAULT_PROJECT,
            warehouse=warehouse,
            warehouse_id=warehouse_id,
            users=users,
            s3=ObjectStoreAccess(
                endpoint=self.object_store.url,
                region=object_store.REGION,
                bucket=object_store.BUCKET,
                access_key=self.secrets.s3_access_key,
                secret_key=self.secrets.s3_secret_key,
                profile=self.object_store.profile(),
            ),
            postgres=postgres.url(postgres.GATEWAY_ROLE, self.secrets.postgres_gateway, self.ports.postgres),
            openfga=OpenFgaAccess(url=self.openfga.url, store_id=store, model_id=model, token=self.secrets.openfga),
            opa=OpaAccess(url=self.opa.url, token=self.secrets.opa_operator),
            bridge_key=self.secrets.bridge_key,
            pids={name: _with_workers(child) for name, child in self.running.items()},
            environment=str(self.plan.data / ENVIRONMENT_FILE),
        )


def _with_workers(child: Child) -> list[int]:
    """Return the process ids of a part. For the gateway, the ids of its worker processes are included."""
    if child.name != "gateway":
        return [child.pid]
    return [child.pid, *(worker.pid for worker in psutil.Process(child.pid).children(recursive=True))]


def _assemble(plan: Plan, chosen: Ports, secrets: Secrets, children: Children, sockets: Path) -> Stack:
    tools = plan.tools
    return Stack(
        plan=plan,
        ports=chosen,
        secrets=secrets,
        children=children,
        identity_provider=IdentityProvider(
            tools.nanoidp,
            plan.data / "identity-provider",
            chosen.identity_provider,
            secrets,
            pages=f"http://{LOOPBACK}:{chosen.gateway}",
            redirect_uris=plan.redirect_uris,
        ),
        object_store=ObjectStore(tools.weed, plan.data / "object-store", sockets, chosen, secrets),
        openfga=OpenFga(tools.openfga, chosen, secrets),
        opa=Opa(tools.opa, tools.policies, chosen.opa, secrets),
        postgres=Postgres(
            plan.data / "postgres", chosen.postgres, secrets, programs=tools.postgres_directory, fast=plan.fast
        ),
        gateway=Gateway(
            chosen, gateway_variables(chosen, secrets, plan.gateway_settings, origins_of(plan.redirect_uris)), sockets
        ),
    )


def _choose_ports(data: Path, *, free: bool) -> Ports:
    """Select the ports for this start, and store them.

    ``free``: prefer the ports of the previous start to the first choices.

    Raises:
        StackError: another program uses the object store's port. Existing warehouses contain that address.
    """
    kept = ports.load(data / "ports.json")
    chosen = ports.pick(kept, first=None if free else ports.FIRST_CHOICES)
    if kept is not None and chosen.s3 != kept.s3 and (data / "served").exists():
        raise StackError(
            f"the warehouse of {data} needs the port {kept.s3}, which another program uses now; stop that program, "
            "or start with another data directory"
        )
    ports.save(data / "ports.json", chosen)
    return chosen


def _socket_directory() -> Path:
    base = Path(tempfile.gettempdir())
    if len(str(base)) > _LONGEST_SOCKET_DIRECTORY:
        base = Path("/tmp")  # noqa: S108 - the directory made in it is private and has a random name
    return Path(tempfile.mkdtemp(prefix="lakegate-", dir=base))


@asynccontextmanager
async def running(plan: Plan) -> AsyncIterator[Stack]:
    """Context manager. Run a stack during the block, and stop it at the end.

    If a part failed because another program took its port, the start is repeated with other ports, up to three times in
    all.

    Raises:
        StackError: the stack could not be started.
    """
    plan.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    logs = plan.data / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    with account.held(plan.data, timeout=_LOCK_PATIENCE_SECONDS) as lock_descriptor:
        secrets = load_or_generate(plan.data / "secrets.json")
        started = False
        for attempt in range(1, _STARTS + 1):
            chosen = _choose_ports(plan.data, free=plan.free_ports)
            sockets = _socket_directory()
            remove = [sockets, *object_store.sockets_left_behind(chosen)]
            children = Children(logs, keep_open=[lock_descriptor], remove=remove)
            try:
                async with children:
                    stack = _assemble(plan, chosen, secrets, children, sockets)
                    try:
                        await stack.start()
                    except* StackError as failures:
                        raise _first(failures) from None
                    started = True
                    yield stack
                    return
            except ChildFailed as failure:
                if started or not failure.port_taken or attempt == _STARTS:
                    raise
            finally:
                shutil.rmtree(sockets, ignore_errors=True)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error of a group that is reported: first one after which the start can be repeated."""
    failures: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop()
        if isinstance(error, BaseExceptionGroup):
            pending.extend(error.exceptions)
        else:
            failures.append(error)
    failures.sort(key=lambda error: not getattr(error, "port_taken", False))
    return failures[0]
