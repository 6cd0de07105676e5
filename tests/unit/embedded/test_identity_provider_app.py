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

from gateway.embedded import identity_provider_app
from gateway.embedded.identity_provider import IdentityProvider
from gateway.embedded.identity_provider_app import accept_secret_in_body, split_secret

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
