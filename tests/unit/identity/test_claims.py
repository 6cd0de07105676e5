# SPDX-License-Identifier: Apache-2.0
"""Claims of a token: strict where they identify a principal, lenient where they describe it."""

from typing import Any

import pytest

from gateway.identity import claims as read
from gateway.identity.errors import AuthenticationFailed


def test_the_first_present_subject_claim_is_used() -> None:
    assert read.subject_of({"oid": "o-1", "sub": "s-1"}, ("oid", "sub")) == "o-1"
    assert read.subject_of({"oid": None, "sub": "s-1"}, ("oid", "sub")) == "s-1"
    assert read.subject_of({"sub": "s-1"}, ("oid", "sub")) == "s-1"


@pytest.mark.parametrize("broken", ["", 7, ["o-1"], {"a": 1}, " o-1", "o\x00", True])
def test_a_broken_subject_claim_is_not_skipped_for_the_next(broken: Any) -> None:
    with pytest.raises(AuthenticationFailed):
        read.subject_of({"oid": broken, "sub": "s-1"}, ("oid", "sub"))


@pytest.mark.parametrize(
    "subject", ["a", "a" * 127, "auth0|5f7c", "系統", "a~b", "user@lake.example", "a b", "*", "a#member", "a:b"]
)
def test_subjects_of_common_providers_are_accepted_unchanged(subject: str) -> None:
    assert read.subject_of({"sub": subject}, ("sub",)) == subject


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "a" * 128,
        "a\n",
        "\ta",
        "a\x00b",
        "a\x7f",
        "a\x85",
        "a\u2028b",
        "a\u200bb",
        "a\u202eb",
        "a\ufeff",
        " a",
        "a ",
        "a\u00a0",
        "a\ue000",
    ],
)
def test_an_ambiguous_subject_is_refused(subject: str) -> None:
    with pytest.raises(AuthenticationFailed):
        read.subject_of({"sub": subject}, ("sub",))


@pytest.mark.threat("LG-AUT-10")
@pytest.mark.parametrize(
    ("claims", "groups"),
    [
        ({}, ()),
        ({"groups": None}, ()),
        ({"groups": []}, ()),
        ({"groups": ""}, ()),
        ({"groups": "analysts"}, ("analysts",)),
        ({"groups": "a b"}, ("a b",)),
        ({"groups": ["b", "a", "b", "", " "]}, ("a", "b")),
        ({"groups": ["Sales", "sales"]}, ("Sales", "sales")),
        ({"groups": [f"g{n:04}" for n in range(5000)]}, tuple(f"g{n:04}" for n in range(5000))),
    ],
)
def test_groups_are_read_from_every_supported_form(claims: dict[str, Any], groups: tuple[str, ...]) -> None:
    assert read.groups_of(claims, "groups") == groups


@pytest.mark.threat("LG-AUT-10")
@pytest.mark.parametrize("value", [7, {"a": 1}, ["a", 7], [["a"]], [None], True, ["a\n"], ["a\u200b"]])
def test_groups_that_are_not_text_are_refused(value: Any) -> None:
    with pytest.raises(AuthenticationFailed):
        read.groups_of({"groups": value}, "groups")


@pytest.mark.threat("LG-AUT-10")
@pytest.mark.parametrize(
    "claims",
    [
        {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://graph.example"}}},
        {"_claim_names": {"groups": "src1"}, "groups": ["a"]},
        {"hasgroups": True},
    ],
)
def test_a_token_with_omitted_groups_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(AuthenticationFailed, match="more groups than"):
        read.groups_of(claims, "groups")
    assert read.groups_of(claims, None) == (), "a configuration without groups must accept the token"


def test_groups_are_found_in_nested_claims_and_names_with_dots() -> None:
    assert read.groups_of({"realm_access": {"roles": ["a"]}}, "realm_access.roles") == ("a",)
    assert read.groups_of({"https://lake.example/roles": ["a"]}, "https://lake.example/roles") == ("a",)
    assert read.groups_of({"realm_access": "text"}, "realm_access.roles") == ()


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"name": "Alice", "given_name": "A"}, "Alice"),
        ({"given_name": "Alice", "family_name": "Example"}, "Alice Example"),
        ({"first_name": "Alice", "last_name": "Example", "preferred_username": "ali"}, "Alice Example"),
        ({"family_name": "Example"}, "Example"),
        ({"app_displayname": "etl", "preferred_username": "x"}, "etl"),
        ({"preferred_username": "ali"}, "ali"),
        ({"name": " \t ", "preferred_username": "ali"}, "ali"),
        ({"name": 7}, None),
        ({}, None),
        ({"name": "a\nb\u202e\x00c   d"}, "a bc d"),
        ({"name": "x" * 9_999}, "x" * 255),
    ],
)
def test_the_name_comes_from_the_first_claim_that_has_one(claims: dict[str, Any], name: str | None) -> None:
    assert read.display_name_of(claims, None) == name


def test_a_template_gives_a_name_to_an_unnamed_principal() -> None:
    template = "App {azp} of {team.name}"
    assert read.display_name_of({"azp": "etl", "team": {"name": "Ops"}}, template) == "App etl of Ops"
    assert read.display_name_of({"azp": "etl"}, template) is None
    assert read.display_name_of({"azp": "{team.name}", "team": {"name": "Ops"}}, template) == "App {team.name} of Ops"


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "a@x.example"}, None),
        ({"email": "a@x.example", "email_verified": True}, "a@x.example"),
        ({"email": "a@x.example", "email_verified": "true"}, "a@x.example"),
        ({"email": "a@x.example", "email_verified": False}, None),
        ({"email": "a@x.example", "email_verified": "yes"}, None),
        ({"email": "a@x.example", "email_verified": 1.5}, None),
        ({"upn": "b@x.example", "email_verified": True}, None),
        ({"preferred_username": "c@x.example", "email_verified": True}, None),
        ({"email": "no-at", "email_verified": True}, None),
        ({"email": ["a@x.example"], "email_verified": True}, None),
        ({}, None),
    ],
)
def test_only_an_email_verified_by_the_provider_is_read(claims: dict[str, Any], email: str | None) -> None:
    assert read.email_of(claims) == email


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        ({"name": "Alice"}, "human"),
        ({"preferred_username": "alice"}, "human"),
        ({}, "application"),
        ({"preferred_username": "service-account-etl", "azp": "etl"}, "application"),
        ({"client_id": "s-1", "preferred_username": "s-1"}, "application"),
        ({"idtyp": "app", "name": "x"}, "application"),
        ({"gty": "client-credentials", "name": "x"}, "application"),
    ],
)
def test_users_and_applications_are_distinguished(claims: dict[str, Any], kind: str) -> None:
    assert read.kind_of(claims, "s-1") == kind
