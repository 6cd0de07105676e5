# SPDX-License-Identifier: Apache-2.0
"""The caller of a request: a user, an application, or a user for whom an engine acts, with its roles and its token."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec


class ActorKind(StrEnum):
    """The closed set of kinds of callers. The values appear in audit records and in policy input."""

    USER = "user"
    ROLE = "role"
    SYSTEM = "system"
    ANONYMOUS = "anonymous"


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of one request.

    `id` is `<idp>~<subject>` for users and services, `system~<task>` for the gateway's own work, and empty without a
    token. With `assumed_role` only the rights of that role count, and `id` is still that of the user. `within` is then
    the role's project: objects outside of this project do not exist for the caller.

    With `project_token` the caller's token is valid only for the project `within`. Such a token cannot reach the server
    object either (`Door`, `Resolution.seen_by`).

    `engine` is the id of the engine that acts for the caller, proven by a token that the gateway issued
    (`docs/token-exchange.md`). Every operation then needs two rights: that of the caller, and `delegate` of the engine
    on the object's warehouse.

    `owner_properties` are the case-folded names of view properties that hold an owner. They belong to the trusted
    engines that the token proves by its subject or its actor (`access/decisions/definer_views.py`,
    `features/views/views.py`). Below a view with an owner, `id` is that owner and `asked_by` the caller.

    The settings name the `instance_admin`: an operator that may change warehouses managed by the instance
    (`features/warehouses/warehouse_changes.py`), if it also has the right. A caller that acts as a role is never an
    instance administrator.
    """

    kind: ActorKind
    id: str
    name: str | None = None
    email: str | None = None
    application: bool = False
    assumed_role: UUID | None = None
    within: str | None = None
    project_token: bool = False
    instance_admin: bool = False
    engine: str | None = None
    subject_proven: bool = True
    """False if the engine asserted the caller, and no token of the caller proved its identity to the gateway."""
    groups: tuple[str, ...] = ()
    """The groups in the caller's token: sources of roles at the provider that `id` begins with."""
    groups_known: bool = True
    """False if the caller's own token does not state its groups, although the settings name a claim for them."""
    group_roles: tuple[str, ...] = ()
    """The ids of the roles that these groups map to, for the objects of the request (`Resolution.acting`)."""
    token_claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The kept claims of the caller's own token: pairs of (path, values). Filters read `policy_claims`."""
    owner_properties: tuple[str, ...] = ()
    asked_by: str | None = None

    @property
    def acting_as(self) -> str:
        """The engine and the role of the caller as text, for keys that also contain `id`; empty if there is neither.

        Requests of one user with different texts never share a response, a credential or a recorded success.
        """
        by = "" if self.engine is None else f" by {self.engine}{'' if self.subject_proven else ' asserted'}"
        return f"{self.assumed_role or ''}{by}{'' if self.asked_by is None else f' for {self.asked_by}'}"

    def as_owner(self, owner: str) -> Actor:
        """Return an actor for the owner of a view, whose rights count below the view.

        It keeps the project limits and the engine of the current caller. `asked_by` is the id of the current caller.
        """
        return Actor(
            kind=ActorKind.USER,
            id=owner,
            within=self.within,
            project_token=self.project_token,
            engine=self.engine,
            subject_proven=self.subject_proven,
            owner_properties=self.owner_properties,
            asked_by=self.asked_by or (self.id if self.assumed_role is None else f"{self.id} as {self.assumed_role}"),
        )

    def engine_itself(self) -> Actor | None:
        """Return an actor for the engine that acts for the caller; None if no engine acts for the caller."""
        return None if self.engine is None else Actor.user(self.engine)

    @property
    def provider(self) -> str:
        """The id of the caller's identity provider."""
        return self.id.partition("~")[0]

    @property
    def groups_digest(self) -> str:
        """The SHA-256 of the roles that the caller has by its groups, for cache keys.

        Empty without such roles or with an assumed role.
        """
        if self.assumed_role is not None or not self.group_roles:
            return ""
        return hashlib.sha256(" ".join(self.group_roles).encode()).hexdigest()

    @property
    def policy_claims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The token claims that row filters may use for this caller: pairs of (path, values).

        Empty for a caller with an assumed role, for one that an engine asserted, and for the owner of a view: the
        claims of the token do not apply to them.
        """
        unproven = self.asked_by is not None or not self.subject_proven
        return () if unproven or self.assumed_role is not None else self.token_claims

    @property
    def token_digest(self) -> str:
        """The digests of the roles by groups and of the policy claims, for the cache keys of results.

        Idempotency keys do not depend on it: a client retries with a renewed token, and each retry is decided again.
        """
        claims = self.policy_claims
        if not claims:
            return self.groups_digest
        return f"{self.groups_digest}/{hashlib.sha256(repr(claims).encode()).hexdigest()}/"

    @property
    def groups_unknown(self) -> bool:
        """True if the user may be in groups that the gateway does not know, because it has no token of the user that
        lists them.
        """
        return bool(self.id) and (self.asked_by is not None or not self.subject_proven or not self.groups_known)

    @classmethod
    def user(
        cls,
        id: str,
        *,
        name: str | None = None,
        email: str | None = None,
        application: bool = False,
        instance_admin: bool = False,
        project: str | None = None,
        engine: str | None = None,
        subject_proven: bool = True,
        groups: tuple[str, ...] = (),
        groups_known: bool = True,
        token_claims: tuple[tuple[str, tuple[str, ...]], ...] = (),
    ) -> Actor:
        """Return a user or service with a verified token.

        With `project` the token is valid for that project only. With `engine` the gateway issued the token, and that
        engine acts for the user.
        """
        return cls(
            kind=ActorKind.USER,
            id=id,
            name=name,
            email=email,
            application=application,
            within=project,
            project_token=project is not None,
            # An engine cannot use administrative rights of the user that it acts for.
            instance_admin=instance_admin and engine is None,
            engine=engine,
            subject_proven=subject_proven,
            groups=groups,
            groups_known=groups_known,
            token_claims=token_claims,
        )

    @classmethod
    def system(cls, task: str) -> Actor:
        """Return the actor of the background task `task`: the gateway itself."""
        return cls(kind=ActorKind.SYSTEM, id=f"system~{task}")

    @classmethod
    def anonymous(cls) -> Actor:
        """Return the caller of a request without a token. It may do public operations only."""
        return cls(kind=ActorKind.ANONYMOUS, id="")


_OWN: Final = "lakegate~scim-"


def provisioner_of(provider_id: str) -> str:
    """Return the user id of the provisioning tokens that the gateway issues for the directory of this provider.

    No provider can have the id `lakegate`, so no other caller has such a user id.
    """
    return _OWN + provider_id


def managed_provider(actor: Actor) -> str:
    """Return the id of the identity provider whose users and groups this caller may maintain.

    For a provisioning token of the gateway (`identity/provisioning.py`) it is the provider in the user id. For any
    other caller it is the provider of its own token. Whether the caller has the right to maintain them is checked
    elsewhere.
    """
    return actor.id.removeprefix(_OWN) if actor.id.startswith(_OWN) else actor.provider
