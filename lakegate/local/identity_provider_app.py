# SPDX-License-Identifier: Apache-2.0
"""Start the identity provider with three additions: it accepts client secrets in bodies, adds names to access tokens,
and reads a key once.

The provider registers one authentication method for each client. Spark, Trino, PyIceberg and Lakekeeper's Python client
send `client_secret_post`; command lines and the gateway send `client_secret_basic`. Here a secret in the body becomes
the header of HTTP Basic before the provider reads the request, so that every client can use both.

The provider's access tokens contain no name of their user. Here they get the claim `name`, as most providers send it.

The provider reads its private key again for each token, which takes 40 ms of CPU. The signature takes 1 ms.

This file runs in the environment of the provider. It imports nothing of the gateway.
"""

from __future__ import annotations

import argparse
import base64
import io
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]

#: The endpoints of the provider that authenticate a client (RFC 6749, 7009, 7662 and 8628).
ENDPOINTS: Final = frozenset({"/token", "/revoke", "/introspect", "/device_authorization"})
_MAX_FORM: Final = 65_536


def accept_secret_in_body(app: Wsgi) -> Wsgi:
    """Return a WSGI application that changes `client_secret_post` into `client_secret_basic` and calls `app`."""

    def converted(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if _is_form(environ):
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            authorization, body = split_secret(body)
            if authorization is not None:
                environ["HTTP_AUTHORIZATION"] = authorization
            environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
        return app(environ, start_response)

    return converted


def split_secret(body: bytes) -> tuple[str | None, bytes]:
    """Return (value of the header Authorization, form without the client secret).

    If the form does not have exactly one client id and one secret, return None and the unchanged form, which the
    provider rejects. The same applies to a client id with a colon, because HTTP Basic cannot send it.
    """
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        return None, body
    secrets = [value for name, value in fields if name == "client_secret"]
    ids = [value for name, value in fields if name == "client_id"]
    if len(secrets) != 1 or len(ids) != 1 or not secrets[0] or not ids[0] or ":" in ids[0]:
        return None, body
    pair = base64.b64encode(f"{ids[0]}:{secrets[0]}".encode()).decode("ascii")
    return f"Basic {pair}", urlencode([each for each in fields if each[0] != "client_secret"]).encode("ascii")


def _is_form(environ: dict[str, Any]) -> bool:
    """Return True for a form that is sent to an endpoint which authenticates clients, if it has no header
    Authorization.

    RFC 6749 section 2.3 forbids two methods in one request. With the header, the provider therefore rejects a secret in
    the form.
    """
    length = environ.get("CONTENT_LENGTH") or ""
    media_type = (environ.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()
    return (
        environ.get("REQUEST_METHOD") == "POST"
        and environ.get("PATH_INFO") in ENDPOINTS
        and "HTTP_AUTHORIZATION" not in environ
        and media_type == "application/x-www-form-urlencoded"
        and length.isdecimal()
        and len(length) < 9
        and int(length) <= _MAX_FORM
    )


def name_subjects(create_jwt: Callable[..., str]) -> Callable[..., str]:
    """Wrap the provider's `create_jwt`, so that access tokens have the claim `name`. By default it is the subject."""

    def named(*arguments: Any, sub: str, extra: dict[str, Any] | None = None, **more: Any) -> str:
        if extra is not None and extra.get("token_use") == "access":
            extra = {"name": sub, **extra}
        return create_jwt(*arguments, sub=sub, extra=extra, **more)

    return named


def read_keys_once(prepare_key: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wrap PyJWT's `prepare_key`, so that it parses each text of a key once."""
    parsed = lru_cache(maxsize=8)(prepare_key)

    def prepared(algorithm: Any, key: Any) -> Any:
        return parsed(algorithm, key) if isinstance(key, (bytes, str)) else prepare_key(algorithm, key)

    return prepared


def main() -> None:
    """Serve the configuration directory in the option `--config` until the process is ended."""
    from nanoidp.app import create_app  # type: ignore[import-not-found]  # it is in the provider's environment only
    from nanoidp.config import get_config  # type: ignore[import-not-found]  # as above
    from nanoidp.services.crypto import CryptoService  # type: ignore[import-not-found]  # as above

    parser = argparse.ArgumentParser(prog="identity-provider")
    parser.add_argument("--config", required=True)
    directory = parser.parse_args().config
    CryptoService.create_jwt = name_subjects(CryptoService.create_jwt)
    algorithm: Any = import_module("jwt.algorithms").RSAAlgorithm
    algorithm.prepare_key = read_keys_once(algorithm.prepare_key)
    app = create_app(directory, strict_config=True)
    settings = get_config().settings
    app.wsgi_app = accept_secret_in_body(app.wsgi_app)
    app.run(host=settings.host, port=settings.port, debug=False)


if __name__ == "__main__":
    main()
