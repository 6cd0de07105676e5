# SPDX-License-Identifier: Apache-2.0
"""Find the names of the objects that data policies are bound to: the API has their ids."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from gateway.apply.catalog_lists import namespaces_of
from gateway.apply.client import FORBIDDEN, NOT_FOUND, Api, ApiError
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.state import Address, Kind, name_address, namespace_address
from gateway.iceberg.identifiers import fold


class BoundObjects:
    """The objects of one project that data policies can be bound to. Lists are read only if the file has not all names.

    The ids of the objects are added to `located`.
    """

    def __init__(self, api: Api, located: Located, project: Address) -> None:
        self._api = api
        self._located = located
        self._project = project
        self._listed: set[Address] = set()

    def address(self, policy: Address, binding: Mapping[str, Any]) -> Address | None:
        """Return the object of a binding of an answer; None if the caller does not see it. Raises ApiError."""
        kind, id = Kind(binding["type"]), binding["id"]
        if kind is Kind.NAME:
            warehouse = self._warehouse(binding["warehouse-id"])
            return None if warehouse is None else name_address(warehouse, binding["namespace"], binding["name"])
        if (known := self._located.address(kind, id)) is not None:
            return known
        match kind:
            case Kind.TAG:
                found = self._tags.get(id)
            case Kind.WAREHOUSE:
                found = self._warehouse(id)
            case Kind.NAMESPACE:
                self._list_namespaces(binding["warehouse-id"])
                found = self._located.address(kind, id)
            case _:
                found = self._tables(policy).get(id)
        if found is not None:
            self._located.add(found, id)
        return found

    @cached_property
    def _tags(self) -> Mapping[str, Address]:
        project = self._located.id(self._project)
        listed = self._api.pages(f"{MANAGEMENT}/tag-definition", "tag-definitions", project=project)
        return {each["id"]: Address(Kind.TAG, fold(each["name"]), self._project) for each in listed}

    @cached_property
    def _warehouses(self) -> Mapping[str, str]:
        """{id: name} of the active warehouses."""
        listed = self._api.get(f"{MANAGEMENT}/warehouse", project=self._located.id(self._project))["warehouses"]
        return {each["warehouse-id"]: each["name"] for each in listed}

    def _warehouse(self, id: str) -> Address | None:
        known = self._located.address(Kind.WAREHOUSE, id)
        if known is None and id in self._warehouses:
            known = Address(Kind.WAREHOUSE, self._warehouses[id], self._project)
            self._located.add(known, id)
        return known

    def _list_namespaces(self, warehouse_id: str) -> None:
        warehouse = self._warehouse(warehouse_id)
        if warehouse is None or warehouse in self._listed:
            return
        self._listed.add(warehouse)
        try:
            for levels, id in namespaces_of(self._api, self._located.catalog(warehouse)):
                self._located.add(namespace_address(warehouse, levels), id)
        except ApiError as error:
            if error.status not in (FORBIDDEN, NOT_FOUND):
                raise

    def _tables(self, policy: Address) -> Mapping[str, Address]:
        """Return the tables that a policy covers, by their ids."""
        found: dict[str, Address] = {}
        every = {"withoutEffect": "true"}
        for row in self._api.pages(f"{self._located.path(policy)}/affected", "tables", query=every):
            warehouse = self._warehouse(row["warehouse-id"])
            if warehouse is not None and row.get("type") not in ("view", "namespace"):
                namespace = namespace_address(warehouse, row["namespace"])
                found[row["table-id"]] = Address(Kind(row.get("type", Kind.TABLE)), row["name"], namespace)
        return found
