# SPDX-License-Identifier: Apache-2.0
"""Read the data policies of projects with their bindings, and create, change and bind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.apply.bound_objects import BoundObjects
from gateway.apply.changes import Change, NotChangeable
from gateway.apply.client import Api
from gateway.apply.definitions import MixedRole, readable, stored
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.state import Address, Kind, Resource, State, binding_address, bound_object, hidden_binding
from gateway.iceberg.identifiers import fold

_HIDDEN = "you do not see the object"
_DEFAULTS: Mapping[str, Any] = {"applies-to": "everyone", "allow-append": False}


class DataPolicyReader:
    """Reads the data policies of one project. `found` receives them with their bindings."""

    def __init__(self, api: Api, wanted: State, located: Located, found: dict[Address, Resource]) -> None:
        self._api = api
        self._wanted = wanted
        self._located = located
        self._found = found

    def read(self, project: Address) -> None:
        """Read the policies that the file names, and those that its list leaves out. Raises ApiError and MixedRole."""
        scoped = self._wanted.has_scope(Kind.DATA_POLICY, project)
        if not scoped:
            return
        id = self._located.id(project)
        objects = BoundObjects(self._api, self._located, project)
        for row in self._api.pages(f"{MANAGEMENT}/data-policy", "data-policies", project=id):
            address = Address(Kind.DATA_POLICY, fold(row["name"]), project)
            self._located.add(address, row["id"])
            self._found[address] = Resource(address, self._fields(address, row), id=row["id"], spec=row["version"])
            if address not in self._wanted.resources or self._wanted.has_scope(Kind.BINDING, address):
                self._bindings(address, objects)

    def _fields(self, address: Address, row: Mapping[str, Any]) -> dict[str, Any]:
        wanted = self._wanted.resources.get(address)
        stated = None if wanted is None else wanted.fields.get("definition")
        names = self._located.role_names(address.within(Kind.PROJECT))
        try:
            definition = readable(row["definition"], names, stated)
        except MixedRole as error:
            raise MixedRole(f"{address}: {error}") from None
        fields = {name: row.get(name) for name in ("name", "description", "applies-to", "allow-append")}
        return {**fields, "definition": definition}

    def _bindings(self, policy: Address, objects: BoundObjects) -> None:
        for row in self._api.pages(f"{self._located.path(policy)}/bindings", "bindings"):
            target = objects.address(policy, row)
            if target is None:
                address = hidden_binding(policy, row["type"], row["id"])
                self._found[address] = Resource(address, keep=_HIDDEN)
            else:
                address = binding_address(policy, target)
                self._found[address] = Resource(address)


def create_policy(api: Api, located: Located, desired: Resource) -> None:
    """Create a data policy. It restricts no principal before it is bound. Raises ApiError and UnknownRole."""
    address = desired.address
    made = api.change(
        "POST",
        f"{MANAGEMENT}/data-policy",
        _body(located, address, {**_DEFAULTS, **desired.fields}),
        project=located.project(address),
    )
    located.add(address, made["id"])


def update_policy(api: Api, located: Located, desired: Resource, present: Resource) -> None:
    """Write the next version of a data policy, unless another version was written meanwhile."""
    address = desired.address
    body = {**_body(located, address, {**present.fields, **desired.fields}), "if-version": present.spec}
    api.change("PUT", located.path(address), body, project=located.project(address))


def change_binding(api: Api, located: Located, binding: Address, *, adds: bool) -> None:
    """Bind a data policy to an object, or unbind it. Raises ApiError."""
    target, policy = bound_object(binding), binding.within(Kind.DATA_POLICY)
    if target is None:
        raise LookupError(f"{binding} has no object")
    if target.kind is Kind.NAME:
        warehouse = located.id(target.within(Kind.WAREHOUSE))
        named = {"warehouse-id": warehouse, "namespace": target.levels, "name": target.name}
        api.change("POST", f"{located.path(policy)}/bindings", {"add-names" if adds else "remove-names": [named]})
        return
    body = {"type": str(target.kind), "id": located.id(target)}
    if target.kind in (Kind.NAMESPACE, Kind.TABLE, Kind.GENERIC_TABLE):
        body["warehouse-id"] = located.id(target.within(Kind.WAREHOUSE))
    api.change("POST", f"{located.path(policy)}/bindings", {"add" if adds else "remove": [body]})


def require_definition(change: Change, present: Resource | None) -> None:
    """Raise NotChangeable if a new data policy has no definition."""
    if present is None and change.desired is not None and "definition" not in change.desired.fields:
        raise NotChangeable(f"{change.address} does not exist, and its creation needs `definition`.")


def _body(located: Located, address: Address, fields: Mapping[str, Any]) -> dict[str, Any]:
    definition = stored(fields["definition"], lambda role: located.principal(f"role:{role}", address)["role"])
    return {name: value for name, value in {**fields, "definition": definition}.items() if value is not None}
