# SPDX-License-Identifier: Apache-2.0
"""Replace the name of a warehouse in the path by its id, before anything else reads the path.

So idempotency keys, entity tags, audit records and page tokens depend only on the id. The response for a warehouse that
the caller may not see contains the name instead: the id would reveal that the warehouse exists.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from litestar import Request
from litestar.types import Scope

from gateway.access.actor import Actor, ActorKind
from gateway.access.management_errors import ProjectIdMissing
from gateway.access.nouns.refs import WarehouseNameRef
from gateway.api.services import Services
from gateway.iceberg.errors import CatalogError, NoSuchWarehouseException, PrefixIsNotWarehouseID

_GIVEN_NAME: Final = "warehouse_name"
#: The first segment that can be the prefix: `/catalog/v1/{prefix}/…`, `/lakekeeper/v1/{prefix}/…`.
_FIRST_SEGMENT: Final = 3
#: Maximum length of the name of a warehouse.
_LONGEST_NAME: Final = 128


async def resolve_prefix(request: Request[Any, Any, Any], services: Services, actor: Actor) -> None:
    """Replace the name of a warehouse in the request's path by its id. A path that has an id stays unchanged.

    The name is looked up in the project in the header `x-project-id`, or else the project to which token or role limit
    the caller, or else the default project. A text in the form of a UUID is always an id. Raises ProjectIdMissing, and
    PrefixIsNotWarehouseID for a text that is neither.
    """
    name = request.path_params.get("prefix")
    if not name or actor.kind is ActorKind.ANONYMOUS or _is_uuid(name):
        return
    if len(name) > _LONGEST_NAME:
        raise PrefixIsNotWarehouseID(
            "The prefix in the path must be the id of a warehouse, as GET /v1/config returns it, or its name. "
            f"A name has at most {_LONGEST_NAME} characters."
        )
    # If the header is sent several times, the joined text is no project: an id contains no comma.
    project = ", ".join(request.headers.getall("x-project-id", [])) or actor.within or services.default_project_id
    if project is None:
        raise ProjectIdMissing(
            "The path names the warehouse by its name. Name its project with the header x-project-id, or use the id of "
            "the warehouse."
        )
    id = str(await services.warehouse_names.id_of(WarehouseNameRef(project, name), actor))
    request.scope["state"][_GIVEN_NAME] = name
    # A new dict, because the router caches its own dict by path: the next request with this path would get the id, too.
    request.scope["path_params"] = {**request.path_params, "prefix": id}
    request.scope["path"] = _with_id(request.scope["path"], name, id)


def by_name(scope: Scope, error: CatalogError) -> CatalogError:
    """Return the error for a request with the name of a warehouse. The error for an absent warehouse contains the name,
    not the id.
    """
    name = (scope.get("state") or {}).get(_GIVEN_NAME)
    if name is None or not isinstance(error, NoSuchWarehouseException):
        return error
    return NoSuchWarehouseException(f"Warehouse does not exist: {name}")


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _with_id(path: str, name: str, id: str) -> str:
    """Return the path with the id instead of the name."""
    segments = path.split("/")
    at = segments.index(name, _FIRST_SEGMENT)
    return "/".join([*segments[:at], id, *segments[at + 1 :]])
