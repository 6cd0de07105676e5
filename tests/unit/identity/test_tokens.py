# SPDX-License-Identifier: Apache-2.0
"""Threat cases of authentication: each test is a known way to break token verification."""

import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.errors import SecurityWarning
from joserfc.jwk import Key, RSAKey

from gateway.identity.errors import AuthenticationFailed
from gateway.identity.tokens import TokenRules, TokenVerifier

from .conftest import AUDIENCE, ISSUER, NOW, Provider, b64


async def refused(provider: Provider, token: str, **rules: Any) -> str:
    """Return the message of the refusal; check that it repeats no part of the token."""
    with pytest.raises(AuthenticationFailed) as caught:
        await provider.verify(token, **rules)
    message = str(caught.value)
    assert caught.value.code == 401
    assert not [part for part in token.split(".") if len(part) > 5 and part in message]
    return message


async def test_a_valid_token_gives_its_user(provider: Provider) -> None:
    token = provider.token(
        name="Alice Example",
        email="alice@lake.example",
        email_verified=True,
        scope="read write",
        azp="spark",
        jti="t-1",
    )
    verified = await provider.verify(token)
    assert (verified.user_id, verified.idp_id, verified.subject) == ("oidc~alice", "oidc", "alice")
    assert (verified.issuer, verified.audiences, verified.expires_at) == (ISSUER, (AUDIENCE,), NOW + 300)
    assert (verified.name, verified.email, verified.kind) == ("Alice Example", "alice@lake.example", "human")
    assert (verified.client_id, verified.token_id, verified.scopes) == ("spark", "t-1", frozenset({"read", "write"}))
    assert verified.actor_user_id is None


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        *[("RSA", name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")],
        *[("P-256", "ES256"), ("P-384", "ES384"), ("P-521", "ES512")],
        *[("Ed25519", "EdDSA"), ("Ed25519", "Ed25519"), ("Ed448", "EdDSA")],
    ],
)
async def test_every_accepted_algorithm_verifies(
    provider: Provider, new_key: Callable[..., Key], kind: str, algorithm: str, recwarn: pytest.WarningsRecorder
) -> None:
    key = new_key(kind, kid="k1")
    provider.publish(key)
    assert (
        await provider.verify(provider.sign(provider.claims(), key=key, header={"alg": algorithm}))
    ).subject == "alice"
    assert not recwarn.list, "an accepted token must cause no warning"


@pytest.mark.threat("LG-AUT-01")
@pytest.mark.parametrize(
    "name", ["none", "None", "NONE", "nOnE", "", "HS256", "HS512", "ES256K", "dir", "rs256", "RS256 "]
)
async def test_an_algorithm_outside_the_list_is_refused(provider: Provider, name: str) -> None:
    header, payload, signature = provider.token().split(".")
    for forged_signature in ("", signature, b64(b"x")):
        forged = b64(json.dumps({"alg": name, "kid": "k1"}).encode()) + "." + payload + "." + forged_signature
        await refused(provider, forged)
    assert provider.documents.calls == [], "an unknown algorithm must cause no request"


@pytest.mark.threat("LG-AUT-01")
@pytest.mark.parametrize("value", [None, 1, True, ["RS256"], {"RS256": 1}, ...])
async def test_an_algorithm_that_is_not_text_is_refused(provider: Provider, value: Any) -> None:
    fields = {"kid": "k1"} | ({} if value is ... else {"alg": value})
    _, payload, signature = provider.token().split(".")
    await refused(provider, b64(json.dumps(fields).encode()) + "." + payload + "." + signature)


@pytest.mark.threat("LG-AUT-02")
@pytest.mark.parametrize("shape", ["pem", "der", "jwk", "modulus"])
async def test_a_public_key_is_never_used_as_hmac_secret(provider: Provider, shape: str) -> None:
    key = provider.key
    assert isinstance(key, RSAKey)
    jwk = key.as_dict(private=False)
    secrets: dict[str, Callable[[], bytes]] = {
        "pem": lambda: key.as_pem(private=False),
        "der": lambda: key.as_der(private=False),
        "jwk": lambda: json.dumps(jwk).encode(),
        "modulus": lambda: str(jwk["n"]).encode(),
    }
    secret = secrets[shape]()
    for digest in ("sha256", "sha384", "sha512"):
        header = {"alg": f"HS{digest[3:]}", "typ": "JWT", "kid": "k1"}
        signed = b64(json.dumps(header).encode()) + "." + b64(json.dumps(provider.claims()).encode())
        await refused(provider, signed + "." + b64(hmac.new(secret, signed.encode(), digest).digest()))


@pytest.mark.threat("LG-AUT-02")
async def test_a_published_symmetric_key_is_never_used(provider: Provider, new_key: Callable[..., Key]) -> None:
    secret = new_key("oct", kid="k2")
    provider.publish(provider.key, secret.as_dict(private=True))
    await refused(provider, provider.sign(provider.claims(), key=secret, header={"alg": "HS256"}, kid="k2"))


@pytest.mark.threat("LG-AUT-03")
@pytest.mark.parametrize(
    "change",
    [
        {"alg": "ES256"},
        {"alg": "RS512"},
        {"alg": ["RS256"]},
        {"use": "enc"},
        {"use": None},
        {"key_ops": ["encrypt"], "use": ...},
        {"key_ops": 7, "use": ...},
        {"kty": "EC"},
        {"d": "AQAB"},
    ],
)
async def test_key_use_and_algorithm_members_are_enforced(
    provider: Provider, new_key: Callable[..., Key], change: dict[str, Any]
) -> None:
    published = provider.key.as_dict(private=False) | change
    published = {name: value for name, value in published.items() if value is not ...}
    provider.publish(published, new_key("P-256", kid="other"))
    await refused(provider, provider.token())


@pytest.mark.threat("LG-AUT-03")
async def test_a_short_rsa_key_is_refused(provider: Provider) -> None:
    with pytest.warns(SecurityWarning):
        short = RSAKey.generate_key(1024, {"kid": "short"})
        provider.publish(provider.key, short)
        await refused(provider, provider.sign(provider.claims(), key=short, kid="short"))


@pytest.mark.threat("LG-AUT-04")
@pytest.mark.parametrize("issuer", ["https://evil.example", "http://127.0.0.1:1/steal", "", None, 7, [ISSUER]])
async def test_a_token_of_another_issuer_causes_no_request(provider: Provider, issuer: Any) -> None:
    header = {"jku": "https://evil.example/keys", "kid": "never-seen"}
    await refused(provider, provider.sign(provider.claims(iss=issuer), header=header))
    await refused(provider, provider.sign(provider.claims(iss=...), header=header))
    assert provider.documents.calls == []


@pytest.mark.threat("LG-AUT-06")
@pytest.mark.parametrize(
    "issuer",
    [
        ISSUER + "/",
        ISSUER[:-1],
        ISSUER + "2",
        ISSUER.upper(),
        ISSUER.replace("https", "HTTPS"),
        ISSUER.replace("https", "http"),
        ISSUER.replace("example", "ехample"),  # the first two letters are Cyrillic
        ISSUER.replace("idp.", "idp。"),
        ISSUER.replace("/realms", ":443/realms"),
        ISSUER + "\u200b",
        " " + ISSUER,
    ],
)
async def test_a_similar_issuer_is_refused(provider: Provider, issuer: str) -> None:
    assert "issuer" in await refused(provider, provider.token(iss=issuer))


@pytest.mark.threat("LG-AUT-06")
async def test_an_additional_issuer_is_compared_exactly(provider: Provider) -> None:
    others = frozenset({"https://sts.example/tenant/"})
    good = provider.token(iss="https://sts.example/tenant/")
    assert (await provider.verify(good, additional_issuers=others)).issuer == "https://sts.example/tenant/"
    await refused(provider, provider.token(iss="https://sts.example/tenant"), additional_issuers=others)
    await refused(provider, good)


@pytest.mark.threat("LG-AUT-07")
@pytest.mark.parametrize(
    "audience",
    [
        ...,
        None,
        [],
        "",
        [""],
        "other",
        ["other", "account"],
        AUDIENCE + "2",
        AUDIENCE.upper(),
        [[AUDIENCE]],
        {AUDIENCE: 1},
        7,
        [AUDIENCE, 7],
    ],
)
async def test_a_token_for_another_audience_is_refused(provider: Provider, audience: Any) -> None:
    assert "audience" in await refused(provider, provider.token(aud=audience))


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["account", AUDIENCE], [AUDIENCE, AUDIENCE]])
async def test_one_configured_audience_suffices(provider: Provider, audience: Any) -> None:
    assert (await provider.verify(provider.token(aud=audience))).subject == "alice"


@pytest.mark.threat("LG-AUT-07")
@pytest.mark.parametrize("audiences", [frozenset(), frozenset({""}), frozenset({" "}), frozenset({AUDIENCE, ""})])
def test_rules_without_an_audience_are_refused(audiences: frozenset[str]) -> None:
    with pytest.raises(ValueError, match="audience is required"):
        TokenRules(issuer=ISSUER, audiences=audiences)


@pytest.mark.threat("LG-AUT-08")
async def test_a_token_cannot_bring_its_own_key(provider: Provider, new_key: Callable[..., Key]) -> None:
    stranger = new_key("RSA", kid="k1")
    own_key = {
        "jwk": stranger.as_dict(private=False),
        "jku": "https://evil.example/keys.json",
        "x5u": "https://evil.example/cert.pem",
        "x5c": ["MIIC" + "A" * 2000],
        "x5t": "abc",
    }
    await refused(provider, provider.sign(provider.claims(), key=stranger, header=own_key))
    # The header is ignored: on a valid token it changes nothing and causes no request beyond those to the provider.
    assert (await provider.verify(provider.sign(provider.claims(), header=own_key))).subject == "alice"
    assert {url for url in provider.documents.calls if "evil" in url} == set()


@pytest.mark.threat("LG-AUT-08")
@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": ["b64"], "b64": False},
        {"b64": False},
        {"b64": True},
        {"crit": "exp"},
        {"crit": ["x"], "x": 1},
    ],
)
async def test_an_unknown_critical_header_is_refused(provider: Provider, header: dict[str, Any]) -> None:
    await refused(provider, provider.sign(provider.claims(), header=header))


ACCEPTED, REFUSED = True, False


@pytest.mark.threat("LG-AUT-05")
@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"exp": NOW + 1}, ACCEPTED),
        ({"exp": NOW}, ACCEPTED),
        ({"exp": NOW - 29}, ACCEPTED),
        ({"exp": NOW - 29.5}, ACCEPTED),
        ({"exp": NOW - 30}, REFUSED),
        ({"exp": NOW - 31}, REFUSED),
        ({"exp": ...}, REFUSED),
        ({"exp": None}, REFUSED),
        ({"exp": str(int(NOW + 300))}, REFUSED),
        ({"exp": True}, REFUSED),
        ({"exp": [NOW + 300]}, REFUSED),
        ({"exp": 10**11}, ACCEPTED),
        ({"exp": 10**12}, REFUSED),  # milliseconds: a token with a lifetime of 30,000 years
        ({"exp": 10**40}, REFUSED),
        ({"exp": 1e300}, REFUSED),
        ({"exp": -1}, REFUSED),
        ({"exp": 0}, REFUSED),
        ({"nbf": NOW + 30}, ACCEPTED),
        ({"nbf": NOW + 31}, REFUSED),
        ({"nbf": "0"}, REFUSED),
        ({"nbf": None}, REFUSED),
        ({"iat": NOW + 30}, ACCEPTED),
        ({"iat": NOW + 31}, REFUSED),
        ({"iat": ...}, ACCEPTED),
        ({"iat": False}, REFUSED),
        ({"iat": "now"}, REFUSED),
    ],
)
async def test_token_dates_are_checked(provider: Provider, changes: dict[str, Any], outcome: bool) -> None:
    if outcome is ACCEPTED:
        assert (await provider.verify(provider.token(**changes))).subject == "alice"
    else:
        await refused(provider, provider.token(**changes))


@pytest.mark.threat("LG-AUT-05")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-Infinity", "0x7fffffff", "1_800_000_300"])
async def test_numbers_outside_json_are_refused(provider: Provider, number: str) -> None:
    payload = json.dumps(provider.claims(exp="@")).replace('"@"', number).encode()
    await refused(provider, provider.sign(payload))


@pytest.mark.threat("LG-AUT-11")
@pytest.mark.parametrize(
    "other_kind",
    [
        {"header": {"typ": "id+jwt"}},
        {"header": {"typ": "refresh+jwt"}},
        {"header": {"typ": "logout+jwt"}},
        {"header": {"typ": "dpop+jwt"}},
        {"header": {"typ": 7}},
        {"header": {"typ": None}},
        {"claims": {"token_use": "id"}},
        {"claims": {"token_use": "refresh"}},
        {"claims": {"token_use": ["access"]}},
        {"claims": {"token_type": "refresh"}},
        {"claims": {"typ": "ID"}},
        {"claims": {"typ": "Refresh"}},
        {"claims": {"typ": "Offline"}},
        {"claims": {"typ": "Logout"}},
        {"claims": {"at_hash": "abc"}},
        {"claims": {"c_hash": "abc"}},
        {"claims": {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}},
        {"claims": {"cnf": {"jkt": "thumbprint"}}},
        {"claims": {"cnf": {"x5t#S256": "thumbprint"}}},
    ],
)
async def test_only_a_plain_access_token_is_accepted(provider: Provider, other_kind: dict[str, Any]) -> None:
    claims = provider.claims(**other_kind.get("claims", {}))
    await refused(provider, provider.sign(claims, header=other_kind.get("header")))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
async def test_the_types_of_access_tokens_are_accepted(provider: Provider, kind: str) -> None:
    claims = provider.claims(token_use="access", typ="Bearer")
    assert (await provider.verify(provider.sign(claims, header={"typ": kind}))).subject == "alice"


async def test_a_token_with_an_actor_gives_user_and_actor(provider: Provider) -> None:
    verified = await provider.verify(provider.token(act={"sub": "trino", "act": {"sub": "earlier"}}))
    assert (verified.user_id, verified.actor_user_id) == ("oidc~alice", "oidc~trino")


@pytest.mark.threat("LG-AUT-13")
@pytest.mark.parametrize(
    "act",
    [
        "trino",
        [],
        {},
        {"sub": ""},
        {"sub": 7},
        {"sub": "trino", "iss": "https://evil.example"},
        {"sub": "a\n"},
        {"act": {"sub": "x"}},
    ],
)
async def test_an_ambiguous_actor_is_refused(provider: Provider, act: Any) -> None:
    await refused(provider, provider.token(act=act))


@pytest.mark.parametrize(
    ("may_act", "user"),
    [
        ({"sub": "trino"}, "oidc~trino"),
        ({"sub": "trino", "iss": ISSUER}, "oidc~trino"),
        ({"sub": "trino", "iss": "https://evil.example"}, ""),
        ({"client_id": "trino"}, ""),
        ({"sub": 7}, ""),
        (["trino"], ""),
        (None, ""),
        (..., None),
    ],
)
async def test_a_may_act_claim_names_a_user_of_the_same_provider_or_none(
    provider: Provider, may_act: Any, user: str | None
) -> None:
    assert (await provider.verify(provider.token(may_act=may_act))).may_act == user


@pytest.mark.threat("LG-AUT-13")
async def test_a_subject_of_another_provider_is_another_user(provider: Provider) -> None:
    here = await provider.verify(provider.token(sub="admin"))
    there = await provider.verify(provider.token(sub="admin"), idp_id="kc-2")
    assert here.user_id == "oidc~admin" != there.user_id == "kc-2~admin"


@pytest.mark.threat("LG-AUT-14")
@pytest.mark.parametrize("claim", ["email", "preferred_username", "upn", "name"])
def test_a_reassignable_claim_cannot_be_the_subject(claim: str) -> None:
    with pytest.raises(ValueError, match="cannot identify"):
        TokenRules(issuer=ISSUER, audiences=frozenset({AUDIENCE}), subject_claims=("sub", claim))


@pytest.mark.threat("LG-AUT-14")
async def test_email_and_user_name_do_not_change_the_user_id(provider: Provider) -> None:
    mallory = provider.token(sub="m-1", email="alice@lake.example", preferred_username="alice", email_verified=False)
    verified = await provider.verify(mallory)
    assert (verified.user_id, verified.email) == ("oidc~m-1", None)


async def test_a_token_without_a_subject_claim_is_refused(provider: Provider) -> None:
    await refused(provider, provider.token(sub=..., email="alice@lake.example", preferred_username="alice"))


async def test_a_required_scope_is_required(provider: Provider) -> None:
    await provider.verify(provider.token(scope="openid lake"), required_scope="lake")
    await provider.verify(provider.token(scp=["lake"]), required_scope="lake")
    for scope in (..., "", "lakes", "LAKE", {"lake": 1}):
        await refused(provider, provider.token(scope=scope), required_scope="lake")


@pytest.mark.parametrize(
    "mangle",
    [
        lambda token: token + ".",
        lambda token: token.replace(".", "..", 1),
        lambda token: token[: token.rindex(".")],
        lambda token: token[: token.rindex(".") + 1],
        lambda token: token + "=",
        lambda token: token + "\n",
        lambda token: " " + token,
        lambda token: token + "é",
        lambda token: token[:-3] + ("AAA" if token[-3:] != "AAA" else "BBB"),
        lambda token: token.replace(".", ".e30", 1),
        lambda token: "a" * 20_000,
        lambda token: b64(b"[" * 9_000) + ".e30.AA",
        lambda token: b64(b'["alg"]') + ".e30.AA",
        lambda token: b64(b'"alg"') + ".e30.AA",
        lambda token: b64(b"alg") + ".e30.AA",
        lambda token: "",
    ],
)
async def test_text_that_is_not_a_signed_jwt_is_refused(provider: Provider, mangle: Callable[[str], str]) -> None:
    await refused(provider, mangle(provider.token()))


@pytest.mark.parametrize(
    "payload",
    [b"[]", b'"x"', b"", b"null", b"\xff\xfe", b"{" * 5_000, b'{"iss":', b"[" * 9_000, b'{"a":"\xed\xa0\x80"}'],
)
async def test_a_signed_payload_that_is_not_an_object_is_refused(provider: Provider, payload: bytes) -> None:
    await refused(provider, provider.sign(payload))


async def test_an_overlong_token_is_refused_before_decoding(provider: Provider) -> None:
    await provider.verify(provider.token(note="x" * 11_000))
    assert "longer than" in await refused(provider, provider.token(note="x" * 13_000))


async def test_a_claim_changed_after_signing_is_refused(provider: Provider) -> None:
    header, _, signature = provider.token().split(".")
    forged = b64(json.dumps(provider.claims(sub="admin")).encode())
    assert "signature" in await refused(provider, f"{header}.{forged}.{signature}")


async def test_a_token_signed_with_a_foreign_key_under_a_known_key_id_is_refused(
    provider: Provider, new_key: Callable[..., Key]
) -> None:
    assert "signature" in await refused(provider, provider.sign(provider.claims(), key=new_key("RSA")))


@given(text=st.text(min_size=0, max_size=200))
def test_arbitrary_text_is_always_refused_without_another_error(text: str) -> None:
    class NoKeys:
        async def candidates(self, kid: str | None, algorithm: str) -> Any:
            raise AssertionError("text that is no token must cause no key lookup")

    verifier = TokenVerifier(TokenRules(issuer=ISSUER, audiences=frozenset({AUDIENCE})), NoKeys())
    coroutine = verifier.verify(text)
    with pytest.raises(AuthenticationFailed) as caught:
        coroutine.send(None)
    assert len(text) < 12 or text not in str(caught.value)


_BOUND = {
    "audiences": frozenset({"everything"}),
    "project_audiences": {"team-a": "a", "team-a-too": "a", "team-b": "b"},
}


@pytest.mark.parametrize(
    ("audiences", "project"),
    [
        ("everything", None),
        (["everything", "unknown"], None),
        ("team-a", "a"),
        (["team-a", "team-a-too"], "a"),
        (["everything", "team-b"], "b"),
        (["unknown", "team-b"], "b"),
    ],
)
async def test_one_audience_of_a_project_binds_the_token(
    provider: Provider, audiences: object, project: str | None
) -> None:
    assert (await provider.verify(provider.token(aud=audiences), **_BOUND)).project_id == project


@pytest.mark.parametrize("audiences", [["team-a", "team-b"], ["team-a", "team-b", "everything"], "Team-a", "unknown"])
async def test_a_token_with_audiences_of_two_projects_or_none_is_refused(provider: Provider, audiences: object) -> None:
    with pytest.raises(AuthenticationFailed, match=r"several projects|has no audience"):
        await provider.verify(provider.token(aud=audiences), **_BOUND)


def test_an_audience_is_either_bound_to_a_project_or_general(provider: Provider) -> None:
    with pytest.raises(ValueError, match="is both an audience of one project and a general audience"):
        provider.verifier(audiences=frozenset({"x"}), project_audiences={"x": "a"})
