# SPDX-License-Identifier: Apache-2.0
"""Logging in from a command line: the device authorization grant (RFC 8628) against a configured provider.

Nothing is typed into this program: people open the provider's page in any browser and enter a short code there.
Addresses and codes come from the provider and go to a terminal, so they are shown only when they are what they should
be. The device code is bound to this process by PKCE (RFC 7636) as well: providers that know nothing of that here pass
it over (RFC 6749 section 3.1), and Keycloak insists on it where a client does in a browser.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from authlib.common.security import generate_token
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from gateway.identity.discovery import ProviderMetadata, read_metadata
from gateway.identity.fetch import MAX_DOCUMENT_BYTES, DocumentMissing, FetchFailed, check_endpoint
from gateway.identity.oauth_client import (
    LoginFailed,
    OAuthClient,
    ProviderSilent,
    TokenRefused,
    Tokens,
    error_code,
    read_answer,
)

DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_MAX_WAIT: Final = 1800
_SLOWER: Final = 5.0


class DeviceCode(msgspec.Struct, frozen=True):
    """What people are told (RFC 8628 section 3.2), and what the client asks with."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float
    interval: float = 5.0
    verification_uri_complete: str | None = None


class DeviceLogin:
    """One login at one provider, as the public client of `oauth`. Close `oauth` yourself."""

    def __init__(
        self,
        oauth: OAuthClient,
        *,
        issuer: str,
        scope: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._oauth = oauth
        self._issuer = issuer
        self._scope = scope
        self._sleep = sleep
        self._clock = clock

    async def run(self, show: Callable[[DeviceCode], None]) -> Tokens:
        """Ask for a code, `show` it, and wait until somebody has entered it. Raises LoginFailed."""
        provider = await self._provider()
        token_endpoint, device_endpoint = self._endpoints(provider)
        if device_endpoint is None:
            raise LoginFailed(f"{self._issuer} offers no login from a device (RFC 8628)")
        verifier = generate_token(48)
        form = {
            "scope": self._scope,
            "code_challenge": create_s256_code_challenge(verifier),
            "code_challenge_method": "S256",
        }
        begun = await self._oauth.post(device_endpoint, form)
        if begun.status_code != 200:
            why = _why(begun.status_code, error_code(begun))
            raise LoginFailed(f"the provider begins no login for this client ({why})")
        code = read_answer(begun, DeviceCode)
        _require_showable(code)
        show(code)
        return await self._wait(code, token_endpoint, verifier)

    async def _wait(self, code: DeviceCode, token_endpoint: str, verifier: str) -> Tokens:
        """Ask for the token until it is there, or the code has ended (RFC 8628 section 3.5)."""
        ends = self._clock() + min(code.expires_in, _MAX_WAIT)
        interval = max(1.0, code.interval)
        while self._clock() + interval < ends:
            await self._sleep(interval)
            try:
                return await self._oauth.fetch_token(
                    token_endpoint, DEVICE, device_code=code.device_code, code_verifier=verifier
                )
            except ProviderSilent:
                # When the connection times out, ask less often; the code is good still.
                interval += _SLOWER
            except TokenRefused as refused:
                match refused.error:
                    case "authorization_pending":
                        pass
                    case "slow_down":
                        interval += _SLOWER
                    case "access_denied":
                        raise LoginFailed("the login was refused at the provider") from None
                    case "expired_token":
                        break
                    case None:
                        status = refused.status
                        raise LoginFailed(f"the provider's answer cannot be read (HTTP {status})") from None
                    case _:
                        raise LoginFailed(f"the provider refused the login (HTTP {refused.status})") from None
        raise LoginFailed("nobody entered the code in time; log in again")

    async def refresh(self, refresh_token: str) -> Tokens:
        """New tokens without anybody's doing (RFC 6749 section 6). Raises LoginFailed."""
        token_endpoint, _ = self._endpoints(await self._provider())
        try:
            return await self._oauth.refresh_token(token_endpoint, refresh_token)
        except TokenRefused as refused:
            if refused.error == "invalid_grant":
                raise LoginFailed("the login has ended; log in again") from None
            why = _why(refused.status, refused.error)
            raise LoginFailed(f"the provider does not renew the login now ({why})") from None

    async def _provider(self) -> ProviderMetadata:
        try:
            check_endpoint(self._issuer, "the provider's address")
            return await read_metadata(self._issuer, self._document)
        except (ValueError, FetchFailed) as error:
            raise LoginFailed(str(error)) from None

    def _endpoints(self, provider: ProviderMetadata) -> tuple[str, str | None]:
        """Return the provider's addresses for tokens and for device codes."""
        try:
            device_endpoint = provider.optional_endpoint("device_authorization_endpoint")
            return provider.endpoint("token_endpoint"), device_endpoint
        except FetchFailed as error:
            raise LoginFailed(str(error)) from None

    async def _document(self, url: str) -> bytes:
        answer = await self._oauth.get(url)
        if answer.status_code != 200:
            kind = DocumentMissing if answer.status_code == 404 else FetchFailed
            raise kind(f"{url} answered {answer.status_code} instead of 200")
        if len(answer.content) > MAX_DOCUMENT_BYTES:
            raise FetchFailed(f"{url} answered more than {MAX_DOCUMENT_BYTES} bytes")
        return answer.content


def _why(status: int, error: str | None) -> str:
    return f"HTTP {status}, {error}" if error else f"HTTP {status}"


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
