# SPDX-License-Identifier: Apache-2.0
"""Get access tokens from Google's authorization servers: tokens of the gateway's own identity, and downscoped ones.

google-auth makes them, because it knows every kind of identity in Google's cloud and is maintained by Google. It
blocks, so its calls run in a thread pool of this object: a hanging server must not occupy the threads of other work. It
is imported there for the first token, because most gateways have no warehouse of this store.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from gateway.storage.errors import ShortTermCredentialError, StorageAnswerMalformed, StorageSessionUnavailable
from gateway.storage.gcs.credential import TOKEN_URI, GcsCredential, GcsServiceAccountKey, GcsToken

__all__ = ["GcsTokens"]

EXCHANGE_URI: Final = "https://sts.googleapis.com/v1/token"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
REQUEST_SECONDS: Final = 5.0
TOTAL_SECONDS: Final = 10.0
MAX_THREADS: Final = 8
MAX_OWN: Final = 128
# A downscoped token ends with its source token, so a source token with less time than this is replaced.
_FRESH: Final = timedelta(minutes=59)
_USABLE: Final = timedelta(minutes=5)
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - RFC 8693, section 3

LatencyCallback = Callable[[float, str], None]


def _no_metrics(_seconds: float, _outcome: str) -> None:
    return None


class GcsTokens:
    """Gets tokens. Close it with `close`.

    Callers have checked that the warehouse may use the credential (`identity_refusal`). `on_latency` is called on the
    event loop with the seconds of each exchange and its outcome. `address` is the operator's address of both services:
    the one that issues tokens of service accounts, and the one that exchanges tokens.
    """

    def __init__(
        self,
        *,
        on_latency: LatencyCallback = _no_metrics,
        total_seconds: float = TOTAL_SECONDS,
        address: str | None = None,
        ca_bundle: str | None = None,
    ) -> None:
        self._on_latency = on_latency
        self._total_seconds = total_seconds
        self._token_uri = TOKEN_URI if address is None else f"{address}/token"
        self._exchange_uri = EXCHANGE_URI if address is None else f"{address}/v1/token"
        self._ca_bundle = ca_bundle
        self._own: OrderedDict[str, GcsToken] = OrderedDict()
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="gcs-tokens")

    async def own(self, credential: GcsCredential, *, least: timedelta = _USABLE) -> GcsToken:
        """Return a token of the credential's identity with all its rights, valid for at least `least`. It is never
        vended.

        Raises ShortTermCredentialError.
        """
        known = self._own.get(credential.digest)
        if known is not None and known.expires_at - datetime.now(UTC) >= least:
            self._own.move_to_end(credential.digest)
            return known
        made = self._own[credential.digest] = await self._in_thread(self._fetch, credential)
        while len(self._own) > MAX_OWN:
            self._own.popitem(last=False)
        return made

    async def downscoped(self, credential: GcsCredential, boundary: str, *, seconds: int) -> GcsToken:
        """Return a token with the rights of `boundary`. It expires with the token that it is made from, which is new.

        If the token is valid for longer than `seconds`, with five minutes for differing clocks, it is refused. Raises
        ShortTermCredentialError.
        """
        if not boundary.strip():
            raise ValueError("an access boundary is required: without one the token has all rights of the identity")
        started, outcome = time.monotonic(), "failed"
        try:
            source = await self.own(credential, least=_FRESH)
            made = await self._in_thread(self._exchange, source, boundary)
            if isinstance(credential, GcsServiceAccountKey):
                made = msgspec.structs.replace(made, project=credential.key.project_id)
            _require_short(made, seconds)
            outcome = "ok"
            return made
        except ShortTermCredentialError as error:
            outcome = error.reason
            raise
        finally:
            self._on_latency(time.monotonic() - started, outcome)

    async def exchanged(self, token: GcsToken, boundary: str) -> GcsToken | None:
        """Exchange a downscoped token for one with another boundary. Return None if the service refuses."""
        try:
            return await self._in_thread(self._exchange, token, boundary)
        except ShortTermCredentialError as error:
            if error.reason == "refused":
                return None
            raise

    def close(self) -> None:
        """Shut down the threads. Calls in progress end by their own timeouts."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, call: Callable[..., GcsToken], *arguments: Any) -> GcsToken:
        try:
            async with asyncio.timeout(self._total_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, _guarded, call, *arguments)
        except TimeoutError:
            raise _unreachable() from None

    def _fetch(self, credential: GcsCredential) -> GcsToken:
        import google.auth
        import google.oauth2.service_account

        identity: Any
        if isinstance(credential, GcsServiceAccountKey):
            fields = msgspec.to_builtins(credential.key) | {"token_uri": self._token_uri}
            identity = google.oauth2.service_account.Credentials.from_service_account_info(fields, scopes=[SCOPE])
        else:
            identity, _ = google.auth.default(scopes=[SCOPE])
        identity.refresh(self._transport())
        return _token(identity.token, identity.expiry)

    def _exchange(self, source: GcsToken, boundary: str) -> GcsToken:
        import google.oauth2.sts

        client = google.oauth2.sts.Client(self._exchange_uri)
        answer = client.exchange_token(
            request=self._transport(),
            grant_type="urn:ietf:params:oauth:grant-type:token-exchange",
            subject_token=source.token,
            subject_token_type=_ACCESS_TOKEN,
            requested_token_type=_ACCESS_TOKEN,
            additional_options=msgspec.json.decode(boundary),
        )
        # If the source is a token of a service account, the response has no lifetime: both tokens end at the same time.
        lifetime = answer.get("expires_in")
        ends = source.expires_at
        if lifetime is not None:
            ends = min(ends, datetime.now(UTC) + timedelta(seconds=int(lifetime)))
        return _token(answer.get("access_token"), ends)

    def _transport(self) -> Any:
        import google.auth.transport.requests
        import requests

        session = requests.Session()
        if self._ca_bundle is not None:
            session.verify = self._ca_bundle
        transport = google.auth.transport.requests.Request(session)

        def call(*arguments: Any, **options: Any) -> Any:
            return transport(*arguments, **options | {"timeout": REQUEST_SECONDS, "allow_redirects": False})

        return call


def _guarded(call: Callable[..., GcsToken], *arguments: Any) -> GcsToken:
    """Run `call`, and replace errors of the library by ShortTermCredentialError: their texts contain the servers'
    responses.
    """
    import google.auth.exceptions

    try:
        return call(*arguments)
    except ShortTermCredentialError:
        raise
    except google.auth.exceptions.TransportError:
        raise _unreachable() from None
    except google.auth.exceptions.DefaultCredentialsError:
        raise ShortTermCredentialError("The gateway has no identity in Google's cloud", "credential") from None
    except google.auth.exceptions.OAuthError:
        raise ShortTermCredentialError(
            "Google's authorization server refused the token exchange with the credential of the warehouse; check "
            "that the service account is enabled and that the bucket has uniform bucket-level access",
            "refused",
        ) from None
    except google.auth.exceptions.RefreshError as error:
        if error.retryable:
            raise _unreachable() from None
        raise ShortTermCredentialError(
            "Google's authorization server refused the credential of the warehouse; set a valid one", "credential"
        ) from None
    except (google.auth.exceptions.GoogleAuthError, ValueError, TypeError, LookupError, AttributeError):
        # The library's exceptions for a response of an unexpected shape are not documented.
        raise _malformed() from None


def _token(token: object, expiry: object) -> GcsToken:
    if not isinstance(token, str) or not token or not token.isascii() or not isinstance(expiry, datetime):
        raise _malformed()
    # The library returns times in UTC without a time zone.
    return GcsToken(token=token, expires_at=expiry.replace(tzinfo=UTC) if expiry.tzinfo is None else expiry)


def _require_short(token: GcsToken, seconds: int) -> None:
    if token.expires_at > datetime.now(UTC) + timedelta(seconds=seconds, minutes=5):
        raise ShortTermCredentialError(
            "The storage issued a credential that lives longer than requested, so it was discarded", "too-long"
        )


def _unreachable() -> StorageSessionUnavailable:
    return StorageSessionUnavailable(
        "The gateway could not get a temporary credential: Google's authorization server did not answer in time",
        "unreachable",
    )


def _malformed() -> StorageAnswerMalformed:
    return StorageAnswerMalformed(
        "The gateway could not get a temporary credential: the answer of Google's authorization server contains no "
        "usable token",
        "malformed",
    )
