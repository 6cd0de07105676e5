# SPDX-License-Identifier: Apache-2.0
"""Names in OpenFGA: no id becomes a wildcard, a userset, another type or a second name of a user."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fga.names import (
    MAX_OBJECT_BYTES,
    MAX_SUBJECT_BYTES,
    InvalidPrincipalId,
    member_of,
    object_of,
    role_members,
    user_id_of,
    user_object,
)

ROLE = UUID("9f0b2c4e-0000-4000-8000-00000000ABCD")
SAFE = re.compile(r"user:[A-Za-z0-9._~%-]+", re.ASCII)

nasty = st.text(alphabet=st.sampled_from("a:#*@|% ~\n\t\x00\\/'\"é名\U0001f600"), min_size=1, max_size=20)


@given(st.one_of(st.text(min_size=1, max_size=40), nasty))
def test_every_accepted_user_id_round_trips_and_is_unique(user_id: str) -> None:
    try:
        name = user_object(user_id)
    except InvalidPrincipalId:
        assert not user_id.strip() or any("\ud800" <= char <= "\udfff" for char in user_id)
        return
    assert SAFE.fullmatch(name)
    assert len(name.encode()) <= MAX_SUBJECT_BYTES
    assert user_id_of(name) == user_id


@pytest.mark.threat("LG-POL-09")
@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_two_users_never_share_a_name(one: str, other: str) -> None:
    try:
        same = user_object(one) == user_object(other)
    except InvalidPrincipalId:
        return
    assert same == (one == other)


@pytest.mark.threat("LG-POL-09")
@pytest.mark.parametrize(
    ("user_id", "name"),
    [
        ("oidc~alice", "user:oidc~alice"),
        ("oidc~a:b#c*", "user:oidc~a%3Ab%23c%2A"),
        ("*", "user:%2A"),
        ("role:x#assignee", "user:role%3Ax%23assignee"),
        ("team:x#member", "user:team%3Ax%23member"),
        ("oidc~a@b.example", "user:oidc~a%40b.example"),
        ("oidc~a b\n", "user:oidc~a%20b%0A"),
        ("oidc~100%", "user:oidc~100%25"),
        ("oidc~%2A", "user:oidc~%252A"),
        ("oidc~é", "user:oidc~%C3%A9"),
        ("oidc|x", "user:oidc%7Cx"),
        ("role=x", "user:role%3Dx"),
    ],
)
def test_ids_with_tuple_syntax_are_encoded(user_id: str, name: str) -> None:
    assert user_object(user_id) == name


@pytest.mark.threat("LG-DEC-22")
@pytest.mark.parametrize("user_id", ["", " ", "\n\t", "\u3000", "\ud800", "oidc~\udfff"])
def test_blank_ids_and_broken_text_are_refused(user_id: str) -> None:
    with pytest.raises(InvalidPrincipalId) as refused:
        user_object(user_id)
    assert refused.value.code == 400
    assert refused.value.type == "InvalidPrincipalId"


def test_an_id_is_refused_when_its_encoded_form_is_too_long() -> None:
    longest = "a" * (MAX_SUBJECT_BYTES - len("user:"))
    assert len(user_object(longest)) == MAX_SUBJECT_BYTES
    for too_long in (longest + "a", ":" * 170):
        with pytest.raises(InvalidPrincipalId, match="507 bytes"):
            user_object(too_long)


@pytest.mark.parametrize(
    "subject",
    [
        "user:*",
        "user:",
        "role:oidc~alice",
        "user:oidc~alice#x",
        "user:oidc~%61lice",
        "user:oidc~%c3%a9",
        "user:oidc~%FF",
        "user:oidc~%",
        "oidc~alice",
        "user:user:oidc~alice",
        "user:role=9f0b2c4e-0000-4000-8000-00000000abcd",
    ],
)
def test_subjects_the_gateway_did_not_write_name_no_user(subject: str) -> None:
    with pytest.raises(ValueError, match="not a user as the gateway writes it"):
        user_id_of(subject)


def test_the_members_of_a_role_have_one_userset() -> None:
    name = "role:9f0b2c4e-0000-4000-8000-00000000abcd#assignee"
    for written in (ROLE, str(ROLE), str(ROLE).upper(), ROLE.hex, f"{{{ROLE}}}"):
        assert role_members(written) == name


@pytest.mark.parametrize("role_id", ["", "*", "x#assignee", "9f0b2c4e-0000-4000-8000-00000000abcd#assignee#x"])
def test_a_role_that_is_no_uuid_is_refused(role_id: str) -> None:
    for name in (role_members, member_of):
        with pytest.raises(InvalidPrincipalId):
            name(role_id)


@given(st.text(min_size=1, max_size=40))
def test_the_anonymous_member_of_a_role_is_no_user(user_id: str) -> None:
    try:
        assert user_object(user_id) != member_of(ROLE)
    except InvalidPrincipalId:
        return


def test_objects_are_named_by_type_and_id() -> None:
    assert object_of("table", ROLE) == f"table:{ROLE}"
    assert object_of("project", "my-project_1.x~y") == "project:my-project_1.x~y"


@pytest.mark.parametrize("object_id", ["", "*", "a:b", "a#b", "a b", "a@b", "a\n", "é", "a%2Ab", "a/b"])
def test_an_object_id_with_anything_else_in_it_is_refused(object_id: str) -> None:
    with pytest.raises(InvalidPrincipalId) as refused:
        object_of("project", object_id)
    assert refused.value.code == 400


def test_an_object_id_that_is_too_long_is_refused() -> None:
    longest = "a" * (MAX_OBJECT_BYTES - len("project:"))
    assert len(object_of("project", longest)) == MAX_OBJECT_BYTES
    with pytest.raises(InvalidPrincipalId, match="248 bytes"):
        object_of("project", longest + "a")
