# SPDX-License-Identifier: Apache-2.0
"""Recognize tokens of trusted engines by the identities in the settings."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.identity.tokens import VerifiedToken
from gateway.settings.engines import TrustedEngine


def owner_properties(engines: Mapping[str, TrustedEngine]) -> frozenset[str]:
    """Return the case-folded names of all view properties that name an owner."""
    return frozenset(engine.owner_property.casefold() for engine in engines.values())


class EnginesByToken:
    """Recognizes trusted engines by provider and subject of a token."""

    def __init__(self, engines: Mapping[str, TrustedEngine]) -> None:
        self._engines = tuple(engines.values())

    def of(self, token: VerifiedToken) -> tuple[str, ...]:
        """Return the folded owner properties of the engines that the token proves, sorted; empty if it proves none.

        An exchanged token proves the engine that it names as its actor; any other token proves its own subject. An
        audience proves no engine: users hold tokens with the same one.
        """
        provider, _, subject = (token.engine or token.user_id).partition("~")
        properties = set()
        for engine in self._engines:
            known = engine.identities.get(provider)
            if known is not None and subject in known.subjects:
                properties.add(engine.owner_property.casefold())
        return tuple(sorted(properties))
