# SPDX-License-Identifier: Apache-2.0
"""Files of tables and views that are gone: who may make a table or view of them again.

A metadata file is easily known: whoever could once describe the table knows where it lies. Registering it gives
ownership and keys, so it takes more than a right to create somewhere: to be the one who gave the table up, or to
have the warehouse's storage in hand.
"""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from gateway.access.operations.registrations import RegisterTable, RegisterView
from gateway.access.permit import Permit
from gateway.access.refs import WarehouseRef
from gateway.access.refusals import forbidden
from gateway.access.relations import Can
from gateway.catalog.newcomers import claim_location
from gateway.db import namespaces, retired
from gateway.db.engine import Connection
from gateway.iceberg.errors import InvalidLocation
from gateway.scope.layout import FullHierarchyLayout
from gateway.scope.location import Location
from gateway.scope.profile import stored_profile

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

Registering = Permit[RegisterTable] | Permit[RegisterView]


async def claim_left_location(connection: Connection, permit: Registering, location: Location) -> None:
    """As `claim_location`, for what is registered: who gave a place up may come back to it while keys for it live.

    Raises LocationAlreadyTaken, InvalidLocation for a namespace's folder, NamespaceActionForbidden for leftovers of
    others.
    """
    await claim_location(connection, location, explicit=True, left_by=permit.actor.id)
    await _refuse_folder_of_namespace(connection, permit, location)
    await refuse_leftovers(connection, permit, location)
    await retired.taken_in(connection, location.overlap_key)


async def _refuse_folder_of_namespace(connection: Connection, permit: Registering, location: Location) -> None:
    """Raise InvalidLocation for the folder that the layout gives a namespace: nobody could create in it any more.

    Its name holds the namespace's id (`gateway.scope.layout`), and so does that of every folder above it.
    """
    profile = stored_profile(permit.namespace(permit.operation.namespace).warehouse.profile)
    if not isinstance(profile.storage_layout, FullHierarchyLayout):
        return
    named = [UUID(id) for id in _ID.findall(location.segments[-1])]
    if await namespaces.any_exists(connection, named):
        raise InvalidLocation(f"Location {location.text!r} is the folder of a namespace: a table must lie below it")


async def refuse_leftovers(connection: Connection, permit: Registering, location: Location) -> None:
    """Raise NamespaceActionForbidden when what somebody else left lies at, above or below this place."""
    namespace = permit.operation.namespace
    if permit.holds(Can.UPDATE_STORAGE, WarehouseRef(namespace.warehouse_id)):
        return
    ancestors = [above.overlap_key for above in location.ancestors()]
    if await retired.left_by_others(connection, location.overlap_key, ancestors, principal=permit.actor.id):
        raise forbidden(permit.actor, "Registering what is left of somebody else's table or view", namespace, ())
