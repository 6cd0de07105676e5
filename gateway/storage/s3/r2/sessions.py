# SPDX-License-Identifier: Apache-2.0
"""Create temporary credentials of Cloudflare R2 (Cloudflare API, "Create Temporary Access Credentials").

https://developers.cloudflare.com/api/resources/r2/subresources/temporary_credentials/methods/create/
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.s3.credential import S3CloudflareR2, S3TemporaryCredential
from gateway.storage.s3.sessions import LatencyCallback, Measured, SessionRequests, malformed, temporary

__all__ = ["R2Sessions"]

API: Final = "https://api.cloudflare.com/client/v4"


class R2Sessions:
    """Creates temporary credentials. `api` is the address of Cloudflare's API, which tests replace."""

    def __init__(self, requests: SessionRequests, *, on_latency: LatencyCallback, api: str = API) -> None:
        self._requests = requests
        self._on_latency = on_latency
        self._api = api

    async def make(self, credential: S3CloudflareR2, scope: str, *, seconds: int) -> S3TemporaryCredential:
        """Return a credential with the rights of `scope` (`build_r2_scope`) for `seconds`.

        Raises ShortTermCredentialError.
        """
        fields: dict[str, Any] = json.loads(scope)
        # A request without prefixes returns a credential for the whole bucket.
        if fields.keys() != {"bucket", "permission", "prefixes"} or not all(fields.values()):
            raise ValueError("a scope with a bucket, a permission and prefixes is required")
        body = {**fields, "parentAccessKeyId": credential.access_key_id, "ttlSeconds": seconds}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        # The response has no expiry, so it is computed from the time before the request, which is never too late.
        requested_at = datetime.now(UTC)
        with Measured(self._on_latency):
            answer = await self._requests.post(
                f"{self._api}/accounts/{credential.account_id}/r2/temp-access-credentials",
                headers={"authorization": f"Bearer {credential.token}", "content-type": "application/json"},
                body=lambda: text,
                route=None,
            )
            if answer.status >= 400:
                raise _refusal(answer.status)
            return temporary(_fields(answer.body, requested_at + timedelta(seconds=seconds)), seconds)


def _fields(body: bytes, expiry: datetime) -> dict[str, Any]:
    """Return the response of Cloudflare with the field names of an STS response."""
    try:
        answer: Any = json.loads(body)
        if answer["success"] is not True:
            raise malformed()
        found = answer["result"]
        return {
            "Credentials": {
                "AccessKeyId": found["accessKeyId"],
                "SecretAccessKey": found["secretAccessKey"],
                "SessionToken": found["sessionToken"],
                "Expiration": expiry,
            }
        }
    except (ValueError, TypeError, LookupError):
        raise malformed() from None


def _refusal(status: int) -> ShortTermCredentialError:
    if status in {401, 403}:
        return ShortTermCredentialError(
            "The gateway could not get a temporary credential: Cloudflare refused the API token of the warehouse. The "
            "token needs the permission to edit R2 storage, and must be the parent of the access key",
            "credential",
        )
    return ShortTermCredentialError(
        "The gateway could not get a temporary credential: Cloudflare refused the request. Check the account, the "
        "bucket and the access key of the warehouse",
        "refused",
    )
