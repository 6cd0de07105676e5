# SPDX-License-Identifier: Apache-2.0
"""Which tokens are of a trusted engine, from the settings (`lakekeeper.md` 5.5)."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.identity.tokens import VerifiedToken
from gateway.settings_engines import TrustedEngine


def owner_properties(engines: Mapping[str, TrustedEngine]) -> frozenset[str]:
    """The folded names of all properties that name a view's owner."""
    return frozenset(engine.owner_property.casefold() for engine in engines.values())


class EnginesByToken:
    """Tells engines by the tokens they come with."""

    def __init__(self, engines: Mapping[str, TrustedEngine]) -> None:
        self._engines = tuple(engines.values())

    def of(self, token: VerifiedToken) -> tuple[tuple[str, ...], bool]:
        """(the owner properties of the engines that the token is of, whether it names one of them as its subject).

        A token of ours is of the engine that asked for it, which it names; its audience is this server.
        """
        if not self._engines:
            return (), False
        idp, _, subject = (token.engine or token.user_id).partition("~")
        audiences = frozenset(token.audiences) if token.engine is None else frozenset()
        properties, by_name = set(), False
        for engine in self._engines:
            known = engine.identities.get(idp)
            if known is None:
                continue
            named = subject in known.subjects
            if named or audiences.intersection(known.audiences):
                properties.add(engine.owner_property.casefold())
                by_name = by_name or named
        return tuple(sorted(properties)), by_name
