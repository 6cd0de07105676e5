# SPDX-License-Identifier: Apache-2.0
"""Token exchange and load requests of the reader, against a small server. No token is in a text."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from lakegate.reader import ExchangeFailed, LoadFailed, Reader, catalog

SERVICE, USER = "service-secret", "user-secret"


class Server:
    """A server with one answer for each path; it records the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.busy: dict[str, list[int]] = {}  # the statuses of the first answers of a path
        self.requests: list[tuple[str, str | None, str]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                owner.requests.append((path, self.headers.get("authorization"), body))
                busy = owner.busy.get(path, [])
                status, answer = (busy.pop(), {}) if busy else owner.answers.get(path, (404, {}))
                self.send_response(status)
                if status == 307:
                    self.send_header("location", str(answer))
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            do_POST = do_GET

            def log_message(self, format: str, *arguments: object) -> None:
                """Write no log."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


TOKENS, CONFIG, LOAD = "/catalog/v1/oauth/tokens", "/catalog/v1/config", "/catalog/v1/namespaces/n/tables/t"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Yield a server that exchanges tokens and has a configuration."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    started = Server()
    started.answers[TOKENS] = (200, {"access_token": "exchanged-secret"})
    started.answers[CONFIG] = (200, {"defaults": {}, "overrides": {}})
    yield started
    started.close()


def reader(server: Server) -> Reader:
    return Reader(f"{server.base}/", "lake", lambda: SERVICE)


def test_user_token_is_exchanged_with_the_token_of_the_service_and_only_the_result_is_sent(server: Server) -> None:
    server.answers[LOAD] = (403, {"error": {"message": "enforcer is missing", "type": "F", "code": 403}})
    with pytest.raises(LoadFailed, match="enforcer is missing") as refused:
        reader(server).as_user(USER).table("n.t")
    assert refused.value.status == 403
    path, bearer, body = server.requests[0]
    assert (path, bearer) == (TOKENS, f"Bearer {SERVICE}")
    form = {name: value for name, [value] in parse_qs(body).items()}
    assert form["subject_token"] == USER and form["subject_token_type"].endswith(":access_token")
    assert {bearer for _, bearer, _ in server.requests[1:]} == {"Bearer exchanged-secret"}


def test_named_user_is_sent_as_an_unsigned_token(server: Server) -> None:
    with pytest.raises(LoadFailed):
        reader(server).as_named("ann").table("n.t")
    form = parse_qs(server.requests[0][2])
    assert form["subject_token"][0].count(".") == 2 and form["subject_token"][0].endswith(".")
    assert form["subject_token_type"][0].endswith(":jwt")


def test_redirect_of_the_exchange_is_not_followed(server: Server) -> None:
    """Another server would get the tokens of the service and of the user."""
    server.answers[TOKENS] = (307, "/stolen")
    with pytest.raises(ExchangeFailed):
        reader(server).as_user(USER).table("n.t")
    assert [path for path, _, _ in server.requests] == [TOKENS]


@pytest.mark.parametrize("status", [503, 429])
def test_busy_gateway_is_asked_again(server: Server, status: int) -> None:
    for path in (TOKENS, CONFIG, LOAD):
        server.busy[path] = [status, status]
    server.answers[LOAD] = (403, {"error": {"message": "enforcer is missing", "type": "F", "code": 403}})
    with pytest.raises(LoadFailed, match="enforcer is missing"):
        reader(server).as_user(USER).table("n.t")
    assert [path for path, _, _ in server.requests] == [TOKENS] * 3 + [CONFIG] * 3 + [LOAD] * 3


def test_gateway_that_stays_busy_is_named_as_the_cause(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog._Retry, "get_backoff_time", lambda retry: 0)
    server.answers[LOAD] = (503, {"error": {"message": "OpenFGA is down", "type": "F", "code": 503}})
    with pytest.raises(LoadFailed, match="OpenFGA is down"):
        reader(server).table("n.t")
    server.answers[CONFIG] = (503, {})
    with pytest.raises(LoadFailed, match="not available: try again"):
        reader(server).table("n.t")
    server.answers[CONFIG] = (401, {})
    with pytest.raises(LoadFailed, match="does not accept the token"):
        reader(server).table("n.t")
    assert [path for path, _, _ in server.requests].count(LOAD) == 5


def test_no_token_is_in_a_repr_or_an_error(server: Server) -> None:
    acting = reader(server).as_user(USER)
    server.answers[LOAD] = (200, {"metadata": {"secret": "credential-secret"}, "config": {"token": "config-secret"}})
    texts = [repr(acting), repr(Reader(server.base, "lake", SERVICE, {"s3.secret-access-key": "key-secret"}))]
    for tokens, expected in (((200, {"access_token": "exchanged-secret"}), LoadFailed), ((200, {}), ExchangeFailed)):
        server.answers[TOKENS] = tokens
        with pytest.raises(expected) as failed:
            acting.table("n.t")
        assert failed.value.__context__ is None
        texts.append(str(failed.value))
    server.answers[TOKENS] = (400, {"error": "invalid_request", "error_description": "the token is bound"})
    with pytest.raises(ExchangeFailed, match="the token is bound"):
        acting.table("n.t")
    unreachable = Reader("http://127.0.0.1:1", "lake", SERVICE).as_user(USER)
    with pytest.raises(ExchangeFailed) as failed:
        unreachable.table("n.t")
    assert failed.value.__context__ is None and failed.value.status is None
    assert not [text for text in (*texts, str(failed.value)) if "secret" in text]
