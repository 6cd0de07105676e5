# SPDX-License-Identifier: Apache-2.0
"""Settings of the OpenID providers and Kubernetes clusters whose tokens the gateway accepts.

Settings with flat names describe one provider and one cluster. Mappings by id describe any number of further providers
and clusters. `gateway/settings/__init__.py` has the other settings and reads all of them.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import PREFIX, SECONDS, SettingsError

#: Id of the provider in `OPENID_PROVIDER_URI`, as in Lakekeeper. Its users are `oidc~<subject>`.
FIRST_PROVIDER = "oidc"
#: Id of the cluster of `ENABLE_KUBERNETES_AUTHENTICATION`, as in Lakekeeper.
FIRST_CLUSTER = "kubernetes"
#: Directory in a pod with the pod's own token and the CA certificate of the cluster.
ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
#: Ids that further providers and clusters must not have, because existing user ids start with them.
RESERVED_IDS = frozenset({FIRST_PROVIDER, FIRST_CLUSTER, "lakekeeper", "lakegate", "system"})


# ---- types that the flat settings share with the settings by id ----

_Projects = tuple[Annotated[str, Meta(pattern=r"^[^=\s]+=[A-Za-z0-9_-]{1,128}$")], ...]
_OtherIssuers = Annotated[
    tuple[str, ...], Meta(description="Further values of the `iss` claim that are accepted for this provider.")
]
_Scope = Annotated[str | None, Meta(description="Scope that every token must contain.")]
_SubjectClaims = Annotated[
    tuple[str, ...],
    Meta(min_length=1, description="Claims that can contain the user's id. The first one in the token is used."),
]
_PolicyClaims = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=256)], ...],
    Meta(
        max_length=16,
        description="Claims of this provider's tokens that row filters may use, at most 16. `a.b` is the member `b` of "
        "the object `a`.",
    ),
]
_NameTemplate = Annotated[
    str | None,
    Meta(description="Template of the display name for tokens without a name; `{claim}` is replaced by the claim."),
]
_ScimSubject = typing.Literal["externalId", "userName"] | None
_KeysRefresh = Annotated[
    float, Meta(ge=10, description="Age in seconds at which the provider's keys are fetched again.", extra=SECONDS)
]
_KeysMaxAge = Annotated[
    float,
    Meta(
        ge=10,
        description="Maximum age in seconds of the provider's keys. If newer ones cannot be fetched, requests with its "
        "tokens get 503.",
        extra=SECONDS,
    ),
]
_ClusterIssuers = Annotated[
    tuple[str, ...],
    Meta(description="Issuers of the cluster's tokens. Default: the issuer of the gateway's own token."),
]
_SubjectSource = Annotated[
    typing.Literal["uid", "username"],
    Meta(description="Id of a service account: its uid, or its name `system:serviceaccount:<namespace>:<name>`."),
]
_AcceptLegacy = Annotated[bool, Meta(description="Also accept tokens without an expiry and without an audience.")]
_ReviewLifetime = Annotated[
    float,
    Meta(
        ge=0,
        description="Time in seconds for which the result of a token review is cached. The token of a deleted pod is "
        "accepted for this time.",
        extra=SECONDS,
    ),
]

#: The same order as in Lakekeeper. In Entra ID, the `oid` of a person is the same in all applications, and the `sub`
#: differs. Other providers have no `oid`.
_SUBJECT_CLAIMS = ("oid", "sub")
_REFRESH, _MAX_AGE, _LIFETIME = 300.0, 3600.0, 60.0


class OpenIdProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A further OpenID provider. Its users are `<id>~<subject>`."""

    uri: str
    """Issuer of a further provider. Its users are `<id>~…`."""
    audience: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Accepted audiences of tokens of this provider."""
    project_audiences: _Projects = ()
    """Like `OPENID_PROJECT_AUDIENCES`, for this provider."""
    additional_issuers: _OtherIssuers = ()
    scope: _Scope = None
    subject_claims: _SubjectClaims = _SUBJECT_CLAIMS
    roles_claim: str | None = None
    """Claim with the user's groups, which are roles of this provider. `a.b` is the member `b` of the object `a`."""
    policy_claims: _PolicyClaims = ()
    display_name_template: _NameTemplate = None
    scim_subject: _ScimSubject = None
    """SCIM attribute that contains the subject of this provider's tokens. Without it the provider cannot manage users
    by SCIM.
    """
    require_connected_on_startup: bool = False
    """Refuse to start while the provider's keys cannot be fetched."""
    keys_refresh: _KeysRefresh = _REFRESH
    keys_max_age: _KeysMaxAge = _MAX_AGE

    def audience_projects(self) -> dict[str, str]:
        """Return {audience: project id}.

        Raises ValueError if an audience is listed twice, or is also an audience for all projects.
        """
        pairs = [each.split("=", 1) for each in self.project_audiences]
        found = {audience: project for audience, project in pairs}
        if len(found) != len(pairs):
            raise ValueError("it contains the same audience twice; list each audience once")
        if twice := set(found) & set(self.audience):
            raise ValueError(
                f"{', '.join(sorted(twice))} is also an audience for all projects; an audience must be one or the other"
            )
        return found


class KubernetesCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A further Kubernetes cluster. Its service accounts are `<id>~<subject>`."""

    url: str
    """Address (https) of the API server that reviews the cluster's tokens."""
    audience: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Accepted audiences of service account tokens."""
    issuers: _ClusterIssuers = ()
    ca_file: str | None = None
    """File of CA certificates (PEM) for the API server. Default: the certificates for all outgoing connections."""
    token_file: str = ACCOUNT_DIRECTORY + "/token"
    """File with the gateway's own token for this cluster. The token needs the right to create token reviews."""
    subject_source: _SubjectSource = "uid"
    accept_legacy_serviceaccount: _AcceptLegacy = False
    review_lifetime: _ReviewLifetime = _LIFETIME


class IdentitySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all identity providers.

    The flat names, as in Lakekeeper, are for one OpenID provider and for the cluster in which the gateway runs. The
    mappings by id are for further ones.
    """

    openid_provider_uri: str | None = None
    """Issuer of the tokens; required by `serve`."""
    openid_audience: tuple[str, ...] = ()
    """Accepted audiences of tokens; required by `serve`."""
    openid_project_audiences: _Projects = ()
    """Audiences that are limited to one project, as `audience=project-id`. A token with such an audience is valid for
    that project only.
    """
    openid_additional_issuers: _OtherIssuers = ()
    openid_scope: _Scope = None
    openid_subject_claim: _SubjectClaims = _SUBJECT_CLAIMS
    openid_roles_claim: str | None = None
    """Claim with the user's groups, which are roles of the provider `oidc`. `a.b` is the member `b` of the object `a`.
    """
    openid_policy_claims: _PolicyClaims = ()
    openid_display_name_template: _NameTemplate = None
    openid_scim_subject: _ScimSubject = None
    """SCIM attribute that contains the subject of tokens of the provider `oidc`. Without it the provider cannot manage
    users by SCIM.
    """
    openid_keys_refresh: _KeysRefresh = _REFRESH
    openid_keys_max_age: _KeysMaxAge = _MAX_AGE
    openid_providers: Mapping[str, OpenIdProvider] = MappingProxyType({})
    enable_kubernetes_authentication: bool = False
    """Accept tokens of service accounts of the cluster in which the gateway runs."""
    kubernetes_authentication_audience: tuple[str, ...] = ()
    """Accepted audiences of service account tokens; required with the setting above."""
    kubernetes_authentication_issuers: _ClusterIssuers = ()
    kubernetes_authentication_subject_source: _SubjectSource = "uid"
    kubernetes_authentication_accept_legacy_serviceaccount: _AcceptLegacy = False
    kubernetes_authentication_review_lifetime: _ReviewLifetime = _LIFETIME
    kubernetes_clusters: Mapping[str, KubernetesCluster] = MappingProxyType({})

    def identity_providers(self) -> dict[str, OpenIdProvider]:
        """Return {id: provider} of all OpenID providers. The one of the flat settings is the first."""
        if self.openid_provider_uri is None:
            return dict(self.openid_providers)
        first = OpenIdProvider(
            uri=self.openid_provider_uri,
            audience=self.openid_audience,
            project_audiences=self.openid_project_audiences,
            additional_issuers=self.openid_additional_issuers,
            scope=self.openid_scope,
            subject_claims=self.openid_subject_claim,
            roles_claim=self.openid_roles_claim,
            policy_claims=self.openid_policy_claims,
            display_name_template=self.openid_display_name_template,
            scim_subject=self.openid_scim_subject,
            keys_refresh=self.openid_keys_refresh,
            keys_max_age=self.openid_keys_max_age,
        )
        return {FIRST_PROVIDER: first, **self.openid_providers}

    def clusters_from(self, host: str | None, port: str) -> dict[str, KubernetesCluster]:
        """Return {id: cluster} of all Kubernetes clusters. The cluster in which this gateway runs, if it is enabled, is
        the first.

        `host` and `port` are the address of its API server; `host` is None or empty outside of a cluster.

        Raises:
            SettingsError: the gateway's own cluster is enabled, but the gateway runs in none or no audience is set.
        """
        if not self.enable_kubernetes_authentication:
            return dict(self.kubernetes_clusters)
        if not host:
            raise SettingsError(
                f"{PREFIX}ENABLE_KUBERNETES_AUTHENTICATION works only in a pod, and this gateway does not run in "
                f"one; configure the cluster with {PREFIX}KUBERNETES_CLUSTERS__<ID>__URL instead"
            )
        if not self.kubernetes_authentication_audience:
            raise SettingsError(f"{PREFIX}KUBERNETES_AUTHENTICATION_AUDIENCE must be set")
        own = KubernetesCluster(
            url=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            audience=self.kubernetes_authentication_audience,
            issuers=self.kubernetes_authentication_issuers,
            ca_file=f"{ACCOUNT_DIRECTORY}/ca.crt",
            subject_source=self.kubernetes_authentication_subject_source,
            accept_legacy_serviceaccount=self.kubernetes_authentication_accept_legacy_serviceaccount,
            review_lifetime=self.kubernetes_authentication_review_lifetime,
        )
        return {FIRST_CLUSTER: own, **self.kubernetes_clusters}

    def identity_problems(self, clusters: Mapping[str, KubernetesCluster]) -> list[str]:
        """Return the problems of the identity settings, one line each. `clusters` are all Kubernetes clusters by id."""
        named = {"OPENID_PROVIDERS": self.openid_providers, "KUBERNETES_CLUSTERS": self.kubernetes_clusters}
        lines = [
            f"{PREFIX}{group}__{id.upper()}: this id is reserved; choose another id"
            for group, some in named.items()
            for id in sorted(RESERVED_IDS & some.keys())
        ]
        twice = sorted(self.identity_providers().keys() & clusters.keys())
        lines += [
            f"{PREFIX}KUBERNETES_CLUSTERS__{id.upper()}: an identity provider has the same id; choose another id"
            for id in twice
        ]
        return [*lines, *problems_of(self.identity_providers().items())]


def problems_of(providers: Iterable[tuple[str, OpenIdProvider]]) -> list[str]:
    """Return the problems of the given (id, provider) pairs, one line each.

    Two providers may share an issuer, as applications of one tenant do. Then they must not share an audience: otherwise
    a token would not show to which provider it belongs.
    """
    all_of_them = list(providers)
    lines = []
    for id, each in all_of_them:
        try:
            each.audience_projects()
        except ValueError as error:
            lines.append(f"{_variable(id)}PROJECT_AUDIENCES: {error}")
        if each.keys_refresh > each.keys_max_age:
            lines.append(f"{_variable(id)}KEYS_REFRESH must not be longer than KEYS_MAX_AGE")
    for (id, one), (other_id, other) in combinations(all_of_them, 2):
        issuers = {one.uri, *one.additional_issuers} & {other.uri, *other.additional_issuers}
        audiences = _audiences(one) & _audiences(other)
        if id == other_id:
            lines.append(f"two providers have the id {id!r}; give each its own id")
        if issuers and audiences:
            lines.append(
                f"the providers {id!r} and {other_id!r} have the same issuer ({', '.join(sorted(issuers))}) and the "
                f"same audience ({', '.join(sorted(audiences))}), so a token could belong to either; give each its "
                "own audience"
            )
    return lines


def _audiences(provider: OpenIdProvider) -> set[str]:
    return {*provider.audience, *(each.split("=", 1)[0] for each in provider.project_audiences)}


def _variable(id: str) -> str:
    return f"{PREFIX}OPENID_" if id == FIRST_PROVIDER else f"{PREFIX}OPENID_PROVIDERS__{id.upper()}__"
