# SPDX-License-Identifier: Apache-2.0
"""A server that speaks the part of Vault's HTTP API that the gateway uses, for tests.

It implements what the documentation states (https://developer.hashicorp.com/vault/api-docs) and nothing of the gateway:
the auth methods userpass, approle and kubernetes, tokens with leases, policies by path, and the secrets engine KV
version 2. Tests can seal it, expire tokens, and lose answers.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.support.servers.loopback import Reply, Request, as_json, serving

USER, PASSWORD = "lakegate", "correct horse battery"
ROLE_ID, SECRET_ID = "3e1f-role", "9c2b-secret-id-of-the-role"
ROLE, SERVICE_ACCOUNT_TOKEN = "lakegate", "eyJhbGciOiJSUzI1NiJ9.service-account.signature"
MOUNT = "lake"

#: The policy of docs/secrets.md: capabilities by path.
POLICY = {
    f"{MOUNT}/data/lakegate/*": ("create", "read"),
    f"{MOUNT}/metadata/lakegate/*": ("delete",),
}


@dataclass
class _Token:
    ends: float
    last_end: float
    period: float


@dataclass
class VaultServer:
    """The state of a server. Tests change its fields while it serves."""

    url: str = ""
    password: str = PASSWORD
    policy: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(POLICY))
    #: Secrets engines: path and version.
    mounts: dict[str, str] = field(default_factory=lambda: {MOUNT: "2", "old": "1"})
    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    lease_seconds: float = 3600
    #: The time after a login at which no renewal helps any more.
    longest_seconds: float = 36000
    sealed: bool = False
    #: The number of next answers that are lost after the request took effect.
    lost_answers: int = 0
    #: The number of next requests that get 500.
    errors: int = 0
    #: Seconds before each answer.
    delay: float = 0
    #: The address that requests are redirected to (307).
    redirect: str | None = None
    #: A text that every error contains, as a proxy might repeat the request in its error page.
    echo: str = ""
    tokens: dict[str, _Token] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    namespaces: set[str | None] = field(default_factory=set)

    def expire_tokens(self) -> None:
        """Revoke all tokens."""
        self.tokens.clear()

    def count(self, method: str, part: str) -> int:
        """Return the number of requests of this method with `part` in their path."""
        return sum(each == method and part in path for each, path in list(self.requests))

    def text(self) -> str:
        """Return all stored secrets as text."""
        return json.dumps(self.secrets)


class _Refused(Exception):
    def __init__(self, status: int, *errors: str, data: Any = None) -> None:
        self.status = status
        self.body = {"errors": list(errors)} if data is None else {"data": data}


@dataclass(frozen=True)
class _Api:
    state: VaultServer

    def reply(self, request: Request) -> Reply | None:
        state = self.state
        path = request.path.removeprefix("/v1/")
        state.requests.append((request.method, path))
        state.namespaces.add(request.headers.get("x-vault-namespace"))
        time.sleep(state.delay)
        if state.redirect:
            return 307, {"location": f"{state.redirect}{request.path}"}, b""
        try:
            status, answer = self._answer(request, path, json.loads(request.body) if request.body else {})
        except _Refused as refused:
            status, answer = refused.status, refused.body
            if state.echo and "errors" in answer:
                answer["errors"].append(state.echo)
        if state.lost_answers and path.partition("/")[0] != "auth":
            state.lost_answers -= 1
            return None
        return (status, {}, b"") if answer is None else as_json(status, answer)

    def _answer(self, request: Request, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        state = self.state
        if state.sealed:
            raise _Refused(503, "Vault is sealed")
        if state.errors:
            state.errors -= 1
            raise _Refused(500, "internal error")
        if path.startswith("auth/") and "/login" in path:
            return 200, {"auth": self._login(path, body)}
        sent = request.headers.get("x-vault-token") or ""
        token = state.tokens.get(sent)
        if token is None or time.monotonic() >= token.ends:
            raise _Refused(403, "permission denied")
        if (request.method, path) == ("POST", "auth/token/renew-self"):
            return 200, {"auth": self._renewed(token, sent)}
        if (request.method, path) == ("POST", "sys/capabilities-self"):
            found = {each: list(self._rights(each)) or ["deny"] for each in body["paths"]}
            return 200, {**found, "data": found}
        if path.startswith("sys/internal/ui/mounts/"):
            return 200, {"data": self._mount(path.removeprefix("sys/internal/ui/mounts/"))}
        return self._kv(request.method, path, body)

    def _login(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Log in (api-docs/auth/userpass, approle and kubernetes, each section "Login")."""
        state = self.state
        right = {
            f"auth/userpass/login/{USER}": {"password": state.password},
            "auth/approle/login": {"role_id": ROLE_ID, "secret_id": SECRET_ID},
            "auth/kubernetes/login": {"role": ROLE, "jwt": SERVICE_ACCOUNT_TOKEN},
            f"auth/people/login/{USER}": {"password": state.password},
        }.get(path)
        if right is None:
            raise _Refused(403, "permission denied")
        if right != body:
            raise _Refused(400, "invalid username or password")
        now = time.monotonic()
        value = f"hvs.{uuid.uuid4().hex}"
        state.tokens[value] = _Token(now + state.lease_seconds, now + state.longest_seconds, state.lease_seconds)
        return {"client_token": value, "lease_duration": state.lease_seconds, "renewable": True}

    def _renewed(self, token: _Token, value: str) -> dict[str, Any]:
        """Renew a token (api-docs/auth/token, section "Renew a token (self)")."""
        now = time.monotonic()
        token.ends = min(now + token.period, token.last_end)
        return {"client_token": value, "lease_duration": max(0, int(token.ends - now)), "renewable": True}

    def _rights(self, path: str) -> tuple[str, ...]:
        return next((rights for pattern, rights in self.state.policy.items() if fnmatchcase(path, pattern)), ())

    def _mount(self, mount: str) -> dict[str, Any]:
        version = self.state.mounts.get(mount)
        if version is None or not any(each.startswith(f"{mount}/") for each in self.state.policy):
            raise _Refused(
                403,
                f"preflight capability check returned 403, please ensure client's policies grant access to {mount!r}",
            )
        return {"type": "kv", "options": {"version": version}}

    def _kv(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Serve the secrets engine (api-docs/secret/kv/kv-v2)."""
        state = self.state
        mount, part, key = (*path.split("/", 2), "", "")[:3]
        if state.mounts.get(mount) != "2":
            raise (
                _Refused(403, "permission denied")
                if not self._rights(path)
                else _Refused(404, f"no handler for route {path!r}")
            )
        needed = {"GET": "read", "POST": "create", "PUT": "create", "DELETE": "delete"}[method]
        if needed not in self._rights(path):
            raise _Refused(403, "permission denied")
        stored = state.secrets.get(key)
        match method, part:
            case ("POST" | "PUT", "data"):
                version = 0 if stored is None else stored["version"]
                if body.get("options", {}).get("cas", version) != version:
                    raise _Refused(400, "check-and-set parameter did not match the current version")
                if stored is not None and "update" not in self._rights(path):
                    raise _Refused(403, "permission denied")
                state.secrets[key] = {"version": version + 1, "data": body["data"], "deleted": False}
                return 200, {"data": {"version": version + 1, "deletion_time": "", "destroyed": False}}
            case ("GET", "data"):
                if stored is None:
                    raise _Refused(404)
                metadata = {"version": stored["version"], "deletion_time": "2026-01-01" if stored["deleted"] else ""}
                if stored["deleted"]:
                    raise _Refused(404, data={"data": None, "metadata": metadata})
                return 200, {"data": {"data": stored["data"], "metadata": metadata}}
            case ("DELETE", "metadata"):
                state.secrets.pop(key, None)
                return 204, None
        raise _Refused(405, "unsupported operation")


@contextmanager
def vault_server() -> Iterator[VaultServer]:
    """Start a server on a free port of the loopback address."""
    state = VaultServer()
    with serving(_Api(state).reply) as service:
        state.url = service.url
        yield state
