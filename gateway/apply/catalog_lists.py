# SPDX-License-Identifier: Apache-2.0
"""List the namespaces of warehouses, and the tables and views of namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.apply.client import Api
from gateway.apply.located import Located
from gateway.apply.state import Address, Kind

LISTS: Final = {Kind.TABLE: "tables", Kind.VIEW: "views", Kind.GENERIC_TABLE: "generic-tables"}


def namespaces_of(api: Api, catalog: str, parent: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Return (levels, id) of every namespace that the caller sees in a warehouse, parents before children."""
    found: list[tuple[tuple[str, ...], str]] = []
    query = {"returnUuids": "true", **({"parent": "\x1f".join(parent)} if parent else {})}
    while True:
        page = api.get(f"{catalog}/namespaces", query=query)
        for levels, id in zip(page["namespaces"], page["namespace-uuids"], strict=True):
            found += [(tuple(levels), id), *namespaces_of(api, catalog, tuple(levels))]
        if not page.get("next-page-token"):
            return found
        query["pageToken"] = page["next-page-token"]


@dataclass(frozen=True, slots=True)
class Tabular:
    """A table, view or generic table in a list."""

    id: str
    protected: bool


def tabulars_of(api: Api, located: Located, namespace: Address, kind: Kind) -> dict[str, Tabular]:
    """Return the tables, views or generic tables that the caller sees in a namespace, by their names."""
    generic = kind is Kind.GENERIC_TABLE
    path = f"{located.namespace_path(namespace)}/{LISTS[kind]}"
    path = path.replace("/catalog/", "/lakekeeper/", 1) if generic else path
    found: dict[str, Tabular] = {}
    query = {"returnProtectionStatus": "true", **({} if generic else {"returnUuids": "true"})}
    while True:
        page = api.get(path, query=query)
        entries = page["identifiers"]
        ids = [each["id"] for each in entries] if generic else page["table-uuids"]
        for entry, id, protected in zip(entries, ids, page["protection-status"], strict=True):
            found[entry["name"]] = Tabular(id, protected)
        if not page.get("next-page-token"):
            return found
        query["pageToken"] = page["next-page-token"]
