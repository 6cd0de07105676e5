# SPDX-License-Identifier: Apache-2.0
"""Decide by which right a registration may use a location that already contains files.

The content of a metadata file is a claim of the caller. Its registration gives ownership of a location, and credentials
for it. So the catalog's records must confirm the claim. The file must be in a location that the caller owns in the
catalog, or owned until its table was dropped, unregistered or moved, and it must name exactly that location. Any other
registration is an adoption, a separate operation that needs the right `manage_storage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.tables import retired_locations, tables
from gateway.db.tuples.ownership import owner_of_new
from gateway.features.tables.chosen_locations import refuse_folder_of_namespace
from gateway.features.tables.tabular_creation import refuse_taken_location
from gateway.iceberg.errors import InvalidLocation, NamespaceActionForbidden
from gateway.scope.location import Location
from gateway.storage.registry import parse_location

RegistrationPermit: TypeAlias = Permit[RegisterTable | AdoptTable | RegisterView | AdoptView]


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to register an object at the location of a metadata file.

    `location` is the recorded location. It is None for an adoption, whose location is the one that the file names.
    `owner` is the principal that will own the registered object.
    """

    location: Location | None
    owner: Principal

    def require_same(self, named: Location) -> None:
        """Raise InvalidLocation if the metadata file contains a location other than the recorded one."""
        if self.location is not None and named.text != self.location.text:
            raise InvalidLocation(
                f"The metadata file contains the location {named.text!r}, but the location recorded for it is "
                f"{self.location.text!r}. Both must be the same; write the recorded location into the file."
            )


async def claim_of_file(
    connection: Connection, permit: RegistrationPermit, file: Location, *, replaced: UUID | None = None
) -> Claim:
    """Return the caller's claim on the location that contains the metadata file. `replaced` is the id of a table to
    overwrite.

    Raises NamespaceActionForbidden for a registration outside of locations that the caller owned. Raises
    LocationAlreadyTaken for an adoption at a location of a table or view, or at one for which vended credentials may
    still be valid.
    """
    if is_adoption(permit):
        folder = Location(file.scheme, file.authority, file.segments[:-1])
        await refuse_taken_location(connection, folder, other_than=replaced, owners=_names(_principals_of(permit)))
        return Claim(None, owner_of_new(permit.actor))
    claim = await _recorded_claim(connection, permit, file, replaced)
    if claim is None:
        raise _no_claim_error(file)
    return claim


async def take_location(
    connection: Connection,
    permit: RegistrationPermit,
    file: Location,
    location: Location,
    *,
    id: UUID,
    replaced: UUID | None = None,
) -> Principal:
    """Reserve the location for the registered object `id`. Return the principal that owns the object. Call it in the
    `creation_transaction`, which has locked the location.

    The object gets the policy inputs of the former objects with files at the location. `replaced` is the id of the
    overwritten table. Raises the errors of `claim_of_file`, and InvalidLocation for a folder of a namespace or for a
    location that differs from the recorded one.
    """
    claim = await claim_of_file(connection, permit, file, replaced=replaced)
    claim.require_same(location)
    if claim.location is None:
        owners = _names(_principals_of(permit))
        await refuse_taken_location(connection, location, other_than=replaced, owners=owners)
    namespace = permit.namespace(permit.operation.namespace)
    await refuse_folder_of_namespace(connection, namespace.warehouse.storage_profile.base_location(), location)
    above = [(each.text, each.overlap_key) for each in (location, *location.ancestors())]
    to = ObjectKey(_type_of(permit), str(id))
    await retired_locations.carry_policies(connection, to=to, namespace=namespace, file=file.text, above=above)
    await retired_locations.remove_reused(connection, location.text, location.overlap_key)
    return claim.owner


def _type_of(permit: RegistrationPermit) -> ObjectType:
    return ObjectType.VIEW if isinstance(permit.operation, (RegisterView, AdoptView)) else ObjectType.TABLE


def is_adoption(permit: RegistrationPermit) -> bool:
    """Return True if the permit is for an adoption of files, which may be anywhere below the warehouse's base
    location.
    """
    return isinstance(permit.operation, (AdoptTable, AdoptView))


async def _recorded_claim(
    connection: Connection, permit: RegistrationPermit, file: Location, replaced: UUID | None
) -> Claim | None:
    """Return the claim that the catalog's records confirm. Return None if the file is in no location that the caller
    owned.
    """
    above = [(each.text, each.overlap_key) for each in file.ancestors()]
    last_location = await retired_locations.last_location(connection, above, user=permit.actor.id, replaced=replaced)
    warehouse_id = permit.operation.namespace.warehouse_id
    if last_location is None or last_location.warehouse_id != warehouse_id or not last_location.files_remain:
        return None
    location = parse_location(last_location.location)
    # Credential policies use the exact text of the location, not the case-folded one.
    if not location.contains(file, strict=True):
        return None
    holders = [each for each in _principals_of(permit) if last_location.known or each.type is PrincipalType.ROLE]
    owner = next((each for each in holders if _name(each) in last_location.owners), None)
    if owner is None:
        return None
    around = [each.overlap_key for each in location.ancestors()]
    names = _names(holders)
    if await retired_locations.nested(connection, location.overlap_key, around):
        return None
    if await tables.location_taken(connection, location.overlap_key, around, other_than=replaced, owners=names):
        return None
    return Claim(location, owner)


def _principals_of(permit: RegistrationPermit) -> list[Principal]:
    """Return the principals whose rights the caller has: the assumed role alone, or else the user and the user's
    roles.
    """
    actor = permit.actor
    if actor.assumed_role is not None:
        return [Principal(PrincipalType.ROLE, str(actor.assumed_role))]
    roles = [Principal(PrincipalType.ROLE, id) for id in permit.resolution.caller_roles]
    return [Principal(PrincipalType.USER, actor.id), *roles]


def _name(principal: Principal) -> str:
    return f"{principal.type.value}:{principal.id}"


def _names(principals: list[Principal]) -> list[str]:
    return [_name(each) for each in principals]


def _no_claim_error(file: Location) -> NamespaceActionForbidden:
    """Return the error for a registration without a claim. It is the same for a taken location, a location of another
    owner and an unknown one, so that it reveals nothing.
    """
    return NamespaceActionForbidden(
        f"The metadata file {file.text!r} cannot be registered: it is not in the location of a table or view that "
        "you owned. To adopt other files, send the header X-Lakegate-Adopt: true. That needs `manage_storage` on "
        "the warehouse, which a security administrator of the project can grant."
    )
