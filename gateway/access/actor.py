# SPDX-License-Identifier: Apache-2.0
"""The caller of a request."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec


class ActorKind(StrEnum):
    """The closed set of kinds of callers; the values appear in audit records and in policy input."""

    USER = "user"
    ROLE = "role"
    SYSTEM = "system"
    ANONYMOUS = "anonymous"


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Describe the caller of one request.

    `id` is `<idp>~<subject>` for users and services, `system~<task>` for the gateway's own work, and empty without a
    token. With `assumed_role` only the rights of that role count; `id` still names the user. `within` is then the
    role's project: for the caller nothing outside of it exists.

    With `project_token` the caller's token is valid for the project `within` alone. The server is out of its reach, too
    (`Door`, `Resolution.seen_by`).

    `engine` acts for the caller, proven by a token of the gateway (`docs/token-exchange.md`). Every operation is then
    decided twice: the caller needs the right, and the engine `delegate` on the place.

    `owner_properties` are those of the trusted engines that the token proves by its subject or its actor, folded
    (`access/definer_views.py`, `catalog/view_owners.py`). Below a view with an owner that owner's rights count;
    `asked_by` is then the caller's id.

    The settings name an `instance_admin`: an operator who may change warehouses that are managed by the instance
    (`governance/warehouse_changes.py`). That adds a condition to the rights and gives none. A caller that acts as a
    role is none.
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
    """False when the engine asserted the caller, and no token of the caller's own proved it to the gateway."""
    groups: tuple[str, ...] = ()
    """What the caller's token says of groups: sources of roles at the provider that `id` begins with."""
    group_roles: tuple[str, ...] = ()
    """The roles, by id, that these groups stand for where something is asked (`Resolution.acting`)."""
    owner_properties: tuple[str, ...] = ()
    asked_by: str | None = None

    @property
    def guise(self) -> str:
        """The part of the identity beside `id`: two guises of one user never share an answer, a credential or a cached
        success. Empty for users as themselves.
        """
        by = "" if self.engine is None else f" by {self.engine}{'' if self.subject_proven else ' asserted'}"
        return f"{self.assumed_role or ''}{by}{'' if self.asked_by is None else f' for {self.asked_by}'}"

    def as_owner(self, owner: str) -> Actor:
        """Return the owner of a view as the caller below it. Of the present caller only the limits remain, its id and
        its engine.
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
        """Return the engine that acts for the caller, as a caller; None if there is none."""
        return None if self.engine is None else Actor.user(self.engine)

    @property
    def provider(self) -> str:
        """The identity provider of the caller."""
        return self.id.partition("~")[0]

    @property
    def groups_digest(self) -> str:
        """For keys of memories: equal when the same roles count by groups; empty when none do."""
        if self.assumed_role is not None or not self.group_roles:
            return ""
        return hashlib.sha256(" ".join(self.group_roles).encode()).hexdigest()

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
    ) -> Actor:
        """Return a user or service with a verified token, which may be valid for one `project` only. With an `engine`
        the token is one of the gateway's own, issued to that engine.
        """
        return cls(
            kind=ActorKind.USER,
            id=id,
            name=name,
            email=email,
            application=application,
            within=project,
            project_token=project is not None,
            # Administration is by the administrator's own hand.
            instance_admin=instance_admin and engine is None,
            engine=engine,
            subject_proven=subject_proven,
            groups=groups,
        )

    @classmethod
    def system(cls, task: str) -> Actor:
        """The gateway itself, doing the named background task."""
        return cls(kind=ActorKind.SYSTEM, id=f"system~{task}")

    @classmethod
    def anonymous(cls) -> Actor:
        """A request without a token; only operations open to all may be admitted for it."""
        return cls(kind=ActorKind.ANONYMOUS, id="")


_OWN: Final = "lakegate~scim-"


def provisioner_of(provider_id: str) -> str:
    """Return the user id that the provisioning tokens of the gateway have for this provider's directory.

    No provider can have the id `lakegate`, so no other caller has such a user id.
    """
    return _OWN + provider_id


def provider_kept_by(actor: Actor) -> str:
    """Return the only provider whose users and groups this caller may maintain, if it has the right.

    For a provisioning token of the gateway (`identity/provisioning.py`) it is the provider in the user id. For any
    other caller it is the provider of its own token.
    """
    return actor.id.removeprefix(_OWN) if actor.id.startswith(_OWN) else actor.provider
