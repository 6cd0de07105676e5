# SPDX-License-Identifier: Apache-2.0
"""Selection of returned attributes, and the SCIM discovery documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gateway.scim import discovery
from gateway.scim.errors import NoSuchResource
from gateway.scim.wire import GROUP, USER, Meta, ScimEmail, ScimGroup, ScimMember, ScimName, ScimUser, Selection

Discovered = discovery.ScimSchema | discovery.ScimResourceType
ANN = ScimUser(
    schemas=(USER,),
    id="1",
    meta=Meta(resource_type="User", location="/scim/v2/Users/1", version='W/"1"'),
    user_name="ann",
    active=True,
    name=ScimName(given_name="A", family_name="B"),
    emails=(ScimEmail(value="a@x", type="work"), ScimEmail(value="b@x")),
)
WHOLE = json.loads(msgspec.json.encode(ANN))


def narrowed(only: list[str], excluded: list[str]) -> dict[str, Any]:
    attributes: dict[str, Any] = json.loads(msgspec.json.encode(Selection.of(only, excluded).narrowed(ANN)))
    return attributes


@pytest.mark.parametrize(
    ("only", "excluded", "attributes"),
    [
        ([], [], set(WHOLE)),
        (["USERNAME"], [], {"userName"}),
        ([f"{USER}:userName"], [], {"userName"}),
        ([f"{USER.upper()}:name.familyName"], [], {"name"}),
        (["nothing"], [], set()),
        (["id"], [], set()),
        ([], ["emails", "NAME"], {"meta", "userName", "active"}),
        ([], ["id", "schemas"], set(WHOLE)),
        (["userName", "name"], ["name"], {"userName"}),
        (["userName"], ["name.givenName"], {"userName"}),
        (["userName.x"], [], {"userName"}),
    ],
)
def test_attributes_are_chosen_by_name(only: list[str], excluded: list[str], attributes: set[str]) -> None:
    assert set(narrowed(only, excluded)) == attributes | {"schemas", "id"}


def test_sub_attributes_are_chosen_by_name() -> None:
    assert narrowed(["name.familyName", "emails.value"], []) == {
        "schemas": [USER],
        "id": "1",
        "name": {"familyName": "B"},
        "emails": [{"value": "a@x"}, {"value": "b@x"}],
    }
    without = narrowed([], ["name.givenName", "emails.type", "meta.version"])
    assert without["name"] == {"familyName": "B"} and "version" not in without["meta"]
    assert [set(each) for each in without["emails"]] == [{"value"}, {"value"}]


def test_members_are_read_only_if_requested() -> None:
    assert Selection.of(["members.value"], []).takes("members")
    assert not Selection.of(["displayName"], []).takes("members")
    assert not Selection.of([], [f"{GROUP}:MEMBERS"]).takes("members")
    member = ScimMember(value="2", ref="/scim/v2/Users/2", display="ann", type="User")
    group = ScimGroup(schemas=(GROUP,), id="1", members=(member,))
    attributes = json.loads(msgspec.json.encode(Selection.of(["members.$ref"], []).narrowed(group)))
    assert attributes["members"] == [{"$ref": "/scim/v2/Users/2"}]


def test_schemas_and_resource_types_are_served_at_their_location() -> None:
    listed: list[Discovered] = [*discovery.schemas().resources, *discovery.resource_types().resources]
    read: Callable[[str], Discovered]
    for each in listed:
        read = discovery.schema if each.meta.resource_type == "Schema" else discovery.resource_type
        name = each.meta.location.rpartition("/")[2]
        assert read(name) == read(name.upper()) == each
    for read in (discovery.schema, discovery.resource_type):
        with pytest.raises(NoSuchResource):
            read("urn:nothing")


def test_every_returned_user_and_group_attribute_is_in_its_schema() -> None:
    for kind, name in ((ScimUser, USER), (ScimGroup, GROUP)):
        schema_attributes = {each.name: each for each in discovery.schema(name).attributes}
        attributes = {each.encode_name for each in msgspec.structs.fields(kind)} - {"schemas", "id", "meta"}
        assert attributes == set(schema_attributes)
    members = next(each for each in discovery.schema(GROUP).attributes if each.name == "members")
    assert {each.encode_name for each in msgspec.structs.fields(ScimMember)} == {
        each.name for each in members.sub_attributes
    }
