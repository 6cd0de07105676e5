# SPDX-License-Identifier: Apache-2.0
"""Claims that row filters may use: which are kept, as which values, and of which token."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from gateway.identity.claims import MAX_VALUE_BYTES, MAX_VALUES, PolicyClaims, policy_claims_of
from gateway.identity.router import OpenIdLink, TokenRouter
from gateway.identity.tokens import TokenRules

from .conftest import AUDIENCE, ISSUER, Provider


class Uncounted:
    """A receiver of cache hits that ignores them."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...


def kept(value: Any, path: str = "team") -> PolicyClaims:
    """Return the claims of a token with this value at `team`."""
    return policy_claims_of({"team": value}, (path,), "oidc")


@pytest.mark.parametrize(
    ("value", "values"),
    [
        ("eu", ("eu",)),
        (" eu ", (" eu ",)),
        (True, ("true",)),
        (False, ("false",)),
        (7, ("7",)),
        (7.0, ("7",)),
        (-0.0, ("0",)),
        (1.5, ("1.5",)),
        (2**63, ("9223372036854775808",)),
        (["us", "eu", "us"], ("eu", "us")),
        (["1", 1, 1.0, True], ("1", "true")),
        ("x" * MAX_VALUE_BYTES, ("x" * MAX_VALUE_BYTES,)),
    ],
)
def test_scalars_and_lists_of_scalars_are_values(value: Any, values: tuple[str, ...]) -> None:
    assert kept(value) == (("team", values),)


@pytest.mark.threat("LG-AUT-18")
@pytest.mark.parametrize(
    "value",
    [
        {"eu": 1},
        [["eu"]],
        ["eu", None],
        ["eu", {}],
        ["eu", ""],
        "",
        "e\x00u",
        "e\u200bu",
        "e\u2028u",
        "\ud800",
        "x" * (MAX_VALUE_BYTES + 1),
        "ä" * (MAX_VALUE_BYTES // 2 + 1),
        ["eu", "x" * (MAX_VALUE_BYTES + 1)],
        [str(number) for number in range(MAX_VALUES + 1)],
        1e300,
        float(2**53 + 2),
        1e-9,
        2**200,
    ],
)
def test_one_unusable_value_leaves_out_the_whole_claim_and_logs_no_value(value: Any) -> None:
    """With a part of the values, `compare` and a negated `in` would show rows that all values hide."""
    with capture_logs() as logs:
        assert kept(value) == ()
    assert [(each["event"], each["claim"], each["provider"]) for each in logs] == [("claim.omitted", "team", "oidc")]
    assert set(logs[0]) == {"event", "claim", "provider", "reason", "log_level"}
    assert logs[0]["reason"].startswith(("it has more than", "a value is", "a value has", "a number is"))
    assert not isinstance(value, str) or len(value) < 3 or value not in logs[0]["reason"]


@pytest.mark.parametrize("value", [None, []])
def test_a_claim_without_values_is_left_out_silently(value: Any) -> None:
    with capture_logs() as logs:
        assert kept(value) == ()
        assert policy_claims_of({}, ("team", "a.b"), "oidc") == ()
    assert logs == []


def test_a_path_is_a_name_with_dots_before_members_of_objects() -> None:
    claims = {"org": {"unit": "in", "list": [{"x": "no"}]}, "https://lake.example/team": "url", "org.unit": "whole"}
    paths = ("org.unit", "org.list.x", "org", "https://lake.example/team")
    assert policy_claims_of(claims, paths, "oidc") == (
        ("https://lake.example/team", ("url",)),
        ("org.unit", ("whole",)),
    )
    assert policy_claims_of({"org": {"unit": "in"}}, paths, "oidc") == (("org.unit", ("in",)),)


def test_claims_have_one_form_whatever_the_order_of_paths_and_values() -> None:
    claims = {"a": ["2", "1"], "b": "x"}
    reordered = {"b": ["x"], "a": ["1", "2", "1"]}
    assert policy_claims_of(claims, ("b", "a"), "oidc") == policy_claims_of(reordered, ("a", "b", "a"), "oidc")


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner))


@given(_VALUES)
def test_every_value_gives_bounded_printable_texts_or_nothing(value: Any) -> None:
    for _, values in kept(value):
        assert 0 < len(values) <= MAX_VALUES
        assert values == tuple(sorted(set(values)))
        assert all(0 < len(each.encode()) <= MAX_VALUE_BYTES for each in values)


async def test_only_claims_that_the_settings_name_are_kept(provider: Provider) -> None:
    token = provider.token(team="eu", clearance=3, groups=["a"])
    assert (await provider.verify(token)).policy_claims == ()
    assert (await provider.verify(token, policy_claims=("clearance", "absent"))).policy_claims == (
        ("clearance", ("3",)),
    )


@pytest.mark.threat("LG-AUT-18")
@pytest.mark.parametrize(
    "claim",
    [
        *("email", "preferred_username", "name", "locale", "zoneinfo", "given_name"),
        # The claim itself is an object, so only its members can be values.
        *("address", "address.region", "user_metadata.region"),
    ],
)
def test_claims_that_users_can_change_are_refused_at_the_start(claim: str) -> None:
    with pytest.raises(ValueError, match=f"{claim} cannot be a policy claim"):
        TokenRules(issuer=ISSUER, audiences=frozenset({AUDIENCE}), policy_claims=("team", claim))


@pytest.mark.threat("LG-AUT-18")
async def test_a_provider_reads_only_the_claims_of_its_own_settings(provider: Provider) -> None:
    """Two providers share an issuer: the audience selects the provider, and with it the paths."""
    rules = [
        TokenRules(idp_id=id, issuer=ISSUER, audiences=frozenset({audience}), policy_claims=paths)
        for id, audience, paths in (("one", "a", ("team",)), ("two", "b", ("site",)))
    ]
    links = [OpenIdLink(each, provider.ring(), entries=10, seconds=60.0, observer=Uncounted()) for each in rules]
    router = TokenRouter(links)
    soon = {"exp": 4_000_000_000, "iat": 1}
    for audience, claims in (("a", (("team", ("eu",)),)), ("b", (("site", ("hq",)),))):
        token = provider.token(aud=audience, team="eu", site="hq", **soon)
        assert (await router.verify(token)).policy_claims == claims


@pytest.mark.threat("LG-AUT-18")
async def test_a_cached_token_keeps_its_own_claims(provider: Provider) -> None:
    rules = TokenRules(issuer=ISSUER, audiences=frozenset({AUDIENCE}), policy_claims=("team",))
    link = OpenIdLink(rules, provider.ring(), entries=10, seconds=60.0, observer=Uncounted())
    soon = {"exp": 4_000_000_000, "iat": 1}
    tokens = {team: provider.token(team=team, **soon) for team in ("eu", "us")}
    for team in ("eu", "us", "eu", "us"):
        assert (await link.verify(tokens[team])).policy_claims == (("team", (team,)),)
