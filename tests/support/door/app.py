# SPDX-License-Identifier: Apache-2.0
"""The real API in this process, with the tests' house and use cases that only record their permits."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import httpx
from litestar import Litestar
from litestar.types import ControllerRouterHandler, Scope

import gateway.features.all_routes  # noqa: F401 - registers all routes
from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectType, Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.warehouse_names import WarehouseNames
from gateway.access.operations.access_requests import FindingAccessRequest, FindRequestableTag
from gateway.access.operations.access_reviews import FindGrantsToReview
from gateway.access.operations.answers import ExplainDenial, ReadDenial, RefusedRequest
from gateway.access.operations.break_glass import FindingActivation
from gateway.access.operations.change_tickets import (
    ApproveChange,
    FindChangeTicket,
    FindChangeToApprove,
    FindChangeToReject,
    FoundTicket,
    GetChangeTicket,
    RejectChange,
    ticket_object,
)
from gateway.access.operations.checks import Check
from gateway.access.operations.task_control import ControlTasks, FindTask, FindTasks, FoundTask, GetTask
from gateway.access.shares.shares import ShareLimits, Shares
from gateway.api.build import build_api
from gateway.api.services import Services
from gateway.assembly.authzen import authzen_mapping
from gateway.features.access_reviews.access_reviews import FoundGrants
from gateway.iceberg.limits import Limits
from gateway.identity.bearer import bearer_token
from gateway.identity.tokens import VerifiedToken
from gateway.settings.authzen import AuthZen
from gateway.telemetry.calls import Calls
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from tests.support.door import world
from tests.support.door.access_requests import access_operation, reviewing
from tests.support.door.break_glass import activation_operation
from tests.support.door.examples import Example
from tests.support.door.world import DoorFixture

_T = world.TABLE_ID


class Reached(Exception):
    """Raised when a use case is called."""


@dataclass
class Spy:
    """Replace every use case: record its permit, and raise `failure` or return the operation that follows."""

    calls: list[str] = field(default_factory=list)
    failure: Exception = field(default_factory=Reached)

    def __getattr__(self, name: str) -> Any:
        async def called(permit: Any, *_: Any, **__: Any) -> Any:
            operation = permit.operation
            self.calls.append(type(operation).__name__)
            if isinstance(operation, FindTasks):
                table = TabularRef(Table, operation.warehouse.warehouse_id, world.TABLE_ID, dropped=True)
                return ControlTasks(operation.warehouse, operation.request, (FoundTask(world.TABLE_ID, table),), False)
            if isinstance(operation, FindTask):
                table = TabularRef(Table, operation.warehouse.warehouse_id, world.TABLE_ID, dropped=True)
                return GetTask(operation.warehouse, FoundTask(world.TABLE_ID, table), False)
            found = FoundTicket(world.TABLE_ID, world.BOB_ID, ticket_object(ObjectType.TABLE, world.WAREHOUSE_ID, _T))
            if isinstance(operation, FindChangeTicket):
                return GetChangeTicket(operation.warehouse, found)
            if isinstance(operation, FindChangeToApprove):
                return ApproveChange(operation.warehouse, found, operation.request)
            if isinstance(operation, FindChangeToReject):
                return RejectChange(operation.warehouse, found, operation.request)
            if isinstance(operation, ReadDenial):
                refused = RefusedRequest(operation.denial_id, datetime(2026, 3, 4, tzinfo=UTC), "load_table")
                about = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
                return ExplainDenial(Check(about, Can.READ_DATA), refused)
            if isinstance(operation, FindRequestableTag):
                return None
            if isinstance(operation, FindingAccessRequest):
                return access_operation(operation)
            if isinstance(operation, FindGrantsToReview):
                return FoundGrants((reviewing(operation.request),), None)
            if isinstance(operation, FindingActivation):
                return activation_operation(operation)
            raise self.failure

        return called


@dataclass
class Running:
    """The client of a running application, and its dependencies."""

    client: httpx.AsyncClient
    door_fixture: DoorFixture
    spy: Spy
    app: Litestar

    async def send(
        self, example: Example, *, subject: str | None = "alice", at: str | None = None, **headers: str
    ) -> httpx.Response:
        """Send the request of `example` as `subject`, without a token if that is None; `at` overrides the path."""
        sent = dict(example.headers) | headers | ({} if subject is None else {"authorization": f"Bearer {subject}"})
        body: dict[str, Any] = {"json": example.body} if example.form is None else {"data": dict(example.form)}
        return await self.client.request(
            example.method, at or example.url, params=dict(example.query), headers=sent, **body
        )


LIMITS = ShareLimits(
    requests=32,
    waiting=256,
    wait=5.0,
    total_requests=128,
    engine_requests=64,
    questions_per_second=1_000_000.0,
    question_burst=1_000_000.0,
    bytes=1_000_000_000,
)


async def verify(token: str) -> VerifiedToken:
    """Return the verified token of the subject."""
    return VerifiedToken(
        idp_id="oidc",
        subject=token,
        user_id=f"oidc~{token}",
        actor_user_id=None,
        issuer="https://id.example",
        audiences=("lakegate",),
        expires_at=4e9,
        issued_at=None,
        name=token,
        email=None,
        kind="human",
        project_id=None,
        client_id=None,
        token_id=None,
        groups=(),
        scopes=frozenset(),
    )


async def verify_caller(header_values: list[bytes], _: Scope) -> VerifiedToken:
    """Verify the token of the Authorization header."""
    return await verify(bearer_token(header_values))


async def authenticate(header_values: list[bytes], _: Scope) -> Actor:
    """Read the request headers as the gateway does; the token is the subject. Raise 401 as the gateway does."""
    return Actor.user(f"oidc~{bearer_token(header_values)}")


def parts(door_fixture: DoorFixture, spy: Spy) -> Services:
    """Return parts in which only the door works."""
    real: dict[str, Any] = {
        "door": door_fixture.door,
        "use_case": lambda kind: spy,
        "shares": Shares(LIMITS, Metrics()),
        "authenticate": authenticate,
        "authenticate_provisioner": authenticate,
        "verify": verify,
        "verify_caller": verify_caller,
        "actor_of": lambda token: Actor.user(token.user_id),
        "health": HealthMonitor(interval_seconds=3600),
        "warehouse_names": WarehouseNames(door_fixture.resolver),
        "page_size_max": 1000,
        "limits": Limits(),
        "default_project_id": world.PROJECT_ID,
        "base_uri": "http://gateway",
        "known_callers": {world.ALICE.id},
        "swagger_ui": True,
        "ui": True,
        "sign_in": None,
        "refused_logins": None,
        "authzen": authzen_mapping(AuthZen()),
    }
    return Services(**{part.name: real.get(part.name, spy) for part in dataclasses.fields(Services)})


@asynccontextmanager
async def running(
    door_fixture: DoorFixture | None = None,
    *,
    extra_handlers: Sequence[ControllerRouterHandler] = (),
    calls: Calls | None = None,
    allowed_origins: tuple[str, ...] = (),
) -> AsyncIterator[Running]:
    """Run the application; `extra_handlers` adds routes, `calls` counts requests, `allowed_origins` enables CORS."""
    door_fixture = door_fixture or DoorFixture()
    spy = Spy()

    async def assemble(stack: AsyncExitStack) -> Services:
        return parts(door_fixture, spy)

    asgi, app = build_api(
        assemble,
        observer=door_fixture.watcher,
        max_body_bytes=1_000_000,
        extra_handlers=extra_handlers,
        calls=calls,
        compress=True,
        allowed_origins=allowed_origins,
    )
    transport = httpx.ASGITransport(app=cast(Any, asgi), raise_app_exceptions=False)
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield Running(client, door_fixture, spy, app)
