# SPDX-License-Identifier: Apache-2.0
"""Everybody who vouches for callers, from the settings."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from gateway.identity.fetch import HttpFetcher
from gateway.identity.keys import KeyRing
from gateway.identity.router import Link, OpenIdLink, TokenRouter
from gateway.identity.tokens import TokenRules
from gateway.settings import Settings
from gateway.settings_identity import OpenIdProvider
from gateway.telemetry.health import Check
from gateway.telemetry.metrics import Metrics
from gateway.trust import Trust


@dataclass(frozen=True, slots=True)
class Identity:
    """What judges tokens, and how each party that vouches for callers is asked how it is."""

    router: TokenRouter
    checks: dict[str, Check]


async def open_identity(settings: Settings, trust: Trust, metrics: Metrics, stack: AsyncExitStack) -> Identity:
    """All links of a process, each with keys and a memory of its own."""
    fetch = await stack.enter_async_context(HttpFetcher(tls=trust.context))
    links: list[Link] = []
    checks: dict[str, Check] = {}
    memory = settings.memory
    for id, provider in settings.identity_providers().items():
        keys = KeyRing(
            provider.uri, fetch, refresh_seconds=provider.keys_refresh, max_age_seconds=provider.keys_max_age
        )
        stack.push_async_callback(keys.aclose)
        if provider.require_connected_on_startup:
            await keys.check()
        rules = _rules(id, provider)
        links.append(OpenIdLink(rules, keys, entries=memory.tokens, seconds=memory.token_seconds, observer=metrics))
        checks[id] = keys.check
    return Identity(TokenRouter(links), checks)


def _rules(id: str, provider: OpenIdProvider) -> TokenRules:
    return TokenRules(
        idp_id=id,
        issuer=provider.uri,
        audiences=frozenset(provider.audience),
        project_audiences=provider.audience_projects(),
        additional_issuers=frozenset(provider.additional_issuers),
        required_scope=provider.scope,
        subject_claims=provider.subject_claims,
        groups_claim=provider.roles_claim,
        display_name_template=provider.display_name_template,
    )
