# SPDX-License-Identifier: Apache-2.0
"""Get tokens of Entra ID for the gateway's own access, and user delegation keys, by which signatures are made.

azure-identity makes the tokens, because it knows every kind of identity in Azure and is maintained by Microsoft. It
blocks, so its calls run in a thread pool of this object: a hanging server must not occupy the threads of other work. It
is imported there for the first token, because most gateways have no warehouse of this store.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from xml.etree import ElementTree

from gateway.storage.adls.credential import AdlsClientCredentials, AdlsCredential, BearerToken
from gateway.storage.adls.profile import HOSTS, MAX_SECONDS_ELSEWHERE, AdlsProfile
from gateway.storage.adls.sas import VERSION, DelegationKey
from gateway.storage.adls.stores import blob_address
from gateway.storage.errors import ShortTermCredentialError, StorageAnswerMalformed, StorageSessionUnavailable

__all__ = ["Delegation"]

SCOPE: Final = "https://storage.azure.com/.default"
REQUEST_SECONDS: Final = 5.0
TOTAL_SECONDS: Final = 10.0
KEY_LIFE: Final = timedelta(days=7)
# A key is not reused after this time, because an administrator may have revoked all keys of the account.
_REUSED_SECONDS: Final = 900.0
_CLOCK: Final = timedelta(minutes=5)
MAX_THREADS: Final = 8
MAX_CACHED: Final = 128
MAX_ANSWER: Final = 65536

_T = TypeVar("_T")

LatencyCallback = Callable[[float, str], None]

_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)


def _no_metrics(_seconds: float, _outcome: str) -> None:
    return None


class Delegation:
    """Gets tokens and delegation keys. Close it with `close`.

    Callers have checked that the warehouse may use the credential (`identity_refusal`). `on_latency` is called on the
    event loop with the seconds of each request for a delegation key and its outcome. `blob_endpoint` and `authority`
    are the operator's addresses of the blob service and of Entra ID.
    """

    def __init__(
        self,
        *,
        on_latency: LatencyCallback = _no_metrics,
        total_seconds: float = TOTAL_SECONDS,
        ca_bundle: str | None = None,
        blob_endpoint: str | None = None,
        authority: str | None = None,
    ) -> None:
        self._on_latency = on_latency
        self._total_seconds = total_seconds
        self._ca_bundle = ca_bundle
        self._blob_endpoint = blob_endpoint
        self._authority = authority
        self._identities: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._keys: OrderedDict[tuple[str, str], tuple[DelegationKey, float]] = OrderedDict()
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="adls-tokens")

    async def token(self, profile: AdlsProfile, credential: AdlsCredential) -> BearerToken:
        """Return a token of the credential's identity for Azure storage. Raises ShortTermCredentialError."""
        return await self._in_thread(self._token, profile, credential)

    async def key(self, profile: AdlsProfile, credential: AdlsCredential) -> DelegationKey:
        """Return a delegation key of the account, valid for about as long as the store allows.

        Raises ShortTermCredentialError.
        """
        place = (profile.server, credential.digest)
        known = self._keys.get(place)
        if known is not None and time.monotonic() - known[1] < _REUSED_SECONDS:
            self._keys.move_to_end(place)
            return known[0]
        start = datetime.now(UTC) - _CLOCK
        life = KEY_LIFE if profile.host in HOSTS else timedelta(seconds=MAX_SECONDS_ELSEWHERE)
        started, outcome = time.monotonic(), "failed"
        try:
            made = await self._in_thread(self._key, profile, credential, start, start + life)
            outcome = "ok"
        except ShortTermCredentialError as error:
            outcome = error.reason
            raise
        finally:
            self._on_latency(time.monotonic() - started, outcome)
        self._keys[place] = (made, started)
        while len(self._keys) > MAX_CACHED:
            self._keys.popitem(last=False)
        return made

    def close(self) -> None:
        """Shut down the threads. Calls in progress end by their own timeouts."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, call: Callable[..., _T], *arguments: Any) -> _T:
        try:
            async with asyncio.timeout(self._total_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, _guarded, call, *arguments)
        except TimeoutError:
            raise _unreachable() from None

    def _token(self, profile: AdlsProfile, credential: AdlsCredential) -> BearerToken:
        found = self._identity(profile, credential).get_token(SCOPE)
        return BearerToken(found.token, datetime.fromtimestamp(found.expires_on, UTC))

    def _identity(self, profile: AdlsProfile, credential: AdlsCredential) -> Any:
        place = (profile.authority_host, credential.digest)
        known = self._identities.get(place)
        if known is None:
            known = self._identities[place] = self._new_identity(profile, credential)
            while len(self._identities) > MAX_CACHED:
                self._identities.popitem(last=False)
        return known

    def _new_identity(self, profile: AdlsProfile, credential: AdlsCredential) -> Any:
        import azure.identity

        # The log of the library contains the servers' responses. `_guarded` reports the errors.
        logging.getLogger("azure").setLevel(logging.CRITICAL)
        limits: dict[str, Any] = {"connection_timeout": REQUEST_SECONDS, "read_timeout": REQUEST_SECONDS}
        if self._ca_bundle is not None:
            limits["connection_verify"] = self._ca_bundle
        if isinstance(credential, AdlsClientCredentials):
            return azure.identity.ClientSecretCredential(
                credential.tenant_id,
                credential.client_id,
                credential.client_secret,
                authority=self._authority or profile.authority_host,
                disable_instance_discovery=True,
                **limits,
            )
        # Only identities of machines are tried: a developer's own login must not become the identity of the gateway.
        try:
            return azure.identity.WorkloadIdentityCredential(**limits)
        except ValueError:  # this machine is not a pod with a workload identity
            return azure.identity.ManagedIdentityCredential(**limits)

    def _key(
        self, profile: AdlsProfile, credential: AdlsCredential, start: datetime, expiry: datetime
    ) -> DelegationKey:
        token = self._token(profile, credential)
        import requests

        blob = blob_address(profile, self._blob_endpoint)
        times = [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (start, expiry)]
        body = (
            "<?xml version='1.0' encoding='utf-8'?>"
            f"<KeyInfo><Start>{times[0]}</Start><Expiry>{times[1]}</Expiry></KeyInfo>"
        )
        with requests.post(
            f"{blob}/?restype=service&comp=userdelegationkey",
            data=body.encode(),
            headers={
                "authorization": f"Bearer {token.token}",
                "x-ms-version": VERSION,
                "content-type": "application/xml",
            },
            timeout=REQUEST_SECONDS,
            allow_redirects=False,
            stream=True,
            verify=self._ca_bundle or True,
        ) as answer:
            text = answer.raw.read(MAX_ANSWER, decode_content=True)
        if answer.status_code in (401, 403):
            raise ShortTermCredentialError(
                "Azure storage refused a user delegation key for the credential of the warehouse. Its identity needs "
                "the role Storage Blob Delegator or Storage Blob Data Contributor",
                "refused",
            )
        if answer.status_code >= 500:
            raise _unreachable()
        if answer.status_code != 200:
            raise _malformed()
        return _read_key(text)


def _read_key(text: bytes) -> DelegationKey:
    """Parse the response of "Get User Delegation Key"."""
    if b"<!" in text:
        raise _malformed()
    try:
        root = ElementTree.fromstring(text.decode("utf-8-sig"))  # noqa: S314 - no document type, as checked above
        found = {child.tag: child.text or "" for child in root}
        key = DelegationKey(
            object_id=found["SignedOid"],
            tenant_id=found["SignedTid"],
            start=found["SignedStart"],
            expiry=found["SignedExpiry"],
            service=found["SignedService"],
            version=found["SignedVersion"],
            value=base64.b64decode(found["Value"], validate=True),
        )
    except (ElementTree.ParseError, UnicodeDecodeError, KeyError, binascii.Error):
        raise _malformed() from None
    texts = (key.object_id, key.tenant_id, key.service, key.version)
    if not all(_TIME.fullmatch(time) for time in (key.start, key.expiry)) or not all(
        text and text.isascii() and text.isprintable() for text in texts
    ):
        raise _malformed()
    return key


def _guarded(call: Callable[..., _T], *arguments: Any) -> _T:
    """Run `call`, and replace errors of the libraries by ShortTermCredentialError: their texts contain the servers'
    responses.
    """
    import azure.core.exceptions
    import azure.identity
    import requests

    try:
        return call(*arguments)
    except ShortTermCredentialError:
        raise
    except azure.core.exceptions.ClientAuthenticationError:
        raise ShortTermCredentialError(
            "Entra ID refused the credential of the warehouse; set a valid one", "credential"
        ) from None
    except azure.identity.CredentialUnavailableError:
        raise ShortTermCredentialError("The gateway has no identity in Azure", "credential") from None
    except (azure.core.exceptions.ServiceRequestError, azure.core.exceptions.ServiceResponseError):
        raise _unreachable() from None
    except requests.RequestException:
        raise _unreachable() from None
    except (azure.core.exceptions.AzureError, ValueError, TypeError, LookupError, AttributeError):
        raise _malformed() from None


def _unreachable() -> StorageSessionUnavailable:
    return StorageSessionUnavailable(
        "The gateway could not get a temporary credential: Azure's servers did not answer in time", "unreachable"
    )


def _malformed() -> StorageAnswerMalformed:
    return StorageAnswerMalformed(
        "The gateway could not get a temporary credential: the answer of Azure's servers is not usable", "malformed"
    )
