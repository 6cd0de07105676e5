# SPDX-License-Identifier: Apache-2.0
"""The settings of who vouches for callers, as far as there may be several of a kind (`gateway/settings.py` has the rest
and reads them all).
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from itertools import combinations
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.variables import PREFIX, SECONDS

#: The provider of `OPENID_PROVIDER_URI`, as in the reference system; its users are `oidc~<subject>`.
FIRST_PROVIDER = "oidc"
#: The cluster of `ENABLE_KUBERNETES_AUTHENTICATION`, as in the reference system.
FIRST_CLUSTER = "kubernetes"
#: Where a pod finds its own token and whom to trust.
ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
#: Ids that no further provider may have: user ids begin with them already.
RESERVED_IDS = frozenset({FIRST_PROVIDER, FIRST_CLUSTER, "lakekeeper", "lakegate", "system"})


class OpenIdProvider(msgspec.Struct, frozen=True, kw_only=True):
    """One more OpenID provider; its users are `<id>~<subject>`."""

    uri: Annotated[str, Meta(description="Issuer of the tokens of one more provider, whose users are `<id>~…`.")]
    audience: Annotated[tuple[str, ...], Meta(min_length=1, description="Audiences a token of this provider may name.")]
    project_audiences: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[^=\s]+=[A-Za-z0-9_-]{1,128}$")], ...],
        Meta(description="As `OPENID_PROJECT_AUDIENCES`, for this provider."),
    ] = ()
    additional_issuers: Annotated[
        tuple[str, ...], Meta(description="Other spellings of the issuer that are accepted in its tokens.")
    ] = ()
    scope: Annotated[str | None, Meta(description="Scope a token must have.")] = None
    subject_claims: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Claims tried in this order for the user's id.")
    ] = ("oid", "sub")
    roles_claim: Annotated[
        str | None, Meta(description="Claim (`a.b` walks into objects) whose groups count as roles of this provider.")
    ] = None
    display_name_template: Annotated[
        str | None, Meta(description="Name of a user whose token has none, `{claim}` replaced.")
    ] = None
    require_connected_on_startup: Annotated[
        bool, Meta(description="Do not start while the provider's keys cannot be had.")
    ] = False
    keys_refresh: Annotated[
        float, Meta(ge=10, description="Age at which the provider's keys are read again.", extra=SECONDS)
    ] = 300.0
    keys_max_age: Annotated[
        float,
        Meta(ge=10, description="Age at which its keys count no more: an outage is 503 from then on.", extra=SECONDS),
    ] = 3600.0

    def audience_projects(self) -> dict[str, str]:
        """Project ids by audience. Raises ValueError: an audience has two projects, or is for everything too."""
        pairs = [each.split("=", 1) for each in self.project_audiences]
        found = {audience: project for audience, project in pairs}
        if len(found) != len(pairs):
            raise ValueError("an audience is named twice")
        if twice := set(found) & set(self.audience):
            raise ValueError(f"{', '.join(sorted(twice))} is an audience for everything, too")
        return found


class KubernetesCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One more Kubernetes cluster; its service accounts are `<id>~<subject>`."""

    url: Annotated[str, Meta(description="Address of the API server (https) that reviews the cluster's tokens.")]
    audience: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Audiences a token of a service account may be for.")
    ]
    issuers: Annotated[
        tuple[str, ...],
        Meta(description="Issuers that the cluster's tokens name; default: the one of the gateway's own token."),
    ] = ()
    ca_file: Annotated[
        str | None, Meta(description="Certificates (PEM) to trust for the API server; default: as everywhere.")
    ] = None
    token_file: Annotated[
        str, Meta(description="File with the gateway's own token there, which may review tokens.")
    ] = ACCOUNT_DIRECTORY + "/token"
    subject_source: Annotated[
        typing.Literal["uid", "username"],
        Meta(description="What names a service account: its uid, or `system:serviceaccount:<namespace>:<name>`."),
    ] = "uid"
    accept_legacy_serviceaccount: Annotated[
        bool, Meta(description="Accept tokens that have no end and no audience, too.")
    ] = False
    review_lifetime: Annotated[
        float,
        Meta(ge=0, description="How long a token counts as reviewed; a deleted pod's works so long.", extra=SECONDS),
    ] = 60.0


def problems_of(providers: Iterable[tuple[str, OpenIdProvider]]) -> list[str]:
    """What is wrong with these (id, provider): one line for each problem.

    Two providers may share an issuer, as the applications of one tenant do, when no audience is for both: a token has
    to say by itself whose it is.
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
            lines.append(f"two providers have the id {id!r}")
        if issuers and audiences:
            lines.append(
                f"the providers {id!r} and {other_id!r} have the same issuer ({', '.join(sorted(issuers))}) and the "
                f"same audience ({', '.join(sorted(audiences))}); nobody could tell whose token one is"
            )
    return lines


def _audiences(provider: OpenIdProvider) -> set[str]:
    return {*provider.audience, *(each.split("=", 1)[0] for each in provider.project_audiences)}


def _variable(id: str) -> str:
    return f"{PREFIX}OPENID_" if id == FIRST_PROVIDER else f"{PREFIX}OPENID_PROVIDERS__{id.upper()}__"
