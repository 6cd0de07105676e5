# SPDX-License-Identifier: Apache-2.0
"""Create, change and remove tags, mapping tables and data policies, with what belongs to them."""

from __future__ import annotations

from gateway.apply.changes import Change
from gateway.apply.client import Api
from gateway.apply.data_policies import change_binding, create_policy, require_definition, update_policy
from gateway.apply.located import Located
from gateway.apply.mapping_tables import create_mapping_table, remove_entry, require_same_description, set_entry
from gateway.apply.state import Address, Kind, Resource
from gateway.apply.tags import attach_tag, create_tag, detach_tag, require_extension, update_tag


def require_possible(change: Change, present: Resource | None) -> None:
    """Raise NotChangeable for a change that the gateway would refuse in the middle of the run."""
    match change.address.kind:
        case Kind.TAG:
            require_extension(change, present)
        case Kind.MAPPING_TABLE:
            require_same_description(change, present)
        case Kind.DATA_POLICY:
            require_definition(change, present)


def create(api: Api, located: Located, desired: Resource) -> None:
    """Create a resource. Raises ApiError and UnknownRole."""
    match desired.address.kind:
        case Kind.TAG:
            create_tag(api, located, desired)
        case Kind.ATTACHMENT:
            attach_tag(api, located, desired)
        case Kind.MAPPING_TABLE:
            create_mapping_table(api, located, desired)
        case Kind.MAPPING_ENTRY:
            set_entry(api, located, desired)
        case Kind.DATA_POLICY:
            create_policy(api, located, desired)
        case Kind.BINDING:
            change_binding(api, located, desired.address, adds=True)
        case _:
            raise LookupError(f"{desired.address} cannot be created")


def update(api: Api, located: Located, desired: Resource, present: Resource) -> None:
    """Change the fields of a resource. Raises ApiError and UnknownRole."""
    match desired.address.kind:
        case Kind.TAG:
            update_tag(api, located, desired, present)
        case Kind.ATTACHMENT:
            attach_tag(api, located, desired)
        case Kind.MAPPING_ENTRY:
            set_entry(api, located, desired)
        case Kind.DATA_POLICY:
            update_policy(api, located, desired, present)
        case _:
            raise LookupError(f"{desired.address} has no fields that can be changed")


def remove(api: Api, located: Located, address: Address) -> None:
    """Remove a resource that has no path of its own. Raises ApiError and UnknownRole."""
    match address.kind:
        case Kind.ATTACHMENT:
            detach_tag(api, located, address)
        case Kind.MAPPING_ENTRY:
            remove_entry(api, located, address)
        case Kind.BINDING:
            change_binding(api, located, address, adds=False)
        case _:
            raise LookupError(f"{address} cannot be removed")
