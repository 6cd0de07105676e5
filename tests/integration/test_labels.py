# SPDX-License-Identifier: Apache-2.0
"""Tags as `labels` of loaded tables and views, by a gateway that has them enabled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.support.load.kills import Killable
from tests.support.stack.columns import give, wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.exchanging import acting
from tests.support.stack.tags import FREE_TEXT, attach, define, detach, tags_path
from tests.support.stack.views import body
from tests.support.stack.world import Person, Table, World, send_until_decided, unique

pytestmark = [pytest.mark.integration, pytest.mark.servers]

MASK = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]}


@pytest.fixture(scope="module")
def world(stopped_gateway: Killable) -> Iterator[World]:
    with stopped_gateway.serving(TAG_LABELS="true") as world:
        yield world


def _loaded(person: Person, table: Table, **headers: str) -> httpx.Response:
    answer: httpx.Response = send_until_decided(lambda: person.get(table.path, headers=headers))
    assert answer.status_code in (200, 304), answer.text
    return answer


def _labels(person: Person, table: Table) -> Any:
    return _loaded(person, table).json().get("labels")


def _fields(labels: Any) -> dict[int, Any]:
    return {each["field-id"]: each["labels"] for each in labels["fields"]}


def test_tags_are_labels_with_an_etag_and_clients_load_such_tables(world: World) -> None:
    ns = world.namespace()
    table = wide(world, ns)
    assert "labels" not in (first := _loaded(world.admin, table)).json()
    of_namespace = tags_path(world, "namespace", world.namespace_id(ns))
    of_table, of_name = (tags_path(world, "table", table.uuid, *column) for column in ((), ("name",)))
    owner, marker = define(world, **FREE_TEXT), define(world)
    assert attach(world, owner, of_namespace, "finance").status_code == 200
    second = _loaded(world.admin, table, **{"If-None-Match": first.headers["etag"]})
    assert second.json()["labels"] == {"object-labels": {owner["name"]: "finance"}}
    attach(world, owner, of_table, "risk")
    attach(world, marker, of_name)
    third = _loaded(world.admin, table, **{"If-None-Match": second.headers["etag"]})
    assert third.json()["labels"] == {
        "object-labels": {owner["name"]: "risk"},
        "fields": [{"field-id": 2, "labels": {marker["name"]: ""}}],
    }
    assert _loaded(world.admin, table, **{"If-None-Match": third.headers["etag"]}).status_code == 304
    where = {"uri": f"{world.base}/catalog", "warehouse": str(world.ready.warehouse), "token": world.admin.token}
    client = RestCatalog("labels", **where)
    assert len(client.load_table((ns, table.name)).schema().fields) == 4
    detach(world, marker, of_name)
    assert _labels(world.admin, table) == {"object-labels": {owner["name"]: "risk"}}
    view = unique("v")
    made = send_until_decided(lambda: world.admin.post(f"{world.root}/namespaces/{ns}/views", body(view)))
    assert made.status_code == 200, made.text
    shown = send_until_decided(lambda: world.admin.get(f"{world.root}/namespaces/{ns}/views/{view}"))
    assert shown.json()["labels"] == {"object-labels": {owner["name"]: "finance"}}


def test_a_restricted_caller_gets_no_label_of_a_hidden_or_masked_column(world: World) -> None:
    table = wide(world, world.namespace())
    tag = define(world)
    for column in ("id", "name", "card"):
        assert attach(world, tag, tags_path(world, "table", table.uuid, column)).status_code == 200
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    marked = {tag["name"]: ""}
    assert give(world, table, "id", world.carol).status_code == 204
    assert _fields(_labels(acting(world, world.etl, world.carol), table)) == {1: marked}
    policy = make(world, MASK)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    assert _fields(_labels(acting(world, world.etl, world.admin), table)) == {1: marked, 3: marked}
    describing = world.stranger()
    world.grant("describe", describing, "table", table.uuid)
    assert "labels" not in _loaded(describing, table).json()
