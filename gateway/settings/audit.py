# SPDX-License-Identifier: Apache-2.0
"""Settings of the audit log: its buffer, the chain of digests over its records, retention and export."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import msgspec

from gateway.settings.env import PREFIX, PositiveSeconds, SecondsOrZero, Secret
from gateway.settings.sections import Count

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class AuditOtlp(msgspec.Struct, frozen=True, kw_only=True):
    """The continuous export of sealed audit records as OTLP logs."""

    endpoint: str | None = None
    """Address of the collector that receives sealed audit records as OTLP logs, without `/v1/logs`. It needs
    `LAKEGATE__AUDIT__SEAL_INTERVAL`. Without it, nothing is exported.
    """
    token: Secret | None = None
    """Bearer token sent to the collector."""
    timeout: PositiveSeconds = 10.0
    """Timeout in seconds of one request to the collector."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The audit trail.

    Only records of reads and refusals are buffered. All other records are durable before the response.
    """

    principal_share: Count = 2_500
    """Maximum number of such records of one principal, at most 2500: a quarter of all. Further requests of the
    principal get 429.
    """
    seal_interval: SecondsOrZero = 0.0
    """Time in seconds between two runs that seal audit records into a chain of blocks, which `lakegate audit verify`
    checks. 0: records are not sealed.
    """
    seal_key: Secret | None = None
    """Key of the chain. With it, an administrator of the database cannot compute valid blocks. All gateways and
    `lakegate audit verify` need the same key; it can be set only before the first block.
    """

    retention: SecondsOrZero = 0.0
    """Time in seconds for which audit records are kept, for example 34128000 (395 days). The records of a month are
    removed together, when all of them are older. 0: they are kept for ever.
    """
    refused_logins: SecondsOrZero = 0.0
    """Time in seconds for which refused logins (401) are counted by client address and reason. Each count then becomes
    one audit record. 0: refused logins are not recorded.
    """

    otlp: AuditOtlp = AuditOtlp()

    def keep(self) -> timedelta | None:
        """Return the retention time; None if records are kept for ever."""
        return timedelta(seconds=self.retention) if self.retention else None

    def key(self) -> bytes | None:
        """Return the key of the chain of digests; None if it has none."""
        return self.seal_key.reveal().encode() if self.seal_key else None

    def problems(self) -> list[str]:
        """Return the problems of the export settings, one line each."""
        if self.otlp.endpoint is None:
            return []
        found = []
        if not self.seal_interval:
            found.append(
                f"{PREFIX}AUDIT__OTLP__ENDPOINT needs {PREFIX}AUDIT__SEAL_INTERVAL: the export sends sealed blocks in "
                "their order"
            )
        address = urlsplit(self.otlp.endpoint)
        if address.scheme not in ("http", "https"):
            found.append(f"{PREFIX}AUDIT__OTLP__ENDPOINT must begin with https:// or http://")
        elif self.otlp.token and address.scheme == "http" and address.hostname not in _LOOPBACK:
            found.append(
                f"{PREFIX}AUDIT__OTLP__ENDPOINT must begin with https://, because OTLP__TOKEN would be sent in clear"
            )
        return found
