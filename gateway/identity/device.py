# SPDX-License-Identifier: Apache-2.0
"""Logging in from a command line: the device authorization grant (RFC 8628) against a configured provider.

Nothing is typed into this program: people open the provider's page in any browser and enter a short code there.
Addresses and codes come from the provider and go to a terminal, so they are shown only when they are what they should
be. The device code is bound to this process by PKCE (RFC 7636) as well: providers that know nothing of that here pass
it over (RFC 6749 section 3.1), and Keycloak insists on it where a client does in a browser.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import httpx
import msgspec

from gateway.identity.discovery import discovery_url
from gateway.identity.fetch import check_endpoint

DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_MAX_ANSWER: Final = 65_536
_MAX_WAIT: Final = 1800
_SLOWER: Final = 5.0
#: RFC 6749 section A.12: it is printed and goes into a header.
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)
Answer = TypeVar("Answer")


class LoginFailed(Exception):
    """There is no token; the text says why and never holds one."""


class DeviceCode(msgspec.Struct, frozen=True):
    """What people are told (RFC 8628 section 3.2), and what the client asks with."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float
    interval: float = 5.0
    verification_uri_complete: str | None = None


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of a login; `expires_at` in seconds since 1970."""

    access_token: str
    expires_at: float
    refresh_token: str | None = None


class _Provider(msgspec.Struct, frozen=True):
    issuer: str
    token_endpoint: str
    device_authorization_endpoint: str | None = None


class _Granted(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: float = 300.0
    refresh_token: str | None = None


class _Refused(msgspec.Struct, frozen=True):
    error: str


class DeviceLogin:
    """One login at one provider, as the public client `client_id`. Close `http` yourself."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        *,
        issuer: str,
        client_id: str,
        scope: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._http = http
        self._issuer = issuer
        self._client_id = client_id
        self._scope = scope
        self._sleep = sleep
        self._clock = clock

    async def run(self, show: Callable[[DeviceCode], None]) -> Tokens:
        """Ask for a code, `show` it, and wait until somebody has entered it. Raises LoginFailed."""
        provider = await self._provider()
        if provider.device_authorization_endpoint is None:
            raise LoginFailed(f"{self._issuer} offers no login from a device (RFC 8628)")
        verifier = secrets.token_urlsafe(32)
        form = {
            "client_id": self._client_id,
            "scope": self._scope,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        begun = await self._post(provider.device_authorization_endpoint, form)
        if begun.status_code != httpx.codes.OK:
            raise LoginFailed(f"the provider begins no login for this client (HTTP {begun.status_code}{_why(begun)})")
        code = _read(begun, DeviceCode)
        _require_showable(code)
        show(code)
        ends = self._clock() + min(code.expires_in, _MAX_WAIT)
        interval = max(1.0, code.interval)
        while self._clock() + interval < ends:
            await self._sleep(interval)
            try:
                answer = await self._post(
                    provider.token_endpoint,
                    {
                        "grant_type": DEVICE,
                        "device_code": code.device_code,
                        "client_id": self._client_id,
                        "code_verifier": verifier,
                    },
                )
            except LoginFailed:
                # RFC 8628 section 3.5: when the connection times out, ask less often; the code is good still.
                interval += _SLOWER
                continue
            if answer.status_code == httpx.codes.OK:
                return self._tokens(answer)
            match _read(answer, _Refused).error:
                case "authorization_pending":
                    pass
                case "slow_down":
                    interval += _SLOWER
                case "access_denied":
                    raise LoginFailed("the login was refused at the provider")
                case "expired_token":
                    break
                case _:
                    raise LoginFailed(f"the provider refused the login (HTTP {answer.status_code})")
        raise LoginFailed("nobody entered the code in time; log in again")

    async def refresh(self, refresh_token: str) -> Tokens:
        """New tokens without anybody's doing (RFC 6749 section 6). Raises LoginFailed."""
        provider = await self._provider()
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": self._client_id}
        answer = await self._post(provider.token_endpoint, form)
        if answer.status_code != httpx.codes.OK:
            why = _why(answer)
            if why == ", invalid_grant":
                raise LoginFailed("the login has ended; log in again")
            raise LoginFailed(f"the provider does not renew the login now (HTTP {answer.status_code}{why})")
        tokens = self._tokens(answer)
        return tokens if tokens.refresh_token else msgspec.structs.replace(tokens, refresh_token=refresh_token)

    async def _provider(self) -> _Provider:
        try:
            check_endpoint(self._issuer, "the provider's address")
            provider = _read(await self._ask("GET", discovery_url(self._issuer), None), _Provider)
            for endpoint in (provider.token_endpoint, provider.device_authorization_endpoint):
                if endpoint is not None:
                    check_endpoint(endpoint, "an address of the provider")
                    # As with its keys: what listens on this machine is not what an https provider speaks for.
                    if self._issuer.startswith("https://") and not endpoint.startswith("https://"):
                        raise ValueError("an address of an https provider must be https")
        except ValueError as error:
            raise LoginFailed(str(error)) from None
        if provider.issuer != self._issuer:
            raise LoginFailed(f"{self._issuer} speaks for another issuer")
        return provider

    def _tokens(self, answer: httpx.Response) -> Tokens:
        granted = _read(answer, _Granted)
        if granted.token_type.lower() != "bearer":
            raise LoginFailed("the provider gave a token that is no bearer token")
        if not _SENDABLE.fullmatch(granted.access_token):
            raise LoginFailed("the provider gave a token that cannot be sent")
        return Tokens(granted.access_token, self._clock() + granted.expires_in, granted.refresh_token)

    async def _post(self, url: str, form: Mapping[str, str]) -> httpx.Response:
        return await self._ask("POST", url, form)

    async def _ask(self, method: str, url: str, form: Mapping[str, str] | None) -> httpx.Response:
        try:
            return await self._http.request(method, url, data=form, headers={"Accept": "application/json"})
        except httpx.HTTPError as error:
            raise LoginFailed(f"the provider does not answer: {type(error).__name__}") from None


def _read(answer: httpx.Response, kind: type[Answer]) -> Answer:
    if len(answer.content) > _MAX_ANSWER:
        raise LoginFailed("the provider's answer is too long")
    try:
        found: Any = msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LoginFailed(f"the provider's answer cannot be read (HTTP {answer.status_code})") from None
    result: Answer = found
    return result


def _challenge(verifier: str) -> str:
    """RFC 7636 section 4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _why(answer: httpx.Response) -> str:
    """The error code of a refusal, where it is one; nothing else of the answer is shown."""
    try:
        error = _read(answer, _Refused).error
    except LoginFailed:
        return ""
    return f", {error}" if re.fullmatch(r"[a-z_]{1,40}", error) else ""


def _require_showable(code: DeviceCode) -> None:
    """Raise LoginFailed for what would do something to a terminal, or send people to an unprotected page."""
    shown = (code.user_code, code.verification_uri, code.verification_uri_complete or "")
    if not code.user_code or any(not text.isprintable() or len(text) > 500 for text in shown):
        raise LoginFailed("the provider's code cannot be shown")
    try:
        check_endpoint(code.verification_uri, "the provider's page")
        if code.verification_uri_complete is not None:
            check_endpoint(code.verification_uri_complete.partition("?")[0], "the provider's page")
    except ValueError as error:
        raise LoginFailed(str(error)) from None
