# SPDX-License-Identifier: Apache-2.0
"""Create the token verifiers from the settings: OpenID providers and Kubernetes clusters."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gateway.access.actor import Actor
from gateway.assembly.engines import EnginesByToken
from gateway.identity.binding import ProofMethod
from gateway.identity.discovery import HttpFetcher
from gateway.identity.keys import KeyRing
from gateway.identity.kubernetes import ApiServer, ClusterRules, ServiceAccounts, issuer_in
from gateway.identity.possession import CertificateHeader, PossessionRules
from gateway.identity.router import Link, OpenIdLink, TokenRouter
from gateway.identity.sign_in import SignInProvider
from gateway.identity.tokens import TokenRules, VerifiedToken
from gateway.settings import Settings
from gateway.settings.bound_tokens import BoundTokens
from gateway.settings.identity import KubernetesCluster, OpenIdProvider
from gateway.telemetry.health import Check
from gateway.telemetry.metrics import Metrics
from gateway.tls import Trust


@dataclass(frozen=True, slots=True)
class Identity:
    """The token verifier, the health check of each provider and cluster by id, and the sign-in if it is configured.

    `possession` checks the proofs of bound tokens. If it is None, the verifier refuses bound tokens.
    """

    router: TokenRouter
    checks: dict[str, Check]
    sign_in: SignInProvider | None
    possession: PossessionRules | None


async def open_identity(settings: Settings, trust: Trust, metrics: Metrics, stack: AsyncExitStack) -> Identity:
    """Create the token verifiers of a process. Each has its own key set and token cache.

    Raises the ValueError of `_service_accounts`, and the errors of a provider that must be available at startup.
    """
    fetch = await stack.enter_async_context(HttpFetcher(tls=trust.context))
    links: list[Link] = []
    checks: dict[str, Check] = {}
    memory = settings.memory
    possession = _possession_rules(settings.bound_tokens)
    for id, provider in settings.identity_providers().items():
        keys = KeyRing(
            provider.uri, fetch, refresh_seconds=provider.keys_refresh, max_age_seconds=provider.keys_max_age
        )
        stack.push_async_callback(keys.aclose)
        if provider.require_connected_on_startup:
            await keys.check()
        rules = _rules(id, provider, frozenset() if possession is None else possession.methods)
        links.append(OpenIdLink(rules, keys, seconds=memory.token_seconds, observer=metrics))
        checks[id] = keys.check
    for id, cluster in settings.clusters().items():
        accounts = await _service_accounts(id, cluster, settings, trust, metrics, stack)
        links.append(accounts)
        checks[id] = accounts.check
    return Identity(TokenRouter(links), checks, _sign_in(settings, fetch), possession)


def _possession_rules(settings: BoundTokens) -> PossessionRules | None:
    """Return the check of bound tokens. Return None if no kind of proof is configured: then all bound tokens are
    refused.
    """
    if settings.certificate_header is None:
        return None
    header = CertificateHeader(
        name=settings.certificate_header.lower().encode(),
        form=settings.certificate_format,
        networks=settings.networks(),
    )
    return PossessionRules(header, frozenset(settings.required_for))


def _sign_in(settings: Settings, fetch: HttpFetcher) -> SignInProvider | None:
    """Return the sign-in for browsers; None unless an issuer and a public client are configured."""
    issuer, client_id = settings.sign_in_issuer(), settings.ui.openid_client_id
    if issuer is None or client_id is None:
        return None
    return SignInProvider(fetch, issuer=issuer, client_id=client_id, scope=settings.ui.openid_scope)


async def _service_accounts(
    id: str, cluster: KubernetesCluster, settings: Settings, trust: Trust, metrics: Metrics, stack: AsyncExitStack
) -> ServiceAccounts:
    """Return the verifier of a cluster's service account tokens.

    Without configured issuers, the issuer of the gateway's own token is used. Raises ValueError if there is none.
    """
    token_file = Path(cluster.token_file)
    issuers = frozenset(cluster.issuers) or _issuers_of_own_token(id, token_file)
    rules = ClusterRules(
        idp_id=id,
        issuers=issuers,
        audiences=frozenset(cluster.audience),
        subject_source=cluster.subject_source,
        accept_legacy=cluster.accept_legacy_serviceaccount,
    )
    tls = trust.context if cluster.ca_file is None else ssl.create_default_context(cafile=cluster.ca_file)
    reviews = await stack.enter_async_context(ApiServer(cluster.url, token_file, tls=tls))
    keys = reviews.key_ring()
    stack.push_async_callback(keys.aclose)
    memory = settings.memory
    seconds = min(memory.token_seconds, cluster.review_lifetime)
    return ServiceAccounts(rules, reviews, keys, seconds=seconds, observer=metrics)


def _issuers_of_own_token(id: str, token_file: Path) -> frozenset[str]:
    try:
        found = issuer_in(token_file.read_text().strip())
    except OSError as error:
        raise ValueError(f"the gateway's own token for the cluster {id!r} cannot be read: {error}") from error
    return frozenset() if found is None else frozenset({found})


def _rules(id: str, provider: OpenIdProvider, proofs: frozenset[ProofMethod]) -> TokenRules:
    return TokenRules(
        idp_id=id,
        issuer=provider.uri,
        audiences=frozenset(provider.audience),
        project_audiences=provider.audience_projects(),
        additional_issuers=frozenset(provider.additional_issuers),
        required_scope=provider.scope,
        subject_claims=provider.subject_claims,
        groups_claim=provider.roles_claim,
        policy_claims=provider.policy_claims,
        display_name_template=provider.display_name_template,
        proofs=proofs,
    )


def actor_of_token(token: VerifiedToken, instance_admins: frozenset[str], engines: EnginesByToken) -> Actor:
    """Return the actor that a verified token identifies."""
    caller = Actor.user(
        token.user_id,
        name=token.name,
        email=token.email,
        application=token.kind == "application",
        instance_admin=token.user_id in instance_admins,
        project=token.project_id,
        engine=token.engine,
        subject_proven=token.subject_proven,
        groups=token.groups,
        groups_known=token.groups_known,
        token_claims=token.policy_claims,
    )
    return msgspec.structs.replace(caller, owner_properties=engines.of(token))
