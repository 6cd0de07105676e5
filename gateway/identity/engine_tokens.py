# SPDX-License-Identifier: Apache-2.0
"""Serve tokens to an engine that runs longer than its token is valid, for ``lakegate trino tokens``.

Iceberg's Java client (1.9) sends all token requests to one address: for the engine's own token, for its renewal, and
for its users. The identity provider must answer the requests for the engine's token, and the gateway those for its
users. This service runs on the engine's machine and forwards each request to the right one. It holds the engine's
client secret, as the engine would, and gives tokens only to the engine. To renew, the client requests a token exchange
for its own token (RFC 8693). The response has a new token of the provider.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_plus

import httpx2
import msgspec

from gateway.identity.oauth_client import LoginFailed, OAuthClient, ProviderSilent, Tokens

EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a type of token
_KNOWN: Final = 64
"""The number of issued tokens that the service recognizes. Engines use only the latest ones."""
_LONGEST_ANSWER: Final = 1 << 20
_SHORTEST: Final = 30.0
_SKEW: Final = 60.0
"""Seconds for which an expired token still renews itself: the clock of the provider may differ."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request of the engine."""

    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Answer({self.status})"


def _refused(status: int, error: str, description: str) -> Answer:
    return Answer(status, msgspec.json.encode({"error": error, "error_description": description}))


class EngineTokens:
    """The token service of one engine.

    ``provider``: a client of the identity provider with the engine's credentials. ``endpoint``: its token endpoint.
    ``secret``: the engine's client secret, with which the engine proves its identity. ``gateway``: a client of the
    gateway's token endpoint.
    """

    def __init__(
        self,
        *,
        provider: OAuthClient,
        endpoint: str,
        secret: str,
        scope: str | None,
        gateway: httpx2.AsyncClient,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._provider = provider
        self._endpoint = endpoint
        self._secret = secret
        self._scope = {} if scope is None else {"scope": scope}
        self._gateway = gateway
        self._clock = clock
        self._current: Tokens | None = None
        self._issued: dict[bytes, float] = {}
        self._one_at_a_time = asyncio.Lock()

    async def answer(self, form: Mapping[str, str], authorization: str | None) -> Answer:
        """Answer a token request. ``authorization``: the value of its header, if any."""
        try:
            if form.get("grant_type") == "client_credentials":
                if not self._is_credential(form.get("client_id"), form.get("client_secret"), authorization):
                    return _refused(401, "invalid_client", "the client id or secret is not the one of this engine")
                return self._own(await self._token())
            if form.get("grant_type") != EXCHANGE:
                return _refused(400, "unsupported_grant_type", "use client_credentials or token exchange")
            if not self._is_engine(authorization):
                return _refused(401, "invalid_client", "the request has no token that this service issued")
            if self._knows(form.get("subject_token", "")):
                if not self._may_renew(authorization):
                    return _refused(401, "invalid_client", "the token has expired; renew it with the client's secret")
                return self._own(await self._token(renew=True))
            return await self._exchange(form)
        except ProviderSilent as silent:
            return _refused(503, "temporarily_unavailable", str(silent))
        except LoginFailed as failed:
            return _refused(400, "unauthorized_client", str(failed))

    async def _token(self, *, renew: bool = False) -> Tokens:
        """Return the engine's token. Request a new one if ``renew`` is set, or if the current one expires soon. Raises
        the errors of OAuthClient.
        """
        before = self._current
        async with self._one_at_a_time:
            current = self._current
            usable = current is not None and current.expires_at > self._clock() + _SHORTEST
            if current is not None and usable and (not renew or current is not before):
                return current
            found = await self._provider.fetch_token(self._endpoint, "client_credentials", **self._scope)
            self._current = found
            self._issued[_digest(found.access_token)] = found.expires_at
            for oldest in list(self._issued)[:-_KNOWN]:
                del self._issued[oldest]
            return found

    async def _exchange(self, form: Mapping[str, str]) -> Answer:
        """Forward a user's token exchange to the gateway, with the engine's current token instead of an older one."""
        own = (await self._token()).access_token
        sent = {name: value for name, value in form.items() if not name.startswith("actor_token")}
        try:
            answer = await self._gateway.post("", data=sent, headers={"Authorization": f"Bearer {own}"})
        except httpx2.HTTPError as error:
            return _refused(503, "temporarily_unavailable", f"the gateway did not answer: {type(error).__name__}")
        if len(answer.content) > _LONGEST_ANSWER:
            return _refused(502, "temporarily_unavailable", "the gateway's response is too long")
        return Answer(answer.status_code, answer.content)

    def _own(self, tokens: Tokens) -> Answer:
        seconds = max(int(tokens.expires_at - self._clock()), 0)
        body = {
            "access_token": tokens.access_token,
            "issued_token_type": ACCESS_TOKEN,
            "token_type": "Bearer",
            "expires_in": seconds,
        }
        return Answer(200, msgspec.json.encode(body))

    def _knows(self, token: str) -> bool:
        return _digest(token) in self._issued

    def _may_renew(self, authorization: str | None) -> bool:
        """Return False if the request authenticates the engine by an expired token, which may have been disclosed.

        Clients send the client credential to renew an expired token. For exchanges of users' tokens an expired token is
        accepted, because clients send it after an outage of the provider.
        """
        expires_at = self._issued.get(_digest((authorization or "").partition(" ")[2]))
        return expires_at is None or self._clock() < expires_at + _SKEW

    def _is_engine(self, authorization: str | None) -> bool:
        """Return True if the header has a token that this service issued, or the client credential, which clients send
        after expiry.
        """
        scheme, _, value = (authorization or "").partition(" ")
        if scheme.lower() == "bearer":
            return self._knows(value)
        return self._is_credential(None, None, authorization)

    def _is_credential(self, client_id: str | None, secret: str | None, authorization: str | None) -> bool:
        if client_id is None or secret is None:
            client_id, secret = _basic(authorization)
        right_id = hmac.compare_digest(client_id.encode(), self._provider.client_id.encode())
        return hmac.compare_digest(secret.encode(), self._secret.encode()) and right_id


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _basic(authorization: str | None) -> tuple[str, str]:
    """Return (client id, secret) of a Basic header, or two empty texts."""
    scheme, _, value = (authorization or "").partition(" ")
    try:
        decoded = base64.b64decode(value, validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        decoded = ""
    client_id, _, secret = decoded.partition(":")
    return unquote_plus(client_id), unquote_plus(secret)
