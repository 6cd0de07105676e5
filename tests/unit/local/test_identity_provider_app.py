# SPDX-License-Identifier: Apache-2.0
"""A client's secret in the body of a request becomes HTTP Basic, and nothing else of the request changes."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

import pytest

from lakegate.local import identity_provider_app
from lakegate.local.identity_provider import PUBLIC_CLIENT, IdentityProvider
from lakegate.local.identity_provider_app import accept_secret_in_body, name_subjects, read_keys_once, split_secret
from lakegate.local.ready import generate

FORM = "application/x-www-form-urlencoded"
POSTED = b"grant_type=client_credentials&client_id=job&client_secret=a%2Bb%26c"


def test_secret_moves_from_the_body_to_the_header() -> None:
    authorization, body = split_secret(POSTED + b"&scope=catalog+openid&resource=")
    assert authorization == "Basic " + base64.b64encode(b"job:a+b&c").decode()
    assert parse_qsl(body.decode(), keep_blank_values=True) == [
        ("grant_type", "client_credentials"),
        ("client_id", "job"),
        ("scope", "catalog openid"),
        ("resource", ""),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"grant_type=client_credentials",
        b"client_id=job",
        b"client_secret=s",
        b"client_id=job&client_secret=",
        b"client_id=&client_secret=s",
        b"client_id=a:b&client_secret=s",
        b"client_id=job&client_secret=s&client_secret=t",
        b"client_id=job&client_id=other&client_secret=s",
        b"client_id=job&client_secret=%ff",
        b"client_id=job&client_secret=\xff",
        b"client_id=%ff&client_secret=s",
    ],
)
def test_form_without_one_id_and_one_secret_stays_as_it_is(body: bytes) -> None:
    assert split_secret(body) == (None, body)


def seen(body: bytes = POSTED, **more: str) -> tuple[str | None, bytes]:
    """Send a request through the middleware; return the header Authorization and the body that the provider reads."""
    found: list[tuple[str | None, bytes]] = []

    def provider(environ: dict[str, Any], _: Any) -> Iterable[bytes]:
        read = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
        found.append((environ.get("HTTP_AUTHORIZATION"), read))
        return [b""]

    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/token", "CONTENT_TYPE": FORM, "CONTENT_LENGTH": str(len(body))}
    accept_secret_in_body(provider)({**environ, "wsgi.input": io.BytesIO(body), **more}, None)
    [request] = found
    return request


def test_provider_reads_the_header_and_a_body_of_the_new_length() -> None:
    authorization, body = seen()
    assert authorization is not None
    assert body == b"grant_type=client_credentials&client_id=job"
    assert seen(CONTENT_TYPE=f"{FORM.upper()}; charset=utf-8") == (authorization, body)


@pytest.mark.parametrize(
    "more",
    [
        # Two methods in one request: the provider must see both, to reject it.
        {"HTTP_AUTHORIZATION": "Basic am9iOmFiYw=="},
        {"REQUEST_METHOD": "PUT"},
        {"PATH_INFO": "/authorize"},
        {"CONTENT_TYPE": "application/json"},
        {"CONTENT_TYPE": ""},
    ],
)
def test_other_requests_are_passed_on_unchanged(more: dict[str, str]) -> None:
    assert seen(POSTED, **more) == (more.get("HTTP_AUTHORIZATION"), POSTED)


def test_large_body_is_not_read() -> None:
    body = POSTED + b"&x=" + b"a" * 70_000
    assert seen(body) == (None, body)


def test_provider_starts_with_the_interpreter_of_its_environment(tmp_path: Path) -> None:
    provider = IdentityProvider(tmp_path / "nanoidp", tmp_path, 1, cast(Any, None), pages="http://gateway")
    assert provider._program() == [str(tmp_path / "nanoidp"), "--strict-config"]
    (tmp_path / "python").touch()
    assert provider._program() == [str(tmp_path / "python"), "-I", "-u", identity_provider_app.__file__]


def test_access_tokens_get_the_name_of_their_subject_and_other_tokens_do_not() -> None:
    made: list[dict[str, Any]] = []

    def create_jwt(signer: str, *, sub: str, extra: dict[str, Any] | None = None, **more: Any) -> str:
        made.append({"signer": signer, "sub": sub, "extra": extra, **more})
        return "token"

    named = name_subjects(create_jwt)
    assert named("key", sub="alice", extra={"token_use": "access", "scope": "x"}, issuer="i") == "token"
    named("key", sub="alice", extra={"token_use": "access", "name": "Alice"})
    named("key", sub="alice", extra={"token_use": "id"})
    named("key", sub="alice")
    assert [each["extra"] for each in made] == [
        {"token_use": "access", "scope": "x", "name": "alice"},
        {"token_use": "access", "name": "Alice"},
        {"token_use": "id"},
        None,
    ]
    assert made[0]["issuer"] == "i"


def test_each_text_of_a_key_is_parsed_once() -> None:
    parsed: list[Any] = []

    def prepare_key(algorithm: str, key: Any) -> tuple[str, Any]:
        parsed.append(key)
        return algorithm, key

    prepared = read_keys_once(prepare_key)
    unhashable = ["a key that is parsed already"]
    assert [prepared("RS256", key) for key in (b"one", b"two", b"one", "two", unhashable)] == [
        ("RS256", key) for key in (b"one", b"two", b"one", "two", unhashable)
    ]
    assert parsed == [b"one", b"two", "two", unhashable]


def test_further_pages_for_sign_ins_are_allowed_by_the_provider(tmp_path: Path) -> None:
    consoles = ("http://localhost:3001/ui/callback", "https://console.example.com/cb")
    provider = IdentityProvider(
        tmp_path / "nanoidp", tmp_path, 8183, generate(), pages="http://127.0.0.1:8181", redirect_uris=consoles
    )
    settings = cast(Any, provider._settings())
    (public,) = (each for each in settings["oauth"]["clients"] if each["client_id"] == PUBLIC_CLIENT)
    assert set(consoles) < set(public["redirect_uris"])
    assert {"http://localhost:3001", "https://console.example.com"} < set(settings["cors_allowed_origins"])
