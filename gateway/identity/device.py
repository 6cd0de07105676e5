# SPDX-License-Identifier: Apache-2.0
"""Login from a command line: the device authorization grant (RFC 8628) against a configured provider.

The user opens the provider's page in any browser and enters a short code there. No password is typed into this program.
Addresses and codes from the provider are validated before they are printed to a terminal.

PKCE (RFC 7636) binds the device code to this process. Providers that do not support PKCE for this grant ignore its
parameters (RFC 6749 section 3.1). Keycloak requires PKCE here if the client requires it in the browser.
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
    """The device authorization response (RFC 8628 section 3.2). `expires_in` and `interval` are seconds.

    The user sees `user_code` and the two addresses. The client sends `device_code` to request the token.
    """

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float
    interval: float = 5.0
    verification_uri_complete: str | None = None


class DeviceLogin:
    """One login at the provider `issuer`, as the public client of `oauth`. The caller closes `oauth`."""

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
        """Request a device code, pass it to `show`, and wait until the user has entered it. Raises LoginFailed."""
        provider = await self._provider()
        token_endpoint, device_endpoint = self._endpoints(provider)
        if device_endpoint is None:
            raise LoginFailed(f"the provider {self._issuer} does not support the device login (RFC 8628)")
        verifier = generate_token(48)
        form = {
            "scope": self._scope,
            "code_challenge": create_s256_code_challenge(verifier),
            "code_challenge_method": "S256",
        }
        begun = await self._oauth.post(device_endpoint, form)
        if begun.status_code != 200:
            reason = _error_description(begun.status_code, error_code(begun))
            raise LoginFailed(f"the provider rejected the start of the login ({reason}); check the client id")
        code = read_answer(begun, DeviceCode)
        _require_showable(code)
        show(code)
        return await self._wait(code, token_endpoint, verifier)

    async def _wait(self, code: DeviceCode, token_endpoint: str, verifier: str) -> Tokens:
        """Poll for the token until the provider issues it or the code expires (RFC 8628 section 3.5).

        Raises LoginFailed.
        """
        ends = self._clock() + min(code.expires_in, _MAX_WAIT)
        interval = max(1.0, code.interval)
        while self._clock() + interval < ends:
            await self._sleep(interval)
            try:
                return await self._oauth.fetch_token(
                    token_endpoint, DEVICE, device_code=code.device_code, code_verifier=verifier
                )
            except ProviderSilent:
                # RFC 8628 section 3.5: after a connection timeout, poll less often. The code is still valid.
                interval += _SLOWER
            except TokenRefused as refused:
                match refused.error:
                    case "authorization_pending":
                        pass
                    case "slow_down":
                        interval += _SLOWER
                    case "access_denied":
                        raise LoginFailed("the login was denied at the provider") from None
                    case "expired_token":
                        break
                    case None:
                        status = refused.status
                        raise LoginFailed(f"the provider's response is invalid (HTTP {status})") from None
                    case _:
                        raise LoginFailed(f"the provider rejected the login (HTTP {refused.status})") from None
        raise LoginFailed("the code was not entered in time; log in again")

    async def refresh(self, refresh_token: str) -> Tokens:
        """Renew the tokens without the user (RFC 6749 section 6). Raises LoginFailed."""
        token_endpoint, _ = self._endpoints(await self._provider())
        try:
            return await self._oauth.refresh_token(token_endpoint, refresh_token)
        except TokenRefused as refused:
            if refused.error == "invalid_grant":
                raise LoginFailed("the login has expired; log in again") from None
            reason = _error_description(refused.status, refused.error)
            raise LoginFailed(f"the provider did not renew the login ({reason})") from None

    async def _provider(self) -> ProviderMetadata:
        try:
            check_endpoint(self._issuer, "the provider's address")
            return await read_metadata(self._issuer, self._document)
        except (ValueError, FetchFailed) as error:
            raise LoginFailed(str(error)) from None

    def _endpoints(self, provider: ProviderMetadata) -> tuple[str, str | None]:
        """Return (token endpoint, device authorization endpoint or None). Raises LoginFailed."""
        try:
            device_endpoint = provider.optional_endpoint("device_authorization_endpoint")
            return provider.endpoint("token_endpoint"), device_endpoint
        except FetchFailed as error:
            raise LoginFailed(str(error)) from None

    async def _document(self, url: str) -> bytes:
        answer = await self._oauth.get(url)
        if answer.status_code != 200:
            kind = DocumentMissing if answer.status_code == 404 else FetchFailed
            raise kind(f"{url} answered with status {answer.status_code} instead of 200")
        if len(answer.content) > MAX_DOCUMENT_BYTES:
            raise FetchFailed(f"the response of {url} has more than {MAX_DOCUMENT_BYTES} bytes")
        return answer.content


def _error_description(status: int, error: str | None) -> str:
    return f"HTTP {status}, {error}" if error else f"HTTP {status}"


def _require_showable(code: DeviceCode) -> None:
    """Raise LoginFailed if a text is not printable or too long, or if an address is not https.

    Control characters could manipulate the terminal. Plain http is accepted for loopback addresses.
    """
    shown = (code.user_code, code.verification_uri, code.verification_uri_complete or "")
    if not code.user_code or any(not text.isprintable() or len(text) > 500 for text in shown):
        raise LoginFailed("the provider's code is not printable or too long")
    try:
        check_endpoint(code.verification_uri, "the provider's page")
        if code.verification_uri_complete is not None:
            check_endpoint(code.verification_uri_complete.partition("?")[0], "the provider's page")
    except ValueError as error:
        raise LoginFailed(str(error)) from None
