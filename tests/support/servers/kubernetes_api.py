# SPDX-License-Identifier: Apache-2.0
"""Stub of a Kubernetes API server.

It serves TokenReview (authentication.k8s.io/v1) over TLS for some accounts, and publishes the keys of their tokens
unless `hides_keys` is set. Like a real server, it checks the caller's own token, the kind and version of the request,
and the requested audiences.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.certificates import authority
from tests.support.servers.loopback import Reply, Request, serving
from tests.support.stack.providers import StubProvider

AUDIENCE = "lakegate-pods"
#: Audience of the API server's own tokens and of tokens without an audience; the default of a review without audiences.
OWN_AUDIENCE = "https://kubernetes.default.svc.cluster.local"
_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_KEYS_PATH = "/openid/v1/jwks"


class StubCluster(StubProvider):
    """A Kubernetes cluster with its service accounts.

    `files` has the certificate and the reviewer's token. `questions` counts the reviewed tokens. A value in `answer` is
    returned instead of a review. `pause` is the delay in seconds before each answer.
    """

    def __init__(self, url: str, files: Path) -> None:
        super().__init__("https://kubernetes.default.svc.cluster.local")
        self.url, self.files = url, files
        self.accounts: dict[str, dict[str, Any]] = {}
        self.questions = 0
        self.answer: tuple[int, Any] | None = None
        self.pause = 0.0
        self.hides_keys = False
        self.own = self.account("lakegate", "gateway", uid="uid-of-the-gateway")
        (files / "token").write_text(self.own + "\n")

    def account(self, namespace: str, name: str, *, uid: str, audience: str | None = AUDIENCE, **claims: Any) -> str:
        """Return a token of a service account, which the cluster accepts while it is in `accounts`.

        A token without an audience is for the API server itself.
        """
        username = f"system:serviceaccount:{namespace}:{name}"
        token = self.token(username, aud=... if audience is None else [audience], **claims)
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        self.accounts[token] = {
            "user": {"username": username, "uid": uid, "groups": groups},
            "audiences": [audience or OWN_AUDIENCE],
        }
        return token

    def keys(self, path: str, own: str) -> tuple[int, Any]:
        """Return (status, body) of the endpoint that publishes the keys."""
        if own != f"Bearer {self.own}":
            return 401, {"kind": "Status", "status": "Failure", "reason": "Unauthorized", "code": 401}
        if path != _KEYS_PATH or self.hides_keys:
            return 403, {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}
        return 200, self.document(path)

    def review(self, sent: dict[str, Any], own: str) -> tuple[int, Any]:
        """Return (status, body) as an API server returns them."""
        if own != f"Bearer {self.own}":
            return 401, {"kind": "Status", "status": "Failure", "reason": "Unauthorized", "code": 401}
        if (sent.get("kind"), sent.get("apiVersion")) != ("TokenReview", "authentication.k8s.io/v1"):
            return 400, {"kind": "Status", "status": "Failure", "reason": "BadRequest", "code": 400}
        # The token that the health check sends belongs to no service account.
        self.questions += sent["spec"]["token"].count(".") == 2
        if self.answer is not None:
            return self.answer
        known = self.accounts.get(sent["spec"]["token"])
        expected = sent["spec"].get("audiences") or [OWN_AUDIENCE]
        shared = [] if known is None else [each for each in expected if each in known["audiences"]]
        status: dict[str, Any] = {"user": {}, "error": "invalid bearer token"}
        if known is not None and shared:
            status = {"authenticated": True, "user": known["user"], "audiences": shared}
        return 201, {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "status": status}


@contextmanager
def stub_cluster(files: Path) -> Iterator[StubCluster]:
    """Run a cluster with an API server until the end of the block; write its files to `files`."""

    def answer(request: Request) -> Reply:
        token = request.headers["authorization"]
        if request.method == "GET":
            cluster.calls.append(request.path)
            status, body = cluster.keys(request.path, token)
        else:
            sent = json.loads(request.body)
            time.sleep(cluster.pause)
            status, body = cluster.review(sent, token) if request.path == _PATH else (404, {})
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return status, {"content-type": "application/json"}, raw

    signs = authority(files)
    context: ssl.SSLContext = signs.server("127.0.0.1")
    with serving(answer, context) as service:
        cluster = StubCluster(service.url, files)
        yield cluster
