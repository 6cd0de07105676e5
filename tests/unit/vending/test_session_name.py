# SPDX-License-Identifier: Apache-2.0
"""Role session names: always valid and unique to a principal."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.vending.vendor import SessionIdentity, principal_digest, session_name

VALID = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)


@given(st.text(max_size=200), st.none() | st.text(max_size=50), st.none() | st.text(max_size=200))
def test_every_principal_gives_a_valid_session_name(principal: str, role: str | None, readable: str | None) -> None:
    name = session_name(SessionIdentity(principal=principal, role=role, readable=readable))
    assert VALID.fullmatch(name)
    assert name.endswith(principal_digest(principal, role))


def test_the_session_name_shows_the_principal() -> None:
    assert session_name(SessionIdentity(principal="oidc~4711", readable="ann@example.com")).startswith(
        "ann@example.com-"
    )
    assert session_name(SessionIdentity(principal="oidc~ann")).startswith("ann-")


def test_similar_principals_have_different_session_names() -> None:
    alike = [
        SessionIdentity(principal=p, role=r, readable="ann")
        for p, r in (("a~b", None), ("a~c", None), ("a~b", "r"), ("a~", "b"))
    ]
    assert len({session_name(identity) for identity in alike}) == len(alike)


def test_a_chosen_user_name_cannot_forge_the_digest_of_another() -> None:
    victim = session_name(SessionIdentity(principal="oidc~victim", readable="victim"))
    forged = session_name(SessionIdentity(principal="oidc~mallory", readable=victim))
    assert forged.rpartition("-")[2] != victim.rpartition("-")[2]


def test_cache_only_fields_do_not_change_the_session_name() -> None:
    names = {session_name(SessionIdentity(principal="oidc~a", context=context)) for context in ("", "x")}
    assert len(names) == 1
