# SPDX-License-Identifier: Apache-2.0
"""Request tokens for Lakegate itself as an OAuth client: for the login from a terminal, and for the embedded stack.

Authlib builds the requests: grants, client authentication and refresh. It accepts any JSON object with a status below
500 as a token, even that of a redirect. Therefore this module first checks the status, length and fields of each
response.

The login from a terminal uses the device authorization grant (RFC 8628) of a configured provider. The user opens the
provider's page in any browser and enters a short code there. No password is typed into this program. Addresses and
codes from the provider are validated before they are printed to a terminal.

PKCE (RFC 7636) binds the device code to this process. Providers that do not support PKCE for this grant ignore its
parameters (RFC 6749 section 3.1). Keycloak requires PKCE here if the client requires it in the browser.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import httpx2
import msgspec
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from gateway.identity.discovery import (
    MAX_DOCUMENT_BYTES,
    DocumentMissing,
    FetchFailed,
    ProviderMetadata,
    check_endpoint,
    read_metadata,
)

_MAX_ANSWER: Final = 65_536
_LONGEST_LIFE: Final = 10.0 * 366 * 86_400
#: Characters of an access token (RFC 6749 section A.12) without the blank: the token is printed and sent in a header.
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)
Answer = TypeVar("Answer")


class LoginFailed(Exception):
    """No token was issued. The text gives the reason and never contains a token."""


class ProviderSilent(LoginFailed):
    """The provider did not respond. The request may be repeated."""


class TokenRefused(LoginFailed):
    """The provider rejected a token request. `status` is the HTTP status of the response.

    `error` is its error code (RFC 6749 section 5.2), or None if the response has none.
    """

    def __init__(self, status: int, error: str | None) -> None:
        super().__init__(f"the provider issued no token (HTTP {status}{f', {error}' if error else ''})")
        self.status = status
        self.error = error


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of a login. `expires_at` is the expiry of the access token in seconds since 1970."""

    access_token: str
    expires_at: float
    refresh_token: str | None = None


class _Granted(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: float = 300.0
    refresh_token: str | None = None


class _Refused(msgspec.Struct, frozen=True):
    error: str


class OAuthClient:
    """Sends the token requests of one client. Use it as `async with`. A client without a secret is a public client.

    `tls` has the certificates to trust, `seconds` is the timeout of a request, and `transport` replaces the network.
    """

    def __init__(
        self,
        client_id: str,
        *,
        client_secret: str | None = None,
        tls: ssl.SSLContext | None = None,
        seconds: float = 15.0,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.client_id = client_id
        self._clock = clock
        # RFC 6749 section 2.3.1: a public client sends its id in the form, a confidential one its secret in a header.
        self._client = AsyncOAuth2Client(
            client_id=client_id,
            client_secret=client_secret,
            token_endpoint_auth_method="none" if client_secret is None else "client_secret_basic",
            timeout=seconds,
            # A redirect or a proxy from the environment could disclose a code or a secret to another host.
            follow_redirects=False,
            trust_env=False,
            verify=True if tls is None else tls,
            transport=transport,
        )
        self._client.register_compliance_hook("access_token_response", _require_token)
        self._client.register_compliance_hook("refresh_token_response", _require_token)

    async def __aenter__(self) -> OAuthClient:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._client.__aexit__(*exc)

    async def fetch_token(self, url: str, grant_type: str, **fields: str) -> Tokens:
        """Request a token from `url` with the grant `grant_type` and its form `fields`.

        Raises ProviderSilent, TokenRefused, and LoginFailed for an invalid response.
        """
        return self._tokens(await _call(self._client.fetch_token(url, grant_type=grant_type, **fields)))

    async def refresh_token(self, url: str, refresh_token: str) -> Tokens:
        """Request a new token with a refresh token (RFC 6749 section 6).

        If the provider sends no new refresh token, the old one stays valid. Raises the errors of `fetch_token`.
        """
        return self._tokens(await _call(self._client.refresh_token(url, refresh_token=refresh_token)))

    async def get(self, url: str) -> httpx2.Response:
        """GET `url` without a token. Raises ProviderSilent, or LoginFailed for an unreadable response."""
        return await _call(self._client.request("GET", url, withhold_token=True, headers=_JSON))

    async def post(self, url: str, form: dict[str, str]) -> httpx2.Response:
        """POST a form with the client id, without a token. Raises ProviderSilent, or LoginFailed for an unreadable
        response.
        """
        form = {"client_id": self.client_id, **form}
        return await _call(self._client.request("POST", url, data=form, withhold_token=True, headers=_JSON))

    def _tokens(self, token: dict[str, Any]) -> Tokens:
        granted = msgspec.convert(token, _Granted)
        return Tokens(granted.access_token, self._clock() + granted.expires_in, granted.refresh_token)


_JSON: Final = {"Accept": "application/json"}


def read_answer(answer: httpx2.Response, kind: type[Answer]) -> Answer:
    """Decode the body of a response as `kind`. Raises LoginFailed if it is too long or malformed."""
    if len(answer.content) > _MAX_ANSWER:
        raise LoginFailed("the provider's response is too long")
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise LoginFailed(f"the provider's response is invalid (HTTP {answer.status_code})") from None


def error_code(answer: httpx2.Response) -> str | None:
    """Return the error code of a rejected request, or None if it has no valid one.

    No other part of the response may be shown to the user.
    """
    try:
        error = read_answer(answer, _Refused).error
    except LoginFailed:
        return None
    return error if _ERROR_CODE.fullmatch(error) else None


def _require_token(answer: httpx2.Response) -> httpx2.Response:
    """Return the response if it contains a valid bearer token (RFC 6749 section 5.1).

    Raises TokenRefused for any status other than 200, and LoginFailed for an invalid token.
    """
    if answer.status_code != httpx2.codes.OK:
        raise TokenRefused(answer.status_code, error_code(answer))
    granted = read_answer(answer, _Granted)
    if granted.token_type.lower() != "bearer":
        raise LoginFailed("the provider issued a token that is not a bearer token")
    if not _SENDABLE.fullmatch(granted.access_token) or not 0 <= granted.expires_in <= _LONGEST_LIFE:
        raise LoginFailed("the provider issued a token with invalid characters or an invalid lifetime")
    return answer


async def _call(call: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        return await call
    except httpx2.HTTPError as error:
        raise ProviderSilent(f"the provider did not answer: {type(error).__name__}") from None
    # Authlib also converts optional fields such as `expires_at`, and raises the error of a failed conversion.
    except (OAuthError, ValueError, TypeError, OverflowError, RecursionError):
        raise LoginFailed("the provider's response is invalid") from None


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
        """Request a device code, show it to the user by `show`, and wait until the user has entered it. Raises
        LoginFailed.
        """
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
    """Raise LoginFailed if a text is not printable or is too long, or if an address is not https.

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
