# SPDX-License-Identifier: Apache-2.0
"""Build what depends on the engines in the settings: which tokens identify an engine, and how it is probed.

A probe tests whether the engine enforces row filters, masks and withheld columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.access.engine_probes import ProbeRules
from gateway.identity.tokens import VerifiedToken
from gateway.settings import certificate_sources
from gateway.settings.engines import EngineProbes, TrustedEngine
from gateway.tls import trusted
from gateway.verification.engine_reads import EngineAddress, EngineReads, Reader


def owner_properties(engines: Mapping[str, TrustedEngine]) -> frozenset[str]:
    """Return the case-folded names of all view properties that contain an owner."""
    return frozenset(engine.owner_property.casefold() for engine in engines.values())


class EnginesByToken:
    """Recognizes trusted engines by the provider and subject of a token."""

    def __init__(self, engines: Mapping[str, TrustedEngine]) -> None:
        self._engines = tuple(engines.values())

    def of(self, token: VerifiedToken) -> tuple[str, ...]:
        """Return the folded owner properties of the engines that the token identifies, sorted; empty if there are none.

        An exchanged token identifies the engine that is its actor; any other token identifies its own subject. An
        audience identifies no engine, because users have tokens with the same audience.
        """
        provider, _, subject = (token.engine or token.user_id).partition("~")
        properties = set()
        for engine in self._engines:
            known = engine.identities.get(provider)
            if known is not None and subject in known.subjects:
                properties.add(engine.owner_property.casefold())
        return tuple(sorted(properties))


def probe_rules(settings: EngineProbes) -> ProbeRules:
    """Return the rules that tell which engines need a probe."""
    return ProbeRules(required=settings.required, vouched=frozenset(settings.vouched))


def engine_reads(settings: EngineProbes) -> EngineReads:
    """Return the object that reads canary tables through the engines whose addresses are in the settings."""
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
