# SPDX-License-Identifier: Apache-2.0
"""An attacker's day: everything somebody without rights can try about identity, against a running stack.

    python -m tests.security.attackers_day [READY-FILE]

starts one more gateway on the stack of the ready file (without one: on a stack of its own), which knows a second
provider, tries every case below, and prints what was refused and how. It ends with status 1 when anything was let in or
broke; `test_attackers_day.py` runs the same cases.
A case is a function that yields its attempts as (what was sent, the answer); register it with `@case`.
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

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.embedded import ready
from gateway.embedded.ready import Ready
from tests.contract.providers import AUDIENCE, StubProvider, b64, jwk, signed, stub_provider
from tests.integration.conftest import _up
from tests.integration.toxic import second_gateway

Attempts = Iterable[tuple[str, httpx.Response]]

#: Where every token is tried: what anybody with a good one is answered.
WHOAMI = "/management/v1/whoami"

#: Refusals. A redirect, a success or a fault of the server is none.
REFUSED = frozenset({400, 401, 403, 404, 409, 413, 422, 429, 431})


@dataclass(frozen=True)
class Case:
    """One thing to try; `threat` is its number in the list of threats, where it has one."""

    threat: str
    what: str
    attempts: Callable[[Day], Attempts]


CASES: list[Case] = []


def case(threat: str, what: str) -> Callable[[Callable[[Day], Attempts]], Callable[[Day], Attempts]]:
    """Add a case to the day."""

    def add(attempts: Callable[[Day], Attempts]) -> Callable[[Day], Attempts]:
        CASES.append(Case(threat, what, attempts))
        return attempts

    return add


class Day:
    """What the attacker has: an address, one good token of each provider, and a key pair.

    `partner` is the second provider. The attacker is one of its ordinary users, and in some cases all of it.
    """

    def __init__(self, ready: Ready, base: str, partner: StubProvider) -> None:
        self.ready, self.base, self.partner = ready, base, partner
        self.token = ready.users["carol"].token
        self.key = rsa.generate_private_key(65537, 2048)
        self.http = httpx.Client(base_url=base, timeout=60, trust_env=False)

    def try_token(self, token: str, path: str = WHOAMI, **headers: str) -> httpx.Response:
        """GET with a token."""
        return self.http.get(path, headers={"Authorization": f"Bearer {token}", **headers})

    def part(self, number: int) -> dict[str, Any]:
        """Header (0) or claims (1) of the attacker's own good token."""
        raw = self.token.split(".")[number]
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
        return found

    def forged(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """The good token's header and claims, changed, under the attacker's signature."""
        return signed(self.key, self.part(1) | claims, **(self.part(0) | (header or {})))


# ---- tokens ----------------------------------------------------------------------------------------------------------


@case("C01", "tokens without a signature")
def unsigned(day: Day) -> Attempts:
    claims = b64(json.dumps(day.part(1) | {"sub": "admin"}).encode())
    for algorithm in ("none", "None", "NONE", ""):
        head = b64(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
        for signature in ("", "AA"):
            yield f"alg={algorithm or 'empty'}", day.try_token(f"{head}.{claims}.{signature}")


@case("C02", "the provider's public key as an HMAC secret")
def public_key_as_secret(day: Day) -> Attempts:
    keys = httpx.get(f"{day.ready.issuer}/.well-known/openid-configuration", trust_env=False).json()["jwks_uri"]
    published = httpx.get(keys, trust_env=False).json()["keys"][0]
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


@case("C04, C06, C08", "an issuer of one's own, one that resembles, and keys brought along")
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


@case("C07, C10, C11", "tokens for others, out of date, or of another kind")
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


@case("C15", "tokens anywhere but in one header, and several of them")
def elsewhere(day: Day) -> Attempts:
    yield "query", day.http.get(f"{WHOAMI}?access_token={day.token}")
    yield "cookie", day.http.get(WHOAMI, headers={"Cookie": f"access_token={day.token}"})
    yield "opaque", day.try_token("2YotnFZFEjr1zCsicMWpAA")
    twice = [("Authorization", f"Bearer {day.token}"), ("Authorization", f"Bearer {day.partner.token('mallory')}")]
    yield "two headers", day.http.get(WHOAMI, headers=twice)
    for name in ("X-Forwarded-User", "X-Remote-User", "X-Auth-Request-User", "X-MS-CLIENT-PRINCIPAL-NAME"):
        yield name, day.http.get(WHOAMI, headers={name: "oidc~admin"})


# ---- several providers -----------------------------------------------------------------------------------------------


@case("C16, C17", "one provider that speaks for the users of another")
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


@case("C16", "subjects that look like users of another provider stay their own")
def look_alikes(day: Day) -> Attempts:
    """A good token each; what is tried is to be somebody with rights."""
    for subject in ("admin", "oidc~admin", "../oidc~admin", "admin#assignee", "*", "role:x#assignee", "user:*"):
        yield subject, day.try_token(day.partner.token(subject), "/management/v1/user")


@contextmanager
def dawn(ready: Ready, log: Path) -> Iterator[Day]:
    """A gateway on the stack that knows the embedded provider and the partner."""
    with ExitStack() as held:
        partner = held.enter_context(stub_provider())
        settings = {
            "OPENID_PROVIDERS__PARTNER__URI": partner.issuer,
            "OPENID_PROVIDERS__PARTNER__AUDIENCE": AUDIENCE,
        }
        base, _ = held.enter_context(second_gateway(ready, log, **settings))
        yield Day(ready, base, partner)


def controls(day: Day) -> Attempts:
    """What has to be let in, or the day proves nothing."""
    yield "carol", day.try_token(day.token)
    yield "a user of the partner", day.try_token(day.partner.token("mallory"), "/catalog/v1/config?warehouse=demo")


def run(day: Day) -> tuple[list[str], int]:
    """(a line for each attempt, how many were not refused)."""
    lines, wrong = [], 0
    for each in CASES:
        lines.append(f"{each.threat}: {each.what}")
        for what, answer in each.attempts(day):
            refused = answer.status_code in REFUSED
            wrong += not refused
            told = f"{answer.status_code} {_type_of(answer)}" if refused else f"NOT REFUSED: {answer.status_code}"
            lines.append(f"    {what[:60]:62} {told}")
    return lines, wrong


def _type_of(answer: httpx.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return ""
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("type", "")) if isinstance(error, dict) else str(error or body.get("scimType", ""))


def main() -> int:
    """Run the day against the stack whose ready file is named, or against one of its own."""
    with ExitStack() as held:
        directory = Path(held.enter_context(tempfile.TemporaryDirectory()))
        stack = ready.read(Path(sys.argv[1])) if len(sys.argv) > 1 else held.enter_context(_up())
        lines, wrong = run(held.enter_context(dawn(stack, directory / "gateway.log")))
    print("\n".join(lines))
    print(f"\n{wrong} attempts were not refused." if wrong else "\nEverything was refused.")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
