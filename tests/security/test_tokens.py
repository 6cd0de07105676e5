# SPDX-License-Identifier: Apache-2.0
"""Forged, foreign and malformed tokens against the running gateway (`docs/threats.md`, LG-AUT).

Each request gets 401 and reaches no door.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from tests.support.servers.loopback import Reply, Request, as_json, serving
from tests.support.stack.world import World, error_of, unique


def _b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _part(token: str, number: int) -> dict[str, Any]:
    raw = token.split(".")[number]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
    return found


@pytest.fixture(scope="module")
def genuine(world: World) -> str:
    """Return a valid token."""
    return world.alice.token


@pytest.fixture(scope="module")
def own_key() -> RSAPrivateKey:
    """Return a key pair of the attacker."""
    return rsa.generate_private_key(65537, 2048)


def _public(key: rsa.RSAPublicKey) -> dict[str, str]:
    """Return the key as a JSON Web Key."""
    numbers = key.public_numbers()
    return {
        "kty": "RSA",
        "n": _b64(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")),
        "e": _b64(numbers.e.to_bytes(3, "big")),
    }


def _number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def _path(world: World) -> str:
    return f"{world.root}/namespaces"


def _send(world: World, authorization: str | list[str]) -> httpx.Response:
    values = [authorization] if isinstance(authorization, str) else authorization
    headers = [("Authorization", value) for value in values]
    return httpx.get(f"{world.base}{_path(world)}", headers=headers, trust_env=False, timeout=60)


def _rejected(world: World, token: str) -> None:
    answer = _send(world, f"Bearer {token}")
    assert answer.status_code == 401, answer.text
    error = error_of(answer)
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert token not in answer.text
    assert error["type"] != "InternalServerError"


def _signed(header: dict[str, Any], claims: dict[str, Any], key: RSAPrivateKey) -> str:
    """Return a token with any header, also one that a library would reject, and a valid RS256 signature."""
    signing_input = f"{_b64(json.dumps(header).encode())}.{_b64(json.dumps(claims).encode())}"
    return f"{signing_input}.{_b64(key.sign(signing_input.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def test_valid_token_is_accepted(world: World, genuine: str) -> None:
    assert _send(world, f"Bearer {genuine}").status_code == 200
    assert _send(world, f"bearer {genuine}").status_code == 200


@pytest.mark.threat("LG-AUT-01")
@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE"])
def test_token_without_a_signature_is_refused(world: World, genuine: str, algorithm: str) -> None:
    header = _b64(json.dumps({**_part(genuine, 0), "alg": algorithm}).encode())
    for signature in ("", genuine.split(".")[2]):
        _rejected(world, f"{header}.{genuine.split('.')[1]}.{signature}")


def test_token_with_a_changed_subject_is_refused(world: World, genuine: str) -> None:
    header, _, signature = genuine.split(".")
    _rejected(world, f"{header}.{_b64(json.dumps({**_part(genuine, 1), 'sub': 'admin'}).encode())}.{signature}")


def test_token_signed_with_another_key_is_refused(world: World, genuine: str, own_key: RSAPrivateKey) -> None:
    _rejected(world, _signed(_part(genuine, 0), _part(genuine, 1), own_key))
    _rejected(world, _signed({**_part(genuine, 0), "kid": "unknown"}, _part(genuine, 1), own_key))


@pytest.mark.threat("LG-AUT-02")
def test_public_key_as_hmac_secret_is_refused(world: World, genuine: str) -> None:
    """The public key of the provider, used as HMAC secret, must not verify a token."""
    configuration = httpx.get(
        f"{world.ready.issuer}/.well-known/openid-configuration", trust_env=False, timeout=60
    ).json()
    published = httpx.get(configuration["jwks_uri"], trust_env=False, timeout=60).json()["keys"][0]
    public = rsa.RSAPublicNumbers(_number(published["e"]), _number(published["n"])).public_key()
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    forms = [
        public.public_bytes(serialization.Encoding.PEM, spki),
        public.public_bytes(serialization.Encoding.DER, spki),
        json.dumps(published).encode(),
        published["n"].encode(),
    ]
    header = {**_part(genuine, 0), "alg": "HS256"}
    for secret in forms:
        signing_input = f"{_b64(json.dumps(header).encode())}.{genuine.split('.')[1]}"
        signature = hmac.new(secret, signing_input.encode(), hashlib.sha256).digest()
        _rejected(world, f"{signing_input}.{_b64(signature)}")


@pytest.fixture
def evil_issuer(own_key: RSAPrivateKey) -> Iterator[tuple[str, list[str]]]:
    """Run a provider of the attacker; yield (its address, the list of paths fetched from it)."""
    fetched: list[str] = []

    def answer(request: Request) -> Reply:
        fetched.append(request.path)
        return as_json(200, {"keys": [{**_public(own_key.public_key()), "kid": "evil", "alg": "RS256", "use": "sig"}]})

    with serving(answer) as service:
        yield service.url, fetched


@pytest.mark.threat("LG-AUT-04")
def test_token_of_an_unknown_issuer_causes_no_fetch(
    world: World, genuine: str, own_key: RSAPrivateKey, evil_issuer: tuple[str, list[str]]
) -> None:
    """The issuer and the key references of an unverified token must cause no request."""
    base, fetched = evil_issuer
    header = {"alg": "RS256", "kid": "evil", "typ": "JWT"}
    claims = {**_part(genuine, 1), "iss": base}
    _rejected(world, _signed(header, claims, own_key))
    for extra in _links(base, own_key):
        _rejected(world, _signed({**header, **extra}, _part(genuine, 1), own_key))
    assert fetched == []


def _links(base: str, key: RSAPrivateKey) -> tuple[dict[str, Any], ...]:
    """Return headers that refer to a key of the attacker."""
    return ({"jku": f"{base}/jwks"}, {"x5u": f"{base}/x5u"}, {"jwk": _public(key.public_key())})


@pytest.mark.threat("LG-AUT-08")
def test_key_references_in_the_header_are_ignored(
    genuine: str, own_key: RSAPrivateKey, provided: Provided, evil_issuer: tuple[str, list[str]]
) -> None:
    base, fetched = evil_issuer
    for extra in _links(base, own_key):
        assert provided.send(header=extra) == 200
    assert fetched == []


@dataclass(frozen=True)
class Provided:
    """Tokens with the identity provider's valid signature; only the changes that a test makes are wrong."""

    world: World
    header: dict[str, Any]
    claims: dict[str, Any]
    key: RSAPrivateKey

    def token(self, header: Mapping[str, Any] | None = None, without: str = "", **claims: Any) -> str:
        """Return a token of alice with these headers and claims, without the claim `without`."""
        changed = {**self.claims, "jti": unique("token"), **claims}
        changed.pop(without, None)
        return _signed({**self.header, **(header or {})}, changed, self.key)

    def send(self, header: Mapping[str, Any] | None = None, without: str = "", **claims: Any) -> int:
        """Return the status of a request with such a token; check the form of a refusal."""
        token = self.token(header, without, **claims)
        status = _send(self.world, f"Bearer {token}").status_code
        if status != 200:
            _rejected(self.world, token)
        return status


@pytest.fixture(scope="module")
def provided(world: World, genuine: str) -> Provided:
    """Return the token factory with the key of the stack's identity provider."""
    key = serialization.load_pem_private_key(world.provider_key(), None)
    assert isinstance(key, RSAPrivateKey)
    made = Provided(world, _part(genuine, 0), _part(genuine, 1), key)
    # Control: without it, each refusal below could be one of the signature.
    assert made.send() == 200
    return made


@pytest.mark.threat("LG-AUT-08")
@pytest.mark.parametrize(
    "extra",
    [{"crit": ["exp"]}, {"crit": ["surprise"], "surprise": 1}, {"crit": []}, {"crit": "exp"}, {"b64": False}],
    ids=json.dumps,
)
def test_token_with_a_critical_extension_is_refused(provided: Provided, extra: dict[str, Any]) -> None:
    assert provided.send(header=extra) == 401


@pytest.mark.threat("LG-AUT-06")
@pytest.mark.parametrize(
    "variant",
    [
        *("{}/", "{}x", "{}.evil.example", "HTTP{}", " {}", "{} ", "", "{}#", "{}?a", "{}/../"),
        *("{}\u200b", "{}%2F", "{}:443"),
    ],
)
def test_issuer_resembling_the_configured_one_is_refused(world: World, provided: Provided, variant: str) -> None:
    issuer = variant.format(world.ready.issuer if not variant.startswith("HTTP") else world.ready.issuer[4:])
    assert provided.send(iss=issuer) == 401


@pytest.mark.threat("LG-AUT-06")
def test_an_issuer_that_is_missing_or_no_text_is_refused(world: World, provided: Provided) -> None:
    assert provided.send(without="iss") == 401
    for issuer in (None, 1, [world.ready.issuer], {"iss": world.ready.issuer}, world.ready.issuer.upper()):
        assert provided.send(iss=issuer) == 401, issuer


@pytest.mark.threat("LG-AUT-07", "LG-AUT-11")
def test_token_for_another_audience_is_refused(provided: Provided) -> None:
    """An ID token, for example, names the client as its audience."""
    own = provided.claims["aud"]
    [name] = [own] if isinstance(own, str) else own
    for audience in ("somebody-else", [], ["somebody-else"], "", name.upper(), f"{name} ", f"{name}x", None, 5, [5]):
        assert provided.send(aud=audience) == 401, audience
    assert provided.send(without="aud") == 401
    assert provided.send(aud=["somebody-else", name]) == 200


@pytest.mark.threat("LG-AUT-12")
@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer None",
        "Bearer null",
        "Bearer undefined",
        "Bearer a.b",
        "Bearer a.b.c",
        "Bearer a.b.c.d.e",
        "Bearer ....",
        f"Bearer {'A' * 60_000}",
        "Basic YWRtaW46YWRtaW4=",
        "Token abc",
        "DPoP abc",
    ],
    ids=lambda text: text[:20] or "empty",
)
def test_authorization_header_without_a_token_is_refused(world: World, authorization: str) -> None:
    answer = _send(world, authorization)
    assert answer.status_code == 401, answer.text


@pytest.mark.threat("LG-AUT-12")
def test_request_with_two_tokens_is_refused(world: World, genuine: str) -> None:
    """Two components could otherwise read different tokens."""
    assert _send(world, [f"Bearer {genuine}", f"Bearer {world.admin.token}"]).status_code == 401
    assert _send(world, f"Bearer {genuine}, Bearer {world.admin.token}").status_code == 401
    assert _send(world, f"Bearer {genuine} {world.admin.token}").status_code == 401


@pytest.mark.threat("LG-AUT-12")
def test_token_outside_the_authorization_header_is_ignored(world: World, genuine: str) -> None:
    for query in (f"?access_token={genuine}", f"?token={genuine}"):
        assert world.unauthenticated.get(_path(world) + query).status_code == 401
    assert world.unauthenticated.get(_path(world), headers={"Cookie": f"access_token={genuine}"}).status_code == 401
    for name in ("X-Forwarded-User", "X-Remote-User", "X-User", "X-Iceberg-User", "X-Assume-Role"):
        assert world.unauthenticated.get(_path(world), headers={name: "oidc~admin"}).status_code == 401


@pytest.mark.threat("LG-AUT-14")
def test_token_authenticates_its_subject_only(world: World) -> None:
    """No header changes carol's identity."""
    headers = {"X-Forwarded-User": "oidc~admin", "X-User": "oidc~admin", "X-Real-User": "admin"}
    who = world.carol.get("/management/v1/whoami", headers=headers)
    assert who.json()["id"] == "oidc~carol"


@pytest.mark.threat("LG-DEC-01")
def test_every_route_but_health_needs_a_token(world: World) -> None:
    """Send each endpoint of the configuration and of the management API without a token."""
    config = world.admin.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}").json()
    requested = [endpoint.split(" ", 1) for endpoint in config["endpoints"]]
    paths = [
        (method, "/catalog" + path.format(prefix=world.warehouse, namespace="n", table="t", view="v"))
        for method, path in requested
    ]
    paths += [
        ("GET", "/catalog/v1/config?warehouse=demo"),
        ("GET", "/management/v1/info"),
        ("POST", "/management/v1/bootstrap"),
        ("GET", "/management/v1/whoami"),
        ("POST", "/management/v1/user"),
        ("GET", "/management/v1/user"),
        ("GET", "/management/v1/user/oidc~alice"),
        ("POST", "/management/v1/project"),
        ("GET", "/management/v1/project-list"),
        ("GET", "/management/v1/project"),
        ("POST", "/management/v1/warehouse"),
        ("POST", "/management/v1/warehouse-creation-validation"),
        ("GET", "/management/v1/warehouse"),
        ("GET", f"/management/v1/warehouse/{world.warehouse}"),
        ("POST", "/management/v1/permissions/check"),
        ("GET", "/management/v1/permissions/server/assignments"),
        ("POST", "/management/v1/permissions/server/assignments"),
    ]
    for method, path in paths:
        assert world.unauthenticated.send(method, path).status_code == 401, f"{method} {path}"
    assert world.unauthenticated.get("/health").status_code == 200
