# SPDX-License-Identifier: Apache-2.0
"""SCIM patches in the forms of both common providers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scim.errors import Immutable, InvalidPath, InvalidSyntax, InvalidValue, NoTarget, ScimError, TooMany
from gateway.scim.patch import patched_group, patched_user
from gateway.scim.reading import Email, Group, User, group_of, read, user_of
from gateway.scim.wire import GroupRequest, PatchRequest, UserRequest

CORE = "urn:ietf:params:scim:schemas:core:2.0:User"
ANN = User(user_name="ann", external_id="1", emails=(Email(value="a@x", type="work", primary=True),))


def request(*operations: dict[str, Any]) -> PatchRequest:
    return read(json.dumps({"Operations": operations}).encode(), PatchRequest)


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        ({"op": "Replace", "path": "active", "value": "False"}, {"active": False}),
        ({"op": "replace", "value": {"active": False}}, {"active": False}),
        ({"op": "replace", "value": {CORE: {"active": False}}}, {"active": False}),
        ({"op": "replace", "path": CORE, "value": {"active": False}}, {"active": False}),
        ({"op": "Add", "path": "displayName", "value": [{"$ref": None, "value": "Ann"}]}, {"display_name": "Ann"}),
        (
            {"op": "Replace", "value": {"name.givenName": "A", "displayName": "B"}},
            {"given_name": "A", "display_name": "B"},
        ),
        ({"op": "replace", "value": {"name": {"familyName": "F"}}}, {"family_name": "F"}),
        ({"op": "replace", "path": "NAME", "value": {"givenname": "G"}}, {"given_name": "G"}),
        (
            {"op": "Add", "path": 'emails[type eq "work"].value', "value": "b@x"},
            {"emails": (Email(value="b@x", type="work", primary=True),)},
        ),
        (
            {"op": "Add", "path": 'emails[type eq "home"].value', "value": "h@x"},
            {"emails": (*ANN.emails, Email(value="h@x", type="home"))},
        ),
        ({"op": "Remove", "path": 'emails[type eq "work"]'}, {"emails": ()}),
        (
            {"op": "add", "path": "emails", "value": [{"value": "h@x", "primary": "True"}]},
            {"emails": (Email(value="a@x", type="work"), Email(value="h@x", primary=True))},
        ),
        (
            {"op": "replace", "path": "emails", "value": [{"value": v, "primary": True} for v in ("b@x", "c@x")]},
            {"emails": (Email(value="b@x"), Email(value="c@x", primary=True))},
        ),
        ({"op": "Replace", "path": "externalId", "value": "2"}, {"external_id": "2"}),
        (
            {
                "op": "Replace",
                "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
                "value": "x",
            },
            {},
        ),
        (
            {"op": "Replace", "path": "urn:ietf:params:scim:schemas:core:2.0:User:userName", "value": "bo"},
            {"user_name": "bo"},
        ),
        ({"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "1"}, {}),
        ({"op": "Replace", "path": "title", "value": "x"}, {}),
    ],
)
def test_each_patch_form_changes_the_named_attribute(operation: dict[str, Any], changed: dict[str, Any]) -> None:
    after = patched_user(ANN, request(operation))
    values = {name: getattr(after, name) for name in User.__struct_fields__}
    assert values == {name: getattr(ANN, name) for name in User.__struct_fields__} | changed


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"op": "remove"}, NoTarget),
        ({"op": "copy", "path": "active", "value": True}, InvalidSyntax),
        ({"op": "add", "path": "emails[", "value": "x"}, InvalidPath),
        ({"op": "add", "path": 'emails[color eq "red"].value', "value": "x"}, InvalidPath),
        ({"op": "add", "value": "x"}, InvalidValue),
        ({"op": "replace", "path": "active", "value": "off"}, InvalidValue),
        ({"op": "replace", "path": "active", "value": None}, InvalidValue),
        ({"op": "remove", "path": "userName"}, Immutable),
        ({"op": "replace", "path": "active.value", "value": False}, InvalidPath),
        ({"op": "remove", "path": 'active[value eq "x"]'}, InvalidPath),
        ({"op": "replace", "value": {"externalId.x": "y"}}, InvalidPath),
        ({"op": "remove", "path": "active"}, InvalidValue),
        ({"op": "replace", "path": "userName", "value": " a"}, InvalidValue),
    ],
)
def test_meaningless_patches_are_refused(operation: dict[str, Any], error: type[ScimError]) -> None:
    with pytest.raises(error):
        patched_user(ANN, request({"op": "replace", "path": "displayName", "value": "x"}, operation))


def members(*ids: str) -> list[dict[str, str]]:
    return [{"value": id} for id in ids]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "Add", "path": "members", "value": members("a", "b")}], Group(add=frozenset("ab"))),
        ([{"op": "Remove", "path": "members", "value": members("a")}], Group(remove=frozenset("a"))),
        ([{"op": "Remove", "path": 'members[value eq "a"]'}], Group(remove=frozenset("a"))),
        ([{"op": "remove", "path": "members"}], Group(only=frozenset())),
        ([{"op": "replace", "path": "members", "value": members("a")}], Group(only=frozenset("a"))),
        ([{"op": "replace", "path": "members", "value": []}], Group(only=frozenset())),
        ([{"op": "add", "value": {"members": members("a")}}], Group(add=frozenset("a"))),
        ([{"op": "replace", "value": {"id": "1", "displayName": "N"}}], Group(display_name="N")),
    ],
)
def test_a_group_patch_returns_the_changes(operations: list[dict[str, Any]], expected: Group) -> None:
    assert patched_group(request(*operations)) == expected


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"op": "remove", "path": "displayName"}, Immutable),
        ({"op": "remove", "path": "members.value", "value": "a"}, InvalidPath),
        ({"op": "remove", "path": 'members[value eq "a"].display'}, InvalidPath),
        ({"op": "remove", "path": 'members[display eq "a"]'}, InvalidPath),
        ({"op": "replace", "path": 'members[value eq "a"]', "value": {"value": "b"}}, InvalidPath),
        ({"op": "add", "path": 'members[value eq "a"]'}, InvalidPath),
        ({"op": "replace", "path": 'externalId[value eq "a"]', "value": "b"}, InvalidPath),
        ({"op": "add", "path": "members"}, InvalidValue),
    ],
)
def test_a_member_path_without_a_member_is_refused(operation: dict[str, Any], error: type[ScimError]) -> None:
    with pytest.raises(error):
        patched_group(request(operation))


def test_the_last_operation_on_a_member_applies() -> None:
    add, remove = {"op": "add", "path": "members"}, {"op": "remove", "path": "members"}
    group = patched_group(request({**add, "value": members("a")}, {**remove, "value": members("a")}))
    assert (group.add, group.remove) == (frozenset(), frozenset("a"))
    group = patched_group(request({**remove, "value": members("a")}, {**add, "value": members("a")}))
    assert (group.add, group.remove) == (frozenset("a"), frozenset())
    group = patched_group(
        request({"op": "replace", "path": "members", "value": members("a", "b")}, {**remove, "value": members("b")})
    )
    assert group.joining == frozenset("a")


@pytest.mark.parametrize("op", ["add", "replace"])
def test_a_member_with_two_spellings_is_one_user_and_is_removed(op: str) -> None:
    id = "0193b7e2-6f6b-7c3e-8a53-abcdefabcdef"
    joins = {"op": op, "path": "members", "value": members(id.upper())}
    for leaves in (
        {"op": "remove", "path": f'members[value eq "{id}"]'},
        {"op": "remove", "path": "members", "value": members(id)},
    ):
        assert patched_group(request(joins, leaves)).joining == frozenset()


@given(
    st.frozensets(st.sampled_from("abcdef")),
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "replace"]), st.frozensets(st.sampled_from("abcdef"), min_size=1)),
        min_size=1,
        max_size=8,
    ),
)
def test_a_patch_equals_its_operations_in_sequence(
    before: frozenset[str], steps: list[tuple[str, frozenset[str]]]
) -> None:
    expected = before
    for op, ids in steps:
        expected = {"add": expected | ids, "remove": expected - ids, "replace": ids}[op]
    group = patched_group(
        request(*({"op": op, "path": "members", "value": members(*sorted(ids))} for op, ids in steps))
    )
    kept = frozenset() if group.only is not None else before - group.remove
    assert kept | group.joining == expected


def test_patch_and_body_sizes_are_bounded() -> None:
    with pytest.raises(TooMany):
        patched_group(request(*[{"op": "add", "path": "members", "value": members("a")}] * 1001))
    with pytest.raises(TooMany):
        patched_group(request({"op": "add", "path": "members", "value": members(*map(str, range(5001)))}))
    with pytest.raises(TooMany):
        read(b"[" + b"1," * 70_000 + b"1]", PatchRequest)
    with pytest.raises(TooMany):
        read(b'"' + b"x" * 3_000_000 + b'"', PatchRequest)
    with pytest.raises(InvalidSyntax):
        read(b"[" * 50_000, PatchRequest)
    with pytest.raises(InvalidSyntax):
        read(b'{"userName": "a", "USERNAME": "b"}', UserRequest)


def test_attributes_are_counted_across_all_operations() -> None:
    """Each attribute costs work, in one operation or in many, and in any spelling of its name."""
    schema = "urn:ietf:params:scim:schemas:core:2.0:group:"
    spelled = [schema.upper()[:n] + schema[n:] + "members" for n in range(len(schema))]
    many = [{"op": "add", "value": dict.fromkeys(dict.fromkeys(spelled), [])}] * 40
    for operations in (many, [{"op": "add", "value": {f"a{n}": 1 for n in range(600)}}] * 2):
        sent = read(json.dumps({"Operations": operations}).encode(), PatchRequest)
        for apply in (lambda request: patched_user(ANN, request), patched_group):
            with pytest.raises(TooMany):
                apply(sent)
    most = [{"op": "add", "value": {f"a{n}": 1 for n in range(500)}}] * 2
    assert patched_user(ANN, read(json.dumps({"Operations": most}).encode(), PatchRequest)) == ANN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["add", "True", "members"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["value", "type", "members", "name", "emails", "active", "x"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)
PATHS = st.sampled_from(
    ["members", 'members[value eq "a"]', "emails", 'emails[type eq "work"].value', "active", "name", "name.givenName"]
) | st.text(max_size=30)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["Add", "remove", "replace", "x"]), "path": PATHS | st.none(), "value": JSON}
        ),
        min_size=1,
        max_size=4,
    )
)
def test_arbitrary_patches_are_applied_or_refused(operations: list[dict[str, Any]]) -> None:
    raw = json.dumps({"Operations": operations}).encode()
    for apply in (lambda sent: patched_user(ANN, sent), patched_group):
        try:
            apply(read(raw, PatchRequest))
        except ScimError:
            continue


@given(JSON)
def test_arbitrary_bodies_are_applied_or_refused(body: Any) -> None:
    raw = json.dumps(body).encode()
    for reading in (lambda: user_of(read(raw, UserRequest)), lambda: group_of(read(raw, GroupRequest))):
        try:
            reading()
        except ScimError:
            continue


def test_a_user_gets_the_best_available_display_name() -> None:
    body = {
        "userName": "ann",
        "name": {"givenName": "A", "familyName": "B"},
        "emails": [{"value": "h@x"}, {"value": "w@x", "type": "work"}],
    }
    user = user_of(read(json.dumps(body).encode(), UserRequest))
    assert (user.shown, user.address, user.active) == ("A B", "w@x", None)
    assert user_of(read(b'{"userName": "ann", "active": "False"}', UserRequest)).active is False
