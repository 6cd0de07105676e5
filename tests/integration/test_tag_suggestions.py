# SPDX-License-Identifier: Apache-2.0
"""Suggestions of tags for the columns of a table, by a gateway that has them enabled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.load.kills import Killable
from tests.support.stack.tags import attach, define, shown, tags_path
from tests.support.stack.world import World, send_until_decided

pytestmark = [pytest.mark.integration, pytest.mark.servers]

COLUMNS = (("id", "long"), ("customerEmail", "string"), ("client_ip", "string"), ("amount", "double"))


@pytest.fixture
def world(stopped_gateway: Killable) -> Iterator[World]:
    with stopped_gateway.serving(TAG_SUGGESTIONS="true") as world:
        yield world


def test_names_and_types_suggest_tags_and_nothing_is_attached(world: World) -> None:
    fields = [{"id": n, "name": name, "type": kind, "required": False} for n, (name, kind) in enumerate(COLUMNS, 1)]
    table = world.table(world.namespace(), schema={"type": "struct", "fields": fields})
    at = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/tag-suggestions"
    email = {"field-id": 2, "column": "customerEmail", "tag": "pii.email", "because": "customerEmail"}
    address = {"field-id": 3, "column": "client_ip", "tag": "pii.ip-address", "because": "client_ip"}
    expected = [{**email, "whole-name": False}, {**address, "whole-name": True}]
    found = send_until_decided(lambda: world.admin.get(at))
    assert found.json() == {"suggestions": expected}
    column = tags_path(world, "table", table.uuid, "customerEmail")
    assert shown(world, column) == []
    assert attach(world, define(world, name="PII.Email"), column).status_code == 200
    assert world.admin.get(at).json() == {"suggestions": expected[1:]}
    assert world.stranger().get(at).status_code == 404
