# SPDX-License-Identifier: Apache-2.0
"""Tags: define, attach, detach, search."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.support.stack.world import Person, World, send_until_decided, unique

TAG = "/management/v1/tag-definition"
EVERYWHERE = ["warehouse", "namespace", "table", "view", "generic-table", "column"]
FREE_TEXT: dict[str, Any] = {"value-kind": "free-text"}


def enumerated(*values: str) -> dict[str, Any]:
    """Return the members of a definition with these allowed values."""
    return {"value-kind": "enumerated", "allowed-values": list(values)}


def define(world: World, by: Person | None = None, **more: Any) -> dict[str, Any]:
    """Define a tag in the default project: a marker for all objects unless `more` says otherwise."""
    body = {"name": unique("pii"), "scope": EVERYWHERE, "value-kind": "marker", **more}
    made = send_until_decided(lambda: (by or world.admin).post(TAG, body))
    assert made.status_code == 201, made.text
    tag: dict[str, Any] = made.json()
    return tag


def tags_path(world: World, kind: str = "", id: str = "", column: str = "") -> str:
    """Return the path of the tags of an object, by default the warehouse."""
    within = f"/management/v1/warehouse/{world.warehouse}" + (f"/{kind}/{id}" if kind else "")
    return f"{within}/column/{quote(column, safe='')}/tags" if column else f"{within}/tags"


def attach(world: World, tag: dict[str, Any], path: str, value: str | None = None, by: Person | None = None) -> Any:
    """Attach a tag; `path` is that of the object's tags."""
    body = {} if value is None else {"value": value}
    url = f"{path}/{quote(tag['name'], safe='')}"
    return send_until_decided(lambda: (by or world.admin).send("PUT", url, json=body))


def detach(world: World, tag: dict[str, Any], path: str, by: Person | None = None) -> Any:
    url = f"{path}/{quote(tag['name'], safe='')}"
    return send_until_decided(lambda: (by or world.admin).delete(url))


def shown(world: World, path: str, **query: str) -> list[tuple[str, Any]]:
    """Return (name, value) of the tags of an object."""
    found = world.admin.get(path, params=query)
    assert found.status_code == 200, found.text
    return [(each["name"], each.get("value")) for each in found.json()["tags"]]


def search(world: World, tag: str, text: str = "", by: Person | None = None) -> list[str]:
    """Return the ids of the tables and views with a tag, as the search shows them."""
    url = f"/management/v1/warehouse/{world.warehouse}/search-tabular"
    found = send_until_decided(lambda: (by or world.admin).post(url, {"search": text, "tag": tag}))
    assert found.status_code == 200, found.text
    return [each["tabular-id"]["id"] for each in found.json()["tabulars"]]
