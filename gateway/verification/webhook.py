# SPDX-License-Identifier: Apache-2.0
"""Query a web server for its verdict on a change, by a signed request.

The signature follows Standard Webhooks 1.0 (https://www.standardwebhooks.com): an HMAC with SHA-256 over the id, the
time and the body. The response is `{"verdict": "approve", "reject" or "pending", "reasons": [...]}`. Any other response
is a failure of the verifier.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ssl
import time
import uuid
from collections.abc import Callable
from typing import Final

from gateway.verification.builtin.rule import Concern
from gateway.verification.port import ChangeKind, ProposedChange, Verdict
from gateway.verification.wire import JsonPost, decode_answer, encoded, question_of

EVERY_CHANGE: Final = Concern(
    kinds=frozenset(ChangeKind),
    object_types=frozenset({"table", "view", "generic_table", "namespace", "warehouse"}),
)

_PREFIX: Final = "whsec_"
_SHORTEST_KEY: Final = 24
_LONGEST_KEY: Final = 64
_LARGE: Final = 1_048_576
"""Bytes of a body that is signed in a thread. A smaller one takes less than a millisecond."""


def signing_key(secret: str) -> bytes:
    """Return the key in a secret `whsec_<base64>` of 24 to 64 bytes. Raises ValueError, whose message lacks the
    secret.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
        raise ValueError(
            f"the secret of a webhook must be {_PREFIX} with {_SHORTEST_KEY} to {_LONGEST_KEY} bytes in base64"
        )
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`."""
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode(), hashlib.sha256)
    signed.update(body)
    return f"v1,{base64.b64encode(signed.digest()).decode()}"


class Webhook:
    """A verifier that is a web server.

    If `documents` is set, the request contains the metadata documents and the updates. `key` is the key of the
    signature.
    """

    def __init__(
        self,
        name: str,
        url: str,
        key: bytes,
        *,
        timeout: float,
        connections: int,
        concern: Concern = EVERY_CHANGE,
        documents: bool = True,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._key = key
        self._concern = concern
        self._documents = documents
        self._clock = clock
        self._post = JsonPost(
            url, timeout=timeout, connections=connections, headers={"User-Agent": "lakegate"}, tls=tls
        )

    @property
    def name(self) -> str:
        """Return the name in the settings."""
        return self._name

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True if, by the settings, changes of this kind on this type of objects are sent to this server."""
        return self._concern.covers(change_kind, object_type)

    async def verify(self, change: ProposedChange) -> Verdict:
        """Send the change and return the server's verdict.

        Raises InvalidAnswer, QuestionTooLarge, TimeoutError, and the errors of the connection.
        """
        body = encoded(question_of(change, documents=self._documents))
        # A new id for each query: the server may use it to detect a request that was recorded and sent again.
        message_id = f"msg_{uuid.uuid4().hex}"
        timestamp = int(self._clock())
        signing = (self._key, message_id, timestamp, body)
        signed = signature(*signing) if len(body) < _LARGE else await asyncio.to_thread(signature, *signing)
        headers = {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": signed}
        return decode_answer(await self._post(body, headers))

    async def close(self) -> None:
        """Close the connections."""
        await self._post.close()
