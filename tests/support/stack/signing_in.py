# SPDX-License-Identifier: Apache-2.0
"""Sign-in without a browser: the provider's forms are parsed and submitted, and redirects are inspected."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx

from tests.support.stack.world import Person, World

#: As in lakegate/local/identity_provider.py.
PUBLIC_CLIENT = "lakegate-ui"


@dataclass
class Form:
    """One form of a page: its target, its preset values, and its fields and buttons."""

    action: str
    values: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


class _Forms(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._open = False
        self.found: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(urljoin(self._url, given.get("action", ""))))
            self._open = True
        elif tag in ("input", "button") and self._open and given.get("name"):
            self.found[-1].names.add(given["name"])
            if given.get("type") == "hidden" or (tag == "input" and given.get("value")):
                self.found[-1].values[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "form"


def form_with(answer: httpx.Response, name: str) -> Form:
    """Return the first form with a field or button of this name; fail if there is none."""
    forms = _Forms(str(answer.url))
    forms.feed(answer.text)
    for form in forms.found:
        if name in form.names:
            return form
    raise AssertionError(f"no form with {name} in {answer.status_code} {answer.text[:2000]}")


@dataclass(frozen=True)
class Attempt:
    """State that a page stores for a sign-in it began (RFC 7636, OpenID Connect Core)."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def authorization_request(self, client_id: str, redirect_uri: str, scope: str, **changes: str) -> dict[str, str]:
        """Return the parameters of the request, by their protocol names."""
        return {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect_uri,
            "scope": scope,
            "state": self.state,
            "nonce": self.nonce,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
        } | changes


def browser(*, follows: bool = False) -> httpx.Client:
    """Return an HTTP client with a cookie jar that does not follow redirects by default."""

    def as_browsers_do(response: httpx.Response) -> None:
        # Browsers treat loopback as secure, so a `Secure` cookie is sent there without TLS.
        for cookie in http.cookies.jar:
            cookie.secure = False

    http = httpx.Client(
        trust_env=False, timeout=60, follow_redirects=follows, event_hooks={"response": [as_browsers_do]}
    )
    return http


def fill_in(http: httpx.Client, page: httpx.Response, username: str, password: str) -> httpx.Response:
    """Submit a filled login form; return the response."""
    form = form_with(page, "password")
    return http.post(form.action, data=form.values | {"username": username, "password": password})


def callback_parameters(answer: httpx.Response, redirect_uri: str) -> dict[str, str]:
    """Return the parameters of the provider's redirect; fail if there is none or its target differs."""
    assert answer.status_code in (302, 303), answer.text[:2000]
    to = urlsplit(answer.headers["location"])
    assert f"{to.scheme}://{to.netloc}{to.path}" == redirect_uri
    assert not to.fragment, "the redirect must not carry an implicit response in its fragment"
    return {name: values[0] for name, values in parse_qs(to.query).items()}


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JWT without verification."""
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def signed_in(world: World, name: str) -> Person:
    """Return a user with the token of a sign-in on the page at `/ui`."""
    provider = httpx.get(f"{world.ready.issuer}/.well-known/openid-configuration", trust_env=False, timeout=60).json()
    attempt, redirect_uri = Attempt(), f"{world.base}/ui"
    with browser() as http:
        requested = attempt.authorization_request(PUBLIC_CLIENT, redirect_uri, "openid profile email")
        page = http.get(provider["authorization_endpoint"], params=requested)
        given = callback_parameters(fill_in(http, page, name, world.ready.users[name].client_secret), redirect_uri)
        answer = http.post(
            provider["token_endpoint"],
            data={
                "grant_type": "authorization_code",
                "code": given["code"],
                "redirect_uri": redirect_uri,
                "client_id": PUBLIC_CLIENT,
                "code_verifier": attempt.verifier,
            },
        )
    assert answer.status_code == 200, answer.text
    return Person(name, f"oidc~{name}", answer.json()["access_token"], world.base)
