# SPDX-License-Identifier: Apache-2.0
"""Text of a request never becomes part of a statement of the database (LG-POL-15)."""

from __future__ import annotations

import pytest

from tests.support.stack.world import SCHEMA, World, unique

_ENDINGS = (
    "'; drop table roles; --",
    "' or '1'='1",
    '"); delete from grants; --',
    "' || version() --",
    "$$;select 1;$$",
    "%",
)
_PARAMETERS = ("pageToken", "pageSize", "name", "value", "sourceIds", "parent")


@pytest.mark.threat("LG-POL-15")
@pytest.mark.parametrize("ending", _ENDINGS)
def test_names_with_sql_are_stored_and_found_as_text(world: World, ns: str, ending: str) -> None:
    """Two objects whose names differ in the ending alone: each filter, search and path finds the right one."""
    stem = unique("r")
    name, other = f"{stem}{ending}", f"{stem}-other"
    for each in (name, other):
        assert world.admin.post("/management/v1/role", {"name": each, "description": ending}).status_code == 201
        assert (
            world.admin.post(
                "/management/v1/tag-definition", {"name": f"t{each}", "scope": ["table"], "value-kind": "marker"}
            ).status_code
            == 201
        )
    found = world.admin.post("/management/v1/search/role", {"search": name}).json()["roles"]
    assert found[0]["name"] == name
    tags = world.admin.get("/management/v1/tag-definition", params={"name": f"t{name}"}).json()["tag-definitions"]
    assert [each["name"] for each in tags] == [f"t{name}"]
    for each in (name, other):
        made = world.admin.post(
            f"/catalog/v1/{world.warehouse}/namespaces/{ns}/tables",
            {"name": each, "schema": SCHEMA, "properties": {"note": ending}},
        )
        assert made.status_code == 200, made.text
    search = f"/management/v1/warehouse/{world.warehouse}/search-tabular"
    tabulars = world.admin.post(search, {"search": name}).json()["tabulars"]
    assert tabulars[0]["tabular-name"] == name


@pytest.mark.threat("LG-POL-15")
@pytest.mark.parametrize("ending", _ENDINGS)
def test_parameters_with_sql_are_refused_or_match_nothing(world: World, ns: str, ending: str) -> None:
    absent = unique("absent") + ending
    role = world.admin.post("/management/v1/role", {"name": unique("kept")}).json()["id"]
    for path in (
        "/management/v1/role",
        "/management/v1/user",
        "/management/v1/tag-definition",
        f"/catalog/v1/{world.warehouse}/namespaces",
        f"/catalog/v1/{world.warehouse}/namespaces/{ns}/tables",
    ):
        for parameter in _PARAMETERS:
            answer = world.admin.get(path, params={parameter: absent})
            assert answer.status_code in (200, 400, 404), answer.text
    assert world.admin.get(f"/management/v1/role/{role}").status_code == 200
