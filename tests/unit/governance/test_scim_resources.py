# SPDX-License-Identifier: Apache-2.0
"""SCIM users of a directory: provider, name and version."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gateway.access.actor import Actor
from gateway.features.principals.scim_resources import ScimSources, require_version
from gateway.scim.errors import Immutable, InvalidValue, NotProvisioned, VersionChanged
from gateway.scim.reading import User

SOURCES = ScimSources({"entra": "externalId", "okta": "userName"})
ANN = User(user_name="ann@x", external_id="oid")


@pytest.mark.parametrize(
    ("caller", "provider"), [("lakegate~scim-entra", "entra"), ("okta~somebody", "okta"), ("okta~scim-entra", "okta")]
)
def test_a_scim_caller_manages_the_users_of_one_provider(caller: str, provider: str) -> None:
    assert SOURCES.provider_of(Actor.user(caller)) == provider


@pytest.mark.parametrize(
    "caller", ["plain~somebody", "lakegate~scim-plain", "lakegate~scim-", "oidc~lakegate~scim-okta"]
)
def test_a_scim_caller_of_a_provider_without_scim_is_refused(caller: str) -> None:
    with pytest.raises(NotProvisioned):
        SOURCES.provider_of(Actor.user(caller))


def test_an_active_user_must_keep_its_name_and_an_inactive_one_need_not() -> None:
    for provider, attribute, subject in (("entra", "external_id", "oid"), ("okta", "user_name", "ann@x")):
        id = SOURCES.user_id(provider, ANN)
        assert id == f"{provider}~{subject}"
        SOURCES.require_same(provider, ANN, id)
        other = replace(ANN, **{attribute: "bob"})
        with pytest.raises(Immutable, match=f"must remain '{subject}' while the user is active"):
            SOURCES.require_same(provider, other, id)
        SOURCES.require_same(provider, replace(other, active=False), id)
    SOURCES.require_same("entra", replace(ANN, active=False, external_id=None), "entra~oid")


@pytest.mark.parametrize("subject", [None, "", "x" * 128, "\u00e4" * 120])
def test_a_missing_or_invalid_subject_is_refused(subject: str | None) -> None:
    with pytest.raises(InvalidValue):
        SOURCES.user_id("entra", replace(ANN, external_id=subject))


@pytest.mark.parametrize(
    ("if_match", "versions"),
    [
        (None, {2, 3, 4}),
        ("*", {2, 3, 4}),
        (" * ", {2, 3, 4}),
        ('W/"3"', {3}),
        ('W/"2", W/"3"', {2, 3}),
        ('W/"2",', {2}),
        ('*, W/"2"', {2}),
        *((refused, set[int]()) for refused in ("", "3", '"3"', 'W/"33"')),
    ],
)
def test_if_match_accepts_its_versions_alone(if_match: str | None, versions: set[int]) -> None:
    assert {version for version in (2, 3, 4) if _accepts(version, if_match)} == versions


def _accepts(version: int, if_match: str | None) -> bool:
    try:
        require_version(version, if_match)
    except VersionChanged:
        return False
    return True
