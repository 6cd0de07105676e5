# SPDX-License-Identifier: Apache-2.0
"""Start every request: authenticate, occupy the caller's share, refuse unknown query parameters, assume a role.

The share limits what a caller may use of the process at the same time. The role is the one that the request asks for.

Unknown query parameters of the management API are refused, because such parameters select and limit. If a filter were
ignored, a list would contain everything, and a change would do more than the client intends. Parameters of paging and
of the project are ignored where they have no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final
from uuid import UUID

from litestar import Request

from gateway.access.actor import Actor, ActorKind
from gateway.access.door.door import Door
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.authz_errors import DecisionUnavailable, InvalidAssumeRoleId, unavailable
from gateway.access.nouns.role import RoleRef
from gateway.access.operation import HttpOperation
from gateway.api.binding import Inputs, printable
from gateway.api.context import Ctx, enter
from gateway.api.early_refusal import authorizations_of
from gateway.api.latch import CLIENT_REQUEST_ID, DEADLINE, REQUEST_CONTEXT, REQUEST_ID
from gateway.api.serves import INPUTS, OPERATIONS_OF
from gateway.api.services import Services
from gateway.api.warehouse_names import resolve_prefix
from gateway.iceberg.errors import BadRequestException
from gateway.telemetry.logs import add_to_context

_MANAGEMENT: Final = "/management/"

#: Parameters of pages. They have no effect if an endpoint returns the whole list.
_PAGING: Final = frozenset({"pageToken", "pageSize"})

#: Parameters of the project. They have no effect if the path has the id of an object, which determines the project.
_PROJECT: Final = frozenset({"projectId", "project-id"})


async def provide_ctx(request: Request[Any, Any, Any]) -> Ctx:
    """Authenticate the caller, occupy a slot in its share, assume the requested role, and return the handler's context.

    Raises errors of status 401 and 503 of the authentication, ShareExceeded, 400 for unknown query parameters, and the
    errors of `_assume` and `resolve_prefix`.
    """
    services: Services = request.app.state.services
    operations = request.route_handler.opt.get(OPERATIONS_OF, frozenset())
    given = authorizations_of(request.scope)
    if any(operation.authenticates_itself for operation in operations) or (
        not given and any(operation.is_public() for operation in operations)
    ):
        actor = Actor.anonymous()
    elif any(operation.is_provisioning() for operation in operations):
        actor = await services.authenticate_provisioner(given, request.scope)
    else:
        actor = await services.authenticate(given, request.scope)
    state: dict[str, Any] = request.scope["state"]
    request_context = RequestContext(
        actor=actor,
        request_id=state[REQUEST_ID],
        client_request_id=state[CLIENT_REQUEST_ID],
        user_agent=printable(request.headers.get("user-agent")),
        client_address=request.client.host if request.client is not None else None,
        deadline=state[DEADLINE],
    )
    state[REQUEST_CONTEXT] = request_context
    add_to_context(actor=actor.id or None)
    lease = None if actor.kind is ActorKind.ANONYMOUS else await enter(request, services, actor)
    if request.scope["query_string"]:
        inputs: Inputs = request.route_handler.opt.get(INPUTS, Inputs())
        _refuse_unknown_parameters(operations, inputs.query, request.query_params)
    role_headers = request.headers.getall("x-assume-role", [])
    if role_headers and lease is not None:
        await lease.charge_questions(1)
        await _assume(services.door, request_context, role_headers, request.headers.get("x-project-id"), operations)
    await resolve_prefix(request, services, request_context.actor)
    return Ctx(services, request_context, request, lease)


async def _assume(
    door: Door,
    request_context: RequestContext,
    role_headers: list[str],
    project: str | None,
    operations: frozenset[type[HttpOperation]],
) -> None:
    """Make the caller act as the role in the header. Raises 400 for a malformed header, and the errors of
    `Door.assume`.
    """
    try:
        (role,) = (UUID(value) for value in role_headers)
    except ValueError:
        raise InvalidAssumeRoleId("The header x-assume-role must contain the UUID of exactly one role.") from None
    try:
        await door.assume(request_context, RoleRef(role), project=project)
    except DecisionUnavailable:
        # The operation of the request decides the status: 429 for a catalog mutation, else 503.
        raise unavailable(any(operation.is_catalog_mutation() for operation in operations)) from None


def _refuse_unknown_parameters(
    operations: Iterable[type[HttpOperation]], declared: Collection[str], given: Iterable[str]
) -> None:
    """Raise 400 if `given` has a parameter that an endpoint of the management API neither reads nor may ignore."""
    path = next((each.paths()[0] for each in operations), "")
    if not path.startswith(_MANAGEMENT):
        return
    ignored = _PAGING | _PROJECT if "{" in path else _PAGING
    unknown = sorted(set(given) - ignored - set(declared))
    if unknown:
        possible = ", ".join(sorted(set(declared))) or "none"
        raise BadRequestException(
            f"Unknown query parameter {unknown[0][:64]!r}: it would have no effect. Parameters of this "
            f"endpoint: {possible}."
        )
