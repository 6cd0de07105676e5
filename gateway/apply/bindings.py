# SPDX-License-Identifier: Apache-2.0
"""Bindings of data policies to objects in `lakegate apply`. Files contain names of objects, and the API their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.apply.client import FORBIDDEN, NOT_FOUND, ApiError
from gateway.apply.document import Binding
from gateway.apply.namespaces import NAMESPACES
from gateway.apply.nouns import Collector, Noun
from gateway.apply.session import Changing, Reading
from gateway.apply.source import Path
from gateway.apply.state import (
    Address,
    Kind,
    Resource,
    State,
    binding_address,
    bound_object,
    hidden_binding,
    name_address,
    namespace_address,
)
from gateway.apply.tags import TAGS
from gateway.apply.warehouses import WAREHOUSES
from gateway.iceberg.identifiers import NamePattern, fold


class Bindings(Noun):
    """Bindings of a data policy to a tag, a warehouse, a namespace, a (generic) table, or a name."""

    kind, member, is_object = Kind.BINDING, "bindings", False

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add a binding, with references to its object and to the containers of the object. Raises InvalidSource."""
        target = _target(to, path, on.within(Kind.PROJECT), entry)
        # The caller need not see the namespaces above the bound object.
        namespace = target.parent if target.kind is not Kind.NAMESPACE else None
        above = [each for each in target.ancestors() if each.kind is Kind.WAREHOUSE or each == namespace]
        # For a binding to a name, no object with this name needs to exist.
        to.references |= {target, *above} if target.kind is not Kind.NAME else {target.within(Kind.WAREHOUSE)}
        to.add(path, Resource(binding_address(on, target)))

    def is_read(self, reading: Reading, on: Address) -> bool:
        """Return True if the file contains the bindings of a policy, or does not contain the policy."""
        return on not in reading.wanted.resources or self.is_complete(reading, on)

    def read(self, reading: Reading, on: Address) -> None:
        """Read the bindings of a policy. Raises ApiError."""
        if not self.is_read(reading, on):
            return
        for row in reading.pages(on, "bindings", "bindings"):
            target = _object(reading, on, row)
            if target is None:
                address = hidden_binding(on, row["type"], row["id"])
                reading.found[address] = Resource(address, keep="you do not see the object")
            else:
                address = binding_address(on, target)
                reading.found[address] = Resource(address)

    def create(self, session: Changing, desired: Resource) -> None:
        """Bind a data policy to an object. Raises ApiError."""
        self._change(session, desired.address, "add")

    def remove(self, session: Changing, address: Address) -> None:
        """Unbind a data policy from an object. Raises ApiError."""
        self._change(session, address, "remove")

    def _change(self, session: Changing, binding: Address, what: str) -> None:
        target, located = bound_object(binding), session.located
        if target is None:
            raise LookupError(f"{binding} has no object")
        body: dict[str, Any] = {"type": str(target.kind)}
        if target.kind not in (Kind.TAG, Kind.WAREHOUSE):
            body["warehouse-id"] = located.id(target.within(Kind.WAREHOUSE))
        if target.kind is Kind.NAME:
            what, body = f"{what}-names", {**body, "namespace": target.levels, "name": target.name}
            del body["type"]
        else:
            body["id"] = located.id(target)
        session.change("POST", binding.on, "/bindings", {what: [body]})

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the bindings of a policy to those objects that the caller can see."""
        if not state.has_scope(Kind.BINDING, on):
            return {}
        bound = (bound_object(each.address) for each in state.children(Kind.BINDING, on))
        return {"bindings": [_binding(state, each) for each in bound if each is not None]}


BINDINGS = Bindings()


def _binding(state: State, target: Address) -> dict[str, Any]:
    if target.kind is Kind.TAG:
        known = state.resources.get(target)
        return {"tag": target.name if known is None else known.fields["name"]}
    levels = list(target.levels)
    found: dict[str, Any] = {"warehouse": target.within(Kind.WAREHOUSE).name}
    if levels:
        found["namespace"] = levels[0] if len(levels) == 1 else levels
    named = target.kind in (Kind.TABLE, Kind.GENERIC_TABLE, Kind.NAME)
    return found | ({str(target.kind): target.name} if named else {})


def _target(to: Collector, path: Path, project: Address, binding: Binding) -> Address:
    """Return the object of a binding in the file. Raises InvalidSource."""
    within = (binding.warehouse, binding.namespace, binding.table, binding.generic_table, binding.name)
    if (binding.tag is None) == (binding.warehouse is None) or (binding.tag is not None and any(within)):
        text = "give either `tag`, or `warehouse`, which `namespace`, `table`, `generic-table` and `name` narrow."
        raise to.source.error(path, text)
    if binding.tag is not None:
        return Address(Kind.TAG, fold(binding.tag), project)
    warehouse = Address(Kind.WAREHOUSE, binding.warehouse or "", project)
    narrowed = [each for each in (binding.table, binding.generic_table, binding.name) if each is not None]
    if len(narrowed) > 1:
        raise to.source.error(path, "give only one of `table`, `generic-table` and `name`.")
    if not binding.namespace:
        if narrowed:
            raise to.source.error(path, "a table needs `namespace` too.")
        return warehouse
    levels = (binding.namespace,) if isinstance(binding.namespace, str) else binding.namespace
    if binding.name is not None:
        try:
            NamePattern(levels, binding.name)
        except ValueError as error:
            raise to.source.error(path, f"{error}.") from None
        return name_address(warehouse, levels, binding.name)
    namespace = namespace_address(warehouse, levels)
    if binding.generic_table is not None:
        return Address(Kind.GENERIC_TABLE, binding.generic_table, namespace)
    return namespace if binding.table is None else Address(Kind.TABLE, binding.table, namespace)


def _object(reading: Reading, policy: Address, binding: Mapping[str, Any]) -> Address | None:
    """Return the object of a binding in a response; None if the caller cannot see the object. Raises ApiError.

    Lists are read only to find objects that the file does not name.
    """
    kind, id, located = Kind(binding["type"]), binding["id"], reading.located
    if kind is Kind.NAME:
        warehouse = _warehouse(reading, policy, binding["warehouse-id"])
        return None if warehouse is None else name_address(warehouse, binding["namespace"], binding["name"])
    if located.address(kind, id) is None:
        match kind:
            case Kind.TAG if reading.once(kind, policy.on):
                for address, found, _ in TAGS.rows(reading, policy.on):
                    located.add(address, found)
            case Kind.WAREHOUSE:
                _warehouse(reading, policy, id)
            case Kind.NAMESPACE:
                _list_namespaces(reading, _warehouse(reading, policy, binding["warehouse-id"]))
            case Kind.TABLE | Kind.GENERIC_TABLE if reading.once(kind, policy):
                _list_covered(reading, policy)
    return located.address(kind, id)


def _warehouse(reading: Reading, policy: Address, id: str) -> Address | None:
    """Return the warehouse with an id; None if the caller cannot see it, or it is inactive."""
    located = reading.located
    if located.address(Kind.WAREHOUSE, id) is None and reading.once(Kind.WAREHOUSE, policy.on):
        for address, found, row in WAREHOUSES.rows(reading, policy.on):
            if row["status"] == "active" and located.address(Kind.WAREHOUSE, found) is None:
                located.add(address, found)
    return located.address(Kind.WAREHOUSE, id)


def _list_namespaces(reading: Reading, warehouse: Address | None) -> None:
    if warehouse is None or not reading.once(Kind.NAMESPACE, warehouse):
        return
    try:
        for address, id, _ in NAMESPACES.rows(reading, warehouse):
            reading.located.add(address, id)
    except ApiError as error:
        if error.status not in (FORBIDDEN, NOT_FOUND):
            raise


def _list_covered(reading: Reading, policy: Address) -> None:
    """Read which tables a policy covers, to find their names."""
    for row in reading.pages(policy, "affected", "tables", {"withoutEffect": "true"}):
        warehouse = _warehouse(reading, policy, row["warehouse-id"])
        if warehouse is not None and row.get("type") not in ("view", "namespace"):
            namespace = namespace_address(warehouse, row["namespace"])
            table = Address(Kind(row.get("type", Kind.TABLE)), row["name"], namespace)
            if reading.located.address(table.kind, row["table-id"]) is None:
                reading.located.add(table, row["table-id"])
