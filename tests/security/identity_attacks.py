# SPDX-License-Identifier: Apache-2.0
"""Attacks on authentication and delegation by users without rights, against a running stack.

    python -m tests.security.identity_attacks [READY-FILE]

The command starts another gateway on the stack of the ready file, or on a new stack if none is named. This gateway
trusts a second provider. The command tries each case below and prints each response. It exits with status 1 if an
attempt is not refused. `test_identity_attacks.py` runs the same cases.

A case is a function that yields its attempts as (description, response). Register it with `@case`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lakegate.local import ready
from lakegate.local.ready import Ready
from tests.integration.conftest import _up
from tests.support.servers.kubernetes_api import AUDIENCE as PODS_AUDIENCE
from tests.support.servers.kubernetes_api import StubCluster, stub_cluster
from tests.support.servers.toxic import second_gateway
from tests.support.stack.exchanging import EXCHANGE, JWT, TOKENS
from tests.support.stack.exchanging import unsigned as unsigned_name
from tests.support.stack.providers import AUDIENCE, StubProvider, b64, jwk, signed, stub_provider

Attempts = Iterable[tuple[str, httpx.Response]]

#: The path for token attempts: it answers each valid token.
WHOAMI = "/management/v1/whoami"

#: Statuses that count as refusals. A redirect, a success or a server error does not count.
REFUSED = frozenset({400, 401, 403, 404, 409, 413, 422, 429, 431})


@dataclass(frozen=True)
class Case:
    """One attack. `threat` lists its ids in `docs/threats.md`; `-06` repeats the prefix of the id before it."""

    threat: str
    what: str
    attempts: Callable[[Day], Attempts]


CASES: list[Case] = []


def case(threat: str, what: str) -> Callable[[Callable[[Day], Attempts]], Callable[[Day], Attempts]]:
    """Register the decorated function as a case."""

    def add(attempts: Callable[[Day], Attempts]) -> Callable[[Day], Attempts]:
        CASES.append(Case(threat, what, attempts))
        return attempts

    return add


class Day:
    """The attacker's means: a gateway address, a valid token of each provider, and a key pair.

    `partner` is the second provider. The attacker is an ordinary user of it; in some cases the attacker controls it.
    `cluster` is a Kubernetes cluster where the attacker has a pod.
    """

    def __init__(self, ready: Ready, base: str, partner: StubProvider, cluster: StubCluster) -> None:
        self.ready, self.base, self.partner, self.cluster = ready, base, partner, cluster
        self.token = ready.users["carol"].token
        self.key = rsa.generate_private_key(65537, 2048)
        self.http = httpx.Client(base_url=base, timeout=60, trust_env=False)

    def try_token(self, token: str, path: str = WHOAMI, **headers: str) -> httpx.Response:
        """Send a GET request with this token."""
        return self.http.get(path, headers={"Authorization": f"Bearer {token}", **headers})

    def exchange(self, bearer: str | None, **form: str) -> httpx.Response:
        """Request a token for another user by token exchange."""
        fields = {"grant_type": EXCHANGE, "subject_token_type": JWT, "actor_token_type": JWT} | form
        if "actor_token" not in form:
            del fields["actor_token_type"]
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        return self.http.post(TOKENS, data=fields, headers=headers)

    def part(self, number: int) -> dict[str, Any]:
        """Return the header (0) or the claims (1) of the attacker's own valid token."""
        raw = self.token.split(".")[number]
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
        return found

    def forged(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Return the valid token with changed header and claims, signed by the attacker's key."""
        return signed(self.key, self.part(1) | claims, **(self.part(0) | (header or {})))


# ---- tokens ----------------------------------------------------------------------------------------------------------


@case("LG-AUT-01", "tokens without a signature")
def unsigned(day: Day) -> Attempts:
    claims = b64(json.dumps(day.part(1) | {"sub": "admin"}).encode())
    for algorithm in ("none", "None", "NONE", ""):
        head = b64(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
        for signature in ("", "AA"):
            yield f"alg={algorithm or 'empty'}", day.try_token(f"{head}.{claims}.{signature}")


@case("LG-AUT-02", "the provider's public key as an HMAC secret")
def public_key_as_secret(day: Day) -> Attempts:
    keys = httpx.get(f"{day.ready.issuer}/.well-known/openid-configuration", trust_env=False, timeout=60).json()[
        "jwks_uri"
    ]
    published = httpx.get(keys, trust_env=False, timeout=60).json()["keys"][0]
    n, e = (int.from_bytes(base64.urlsafe_b64decode(published[name] + "==")) for name in ("n", "e"))
    public = rsa.RSAPublicNumbers(e, n).public_key()
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    for form, secret in (
        ("PEM", public.public_bytes(serialization.Encoding.PEM, spki)),
        ("DER", public.public_bytes(serialization.Encoding.DER, spki)),
        ("JWK", json.dumps(published).encode()),
    ):
        header = day.part(0) | {"alg": "HS256"}
        text = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(day.part(1)).encode())}"
        yield form, day.try_token(f"{text}.{b64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}")


@case("LG-AUT-04, -06, -08", "the attacker's own issuer, a similar issuer, and keys in headers")
def own_issuer(day: Day) -> Attempts:
    for issuer in (
        "https://evil.example",
        day.ready.issuer + "/",
        day.ready.issuer.upper(),
        f" {day.ready.issuer}",
        "",
    ):
        yield f"iss={issuer!r}", day.try_token(day.forged(iss=issuer))
    for name in ("jku", "x5u"):
        yield name, day.try_token(day.forged(header={name: "https://evil.example/keys"}))
    yield "jwk", day.try_token(day.forged(header={"jwk": jwk(day.key, "k")}))
    yield "crit", day.try_token(day.forged(header={"crit": ["x"], "x": 1}))


@case("LG-AUT-07, -05, -11", "tokens of another audience, with invalid dates, or of another type")
def wrong_claims(day: Day) -> Attempts:
    now = time.time()
    changes: dict[str, dict[str, Any]] = {
        "no audience": {"aud": ...},
        "empty audience": {"aud": []},
        "another audience": {"aud": "somebody-else"},
        "expired": {"exp": now - 60},
        "no expiry": {"exp": ...},
        "expiry as text": {"exp": str(now + 600)},
        "not yet": {"nbf": now + 600},
        "from the future": {"iat": now + 600},
        "ID token": {"at_hash": "x"},
        "refresh token": {"typ": "Refresh"},
        "logout token": {"events": {}},
        "bound to a key": {"cnf": {"jkt": "x"}},
        "no subject": {"sub": ...},
        "subject with a line break": {"sub": "a\nb"},
        "subject out of blanks": {"sub": " "},
        "subject too long": {"sub": "x" * 600},
    }
    for what, changed in changes.items():
        yield what, day.try_token(day.partner.token("mallory", **changed))


@case("LG-AUT-12", "tokens outside of the Authorization header, and several tokens")
def elsewhere(day: Day) -> Attempts:
    yield "query", day.http.get(f"{WHOAMI}?access_token={day.token}")
    yield "cookie", day.http.get(WHOAMI, headers={"Cookie": f"access_token={day.token}"})
    yield "opaque", day.try_token("2YotnFZFEjr1zCsicMWpAA")
    twice = [("Authorization", f"Bearer {day.token}"), ("Authorization", f"Bearer {day.partner.token('mallory')}")]
    yield "two headers", day.http.get(WHOAMI, headers=twice)
    for name in ("X-Forwarded-User", "X-Remote-User", "X-Auth-Request-User", "X-MS-CLIENT-PRINCIPAL-NAME"):
        yield name, day.http.get(WHOAMI, headers={name: "oidc~admin"})


# ---- several providers -----------------------------------------------------------------------------------------------


@case("LG-AUT-13, -14", "tokens of one provider that name users of another")
def foreign_users(day: Day) -> Attempts:
    partner = day.partner
    first = day.ready.issuer
    claims = partner.claims("admin", iss=first, aud=day.part(1)["aud"])
    kid = str(day.part(0).get("kid"))
    yield "its key under the other's issuer", day.try_token(signed(partner.key, claims, kid=partner.kid))
    yield "and under the other's key id", day.try_token(signed(partner.key, claims, kid=kid))
    yield "with the other's audience", day.try_token(partner.token("admin", aud=day.part(1)["aud"]))
    yield "issuer as a list", day.try_token(partner.token("admin", iss=[partner.issuer, first]))
    yield "an actor of the other issuer", day.try_token(partner.token("mallory", act={"sub": "admin", "iss": first}))


@case("LG-AUT-13", "subjects that resemble users of another provider")
def look_alikes(day: Day) -> Attempts:
    """Send valid tokens whose subjects resemble users with rights, usersets or wildcards."""
    for subject in ("admin", "oidc~admin", "../oidc~admin", "admin#assignee", "*", "role:x#assignee", "user:*"):
        yield subject, day.try_token(day.partner.token(subject), "/management/v1/user")


@case("LG-AUT-09", "many tokens with unpublished keys")
def storm(day: Day) -> Attempts:
    requested = len(day.partner.calls)
    answers = [day.try_token(day.partner.token("mallory", kid=f"made-up-{number}")) for number in range(50)]
    yield from ((f"key {number}", answer) for number, answer in enumerate(answers) if number % 10 == 0)
    if len(day.partner.calls) - requested > 12:
        yield "the provider received a request for each key", httpx.Response(500)


# ---- groups and roles ------------------------------------------------------------------------------------------------


@contextmanager
def secret(day: Day) -> Iterator[tuple[str, str, str]]:
    """Create a role that sees a warehouse, linked to a group of the embedded provider.

    Yield (id of the role, its source id, a path in the warehouse).
    """
    admin = {"Authorization": f"Bearer {day.ready.users['admin'].token}"}
    config = day.http.get(f"/catalog/v1/config?warehouse={day.ready.warehouse}", headers=admin).json()
    warehouse = config["defaults"]["prefix"]
    source = f"staff-{uuid4()}"
    body = {"name": source, "provider-id": "oidc", "source-id": source}
    role = day.http.post("/management/v1/role", json=body, headers=admin).json()["id"]
    grants = f"/management/v1/permissions/warehouse/{warehouse}/assignments"
    given = day.http.post(grants, json={"writes": [{"type": "describe", "role": role}]}, headers=admin)
    assert given.status_code == 204, given.text
    try:
        yield role, source, f"/catalog/v1/{warehouse}/namespaces"
    finally:
        day.http.delete(f"/management/v1/role/{role}", headers=admin)


@case("LG-AUT-10, LG-POL-09", "groups that resemble roles of another provider, ids or tuple syntax")
def foreign_groups(day: Day) -> Attempts:
    with secret(day) as (role, source, path):
        for group in (
            *(source, role, f"oidc~{source}", f"role:{role}", f"role:{role}#assignee", "#assignee", "*", "user:*"),
            *("%", f"{source}%", "'; drop table roles; --", "{" + source + "}", f'"{source}"', source.upper()),
        ):
            yield f"group {group[:40]}", day.try_token(day.partner.token("mallory", groups=[group]), path)
        yield "all of them", day.try_token(day.partner.token("mallory", groups=[source, role, "*"]), path)


@case("LG-AUT-10", "groups claims that are unreadable or replaced by a reference")
def unreadable_groups(day: Day) -> Attempts:
    changes: dict[str, dict[str, Any]] = {
        "left out, sources named": {"groups": ..., "_claim_names": {"groups": "src1"}},
        "left out, hasgroups": {"groups": ..., "hasgroups": True},
        "a number": {"groups": 7},
        "an object": {"groups": {"a": 1}},
        "nested": {"groups": [["a"]]},
        "a separator inside": {"groups": ["a\x1eb"]},
        "5,000 of them": {"groups": [f"group-{number}" for number in range(5_000)]},
    }
    for what, changed in changes.items():
        yield what, day.try_token(day.partner.token("mallory", **changed))


@case("LG-DEC-18", "groups, roles and relationships sent by the client")
def client_credentials_claims(day: Day) -> Attempts:
    with secret(day) as (role, source, path):
        for name in ("X-Groups", "X-Auth-Request-Groups", "X-Forwarded-Groups", "X-Roles", "X-Iceberg-Roles"):
            yield name, day.try_token(day.token, path, **{name: source})
        for value in (role, str(uuid4()), f"{role},{role}", "*", f"role:{role}", ""):
            yield f"x-assume-role: {value[:20]}", day.try_token(day.token, path, **{"x-assume-role": value})
        tuples = f"{path}?contextual_tuples=user:oidc~carol,assignee,role:{role}"
        yield "contextual tuples in the query", day.try_token(day.token, tuples)


# ---- service accounts ------------------------------------------------------------------------------------------------


@case("LG-AUT-01, -07", "service accounts: unknown, of another audience, expired, or of another cluster")
def pods(day: Day) -> Attempts:
    cluster = day.cluster
    unknown = cluster.account("kube-system", "admin", uid="u-1")
    del cluster.accounts[unknown]
    yield "the cluster does not know it", day.try_token(unknown)
    head, _, signature = cluster.account("kube-system", "admin", uid="u-2").rpartition(".")
    yield "with a made-up signature", day.try_token(f"{head}.{'A' * len(signature)}")
    stranger = signed(cluster.key, cluster.claims("system:serviceaccount:a:b", aud=[PODS_AUDIENCE]), kid="made-up")
    yield "under a key the cluster does not publish", day.try_token(stranger)
    yield "for the API server", day.try_token(cluster.account("a", "b", uid="u", audience=cluster.issuer))
    yield "expired", day.try_token(cluster.account("a", "b", uid="u", exp=time.time() - 600))
    yield "without an end", day.try_token(cluster.account("a", "b", uid="u", exp=...))
    legacy: dict[str, Any] = {"iss": "kubernetes/serviceaccount", "exp": ..., "aud": ...}
    yield "of the old kind", day.try_token(cluster.token("system:serviceaccount:a:b", **legacy))
    yield "another cluster's", day.try_token(cluster.account("a", "b", uid="u", iss="https://other.example"))
    for user in ("admin", "system:node:n1", "system:serviceaccount:a", "system:serviceaccount:a:b:c"):
        token = cluster.account("a", "b", uid="u", jti=user)
        cluster.accounts[token]["user"]["username"] = user
        yield f"the cluster says {user}", day.try_token(token)
    token = cluster.account("a", "admin", uid="oidc~admin")
    yield "a uid like a user's id", day.try_token(token, "/management/v1/user")


# ---- engines that delegate ------------------------------------------------------------------------------------------


@case("LG-DEC-20", "token exchange without the right to act for the user")
def exchanges(day: Day) -> Attempts:
    mallory = day.partner.token("mallory")
    admin = unsigned_name("admin")
    own = unsigned_name("mallory")
    yield "an ordinary user names the administrator", day.exchange(mallory, subject_token=admin)
    yield "and themselves", day.exchange(mallory, subject_token=own)
    yield "with the administrator's name as the actor", day.exchange(mallory, subject_token=own, actor_token=admin)
    yield "no bearer and no actor token", day.exchange(None, subject_token=admin)
    yield "no bearer, but an actor token", day.exchange(None, subject_token=admin, actor_token=admin)
    yield "a name as the bearer", day.exchange(admin, subject_token=admin)
    yield "a forged engine", day.exchange(day.forged(sub="trino"), subject_token=admin)
    for name in ("oidc~admin", "*", "user:*", "role:x#assignee", "", " ", "a" * 600):
        yield f"subject {name[:20]!r}", day.exchange(mallory, subject_token=unsigned_name(name))
    plain = {"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}
    yield "another grant", day.exchange(mallory, **plain)


@case("LG-DEC-20", "delegated tokens that this server did not issue")
def own_tokens(day: Day) -> Attempts:
    now = int(time.time())
    result = {"sub": "oidc~admin", "act": {"sub": "partner~mallory"}, "iat": now, "exp": now + 600, "scope": "catalog"}
    for name in ("lakegate", f"urn:lakegate:{uuid4()}", day.base):
        claims = {"iss": name, "aud": name, "jti": "1", **result}
        for algorithm in ("RS256", "none", "Ed25519", "EdDSA", "HS256"):
            header = {"typ": "lakegate-delegated+jwt", "alg": algorithm, "kid": "1"}
            text = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
            yield f"{name[:24]}, {algorithm}", day.try_token(f"{text}.{b64(b'x' * 64)}")
        yield f"{name[:24]}, one's own key", day.try_token(signed(day.key, claims, typ="lakegate-delegated+jwt"))
    yield (
        "an actor in a provider's token",
        day.try_token(day.partner.token("mallory", act={"sub": "oidc~admin"}), "/management/v1/user"),
    )


@contextmanager
def dawn(ready: Ready, log: Path) -> Iterator[Day]:
    """Run a gateway on the stack that trusts the embedded provider, the partner with groups, and a cluster."""
    with ExitStack() as held:
        partner = held.enter_context(stub_provider())
        files = log.parent / "cluster"
        cluster = held.enter_context(stub_cluster(files))
        settings = {
            "OPENID_PROVIDERS__PARTNER__URI": partner.issuer,
            "OPENID_PROVIDERS__PARTNER__AUDIENCE": AUDIENCE,
            "OPENID_PROVIDERS__PARTNER__ROLES_CLAIM": "groups",
            "KUBERNETES_CLUSTERS__LAB__URL": cluster.url,
            "KUBERNETES_CLUSTERS__LAB__AUDIENCE": PODS_AUDIENCE,
            "KUBERNETES_CLUSTERS__LAB__CA_FILE": str(files / "authority.pem"),
            "KUBERNETES_CLUSTERS__LAB__TOKEN_FILE": str(files / "token"),
        }
        base, _ = held.enter_context(second_gateway(ready, log, **settings))
        yield Day(ready, base, partner, cluster)


def controls(day: Day) -> Attempts:
    """Send requests that must succeed: without them, refusals would prove nothing."""
    yield "carol", day.try_token(day.token, "/management/v1/info")
    for what, token in (("mallory", day.partner.token("mallory")), ("pod", day.cluster.account("a", "b", uid="pod"))):
        headers = {"Authorization": f"Bearer {token}"}
        yield what, day.http.post("/management/v1/user", json={}, headers=headers)


def run(day: Day) -> tuple[list[str], int]:
    """Return (report lines, number of attempts that were not refused)."""
    lines, wrong = [], 0
    for each in CASES:
        lines.append(f"{each.threat}: {each.what}")
        for what, answer in each.attempts(day):
            refused = answer.status_code in REFUSED
            wrong += not refused
            result = f"{answer.status_code} {_type_of(answer)}" if refused else f"NOT REFUSED: {answer.status_code}"
            lines.append(f"    {what[:60]:62} {result}")
    return lines, wrong


def _type_of(answer: httpx.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return ""
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("type", "")) if isinstance(error, dict) else str(error or body.get("scimType", ""))


def main() -> int:
    """Run all cases against the stack of the named ready file, or against a new stack; return the exit code."""
    with ExitStack() as held:
        directory = Path(held.enter_context(tempfile.TemporaryDirectory()))
        stack = ready.read(Path(sys.argv[1])) if len(sys.argv) > 1 else held.enter_context(_up())
        lines, wrong = run(held.enter_context(dawn(stack, directory / "gateway.log")))
    print("\n".join(lines))
    print(f"\n{wrong} attempts were not refused." if wrong else "\nEverything was refused.")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
