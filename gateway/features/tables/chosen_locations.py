# SPDX-License-Identifier: Apache-2.0
"""Check the locations that clients choose for tables and views against the folders of namespaces.

The layout `full-hierarchy` of a warehouse gives each namespace a folder, whose name contains the namespace's id. A
table whose location is such a folder would block creations in the namespace, so that location is refused. A table
inside of the folder requires the right to create in the namespace. Both rules apply to every layout, because the layout
of a warehouse can change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.operation import Operation
from gateway.db.engine.database import Connection
from gateway.db.tables import namespaces
from gateway.db.tables.namespaces import NamespacePlace
from gateway.features.kit import UseCases
from gateway.iceberg.errors import InvalidLocation
from gateway.scope.location import BaseLocation, Location, fold

__all__ = ["ChosenLocations", "refuse_folder_of_namespace", "require_creatable"]

# The lookahead also finds ids that overlap. The text is folded before the search, since stores may ignore letter case.
_ID: Final = re.compile(r"(?=([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))")


class ChosenLocations(UseCases):
    """Checks of chosen locations, by the rows of namespaces and the caller's right to create in them."""

    async def require_allowed(
        self, permit: Permit[Operation], base: BaseLocation, namespace: ResolvedNamespace, location: Location
    ) -> None:
        """Raise InvalidLocation unless a table or view in `namespace` may be at `location`, which is below `base`.

        Two other rules are checked elsewhere: the location must overlap no other location (`refuse_taken_location`) and
        be empty (`MetadataFiles.require_empty`).
        """
        named = ids_by_segment(base, location)
        if not any(named):
            return
        async with self._database.read() as connection:
            known = await namespaces.places(connection, [id for segment in named for id in segment])
        if not known:
            return
        elsewhere = [place.id for place in known.values() if place.id != namespace.id]
        keys = [ObjectKey(ObjectType.NAMESPACE, str(id)) for id in elsewhere]
        answers = await self._door.visible(permit, Can.CREATE_TABLE, keys) if keys else []
        creatable = {id for id, allowed in zip(elsewhere, answers, strict=True) if allowed} | {namespace.id}
        folders = [[known[id] for id in segment if id in known] for segment in named]
        require_creatable(location, folders, creatable, warehouse_id=namespace.warehouse.id)


def require_creatable(
    location: Location, folders: Sequence[Sequence[NamespacePlace]], creatable: set[UUID], *, warehouse_id: UUID
) -> None:
    """Raise InvalidLocation if the location is the folder of a namespace, or inside one in which the caller may not
    create.

    `folders` has, for each segment of the path, the namespaces whose ids it contains. `creatable` are those in which
    the caller may create. The folders of the ancestors of such a namespace are allowed above its own folder.
    """
    if folders[-1]:
        raise _is_folder(location)
    allowed: set[UUID] = set()
    for segment in reversed(folders[:-1]):
        for place in segment:
            if place.warehouse_id != warehouse_id or place.id not in creatable | allowed:
                raise InvalidLocation(
                    f"Location {location.text!r} is inside the folder of a namespace in which you may not create "
                    "tables. Choose another location, or ask an owner of that namespace for `create`."
                )
            allowed.update(place.ancestors)


def ids_by_segment(base: BaseLocation, location: Location) -> list[list[UUID]]:
    """Return, for each path segment of `location` below `base`, the ids that it contains."""
    below = location.segments[len(base.segments) :]
    return [[UUID(id) for id in _ID.findall(fold(segment))] for segment in below]


async def refuse_folder_of_namespace(connection: Connection, base: BaseLocation, location: Location) -> None:
    """Raise InvalidLocation if the location is the folder of a namespace. For files that are registered at their
    present location.
    """
    named = ids_by_segment(base, location)[-1]
    if named and await namespaces.places(connection, named):
        raise _is_folder(location)


def _is_folder(location: Location) -> InvalidLocation:
    return InvalidLocation(
        f"Location {location.text!r} is the folder of a namespace. The location of a table must be a folder below it."
    )
