# SPDX-License-Identifier: Apache-2.0
"""Build the parts of probes from the settings."""

from __future__ import annotations

from gateway.access.engine_probes import ProbeRules
from gateway.settings import certificate_sources
from gateway.settings.engine_probes import EngineProbes
from gateway.tls import trusted
from gateway.verification.engine_reads import EngineAddress, EngineReads, Reader


def probe_rules(settings: EngineProbes) -> ProbeRules:
    """Return which engines need a probe."""
    return ProbeRules(required=settings.required, vouched=frozenset(settings.vouched))


def engine_reads(settings: EngineProbes) -> EngineReads:
    """Return the reader of canaries, with the addresses of the settings."""
    addresses = [
        EngineAddress(
            engine=each.identity,
            url=each.url,
            kind=each.kind,
            user=Reader(each.user, each.user_token.reveal() if each.user_token else None),
            control=Reader(each.control, each.control_token.reveal() if each.control_token else None),
            catalog=each.catalog,
            warehouse_id=each.warehouse,
        )
        for each in settings.engines.values()
    ]
    return EngineReads(addresses, trusted(*certificate_sources()).context if addresses else None)
