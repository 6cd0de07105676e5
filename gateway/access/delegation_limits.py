# SPDX-License-Identifier: Apache-2.0
"""The limits of a grant of `delegate`: the users for whom the holder may act, and the networks it may act from."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gateway.access.bodies import Answer, StrictRequest, UserId

Network = Annotated[str, Meta(min_length=3, max_length=49, pattern=r"^[0-9a-fA-F:.]+/[0-9]{1,3}(?![\s\S])$")]


class ActsFor(StrictRequest, frozen=True):
    """Limits of a grant of `delegate`. Without `users` and `roles` the holder acts for every user, else for these users
    and the members of these roles. Users that could grant `delegate` there are administrators, and are excluded unless
    `administrators` is true. With `networks` (CIDR) requests must come from one of them.
    """

    users: Annotated[tuple[UserId, ...], Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    roles: Annotated[tuple[UUID, ...], Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    administrators: bool = False
    networks: Annotated[tuple[Network, ...], Meta(min_length=1, max_length=20)] | UnsetType = UNSET

    @property
    def unlimited(self) -> bool:
        """Return True if the grant permits every user from every network."""
        return self.administrators and self.users is self.roles is self.networks is UNSET


DEFAULT_LIMITS = ActsFor()
"""The limits of a grant that names none: every user except administrators."""


def limits_text(limits: ActsFor | None) -> str | None:
    """Return the text of the limits in the database. Equal limits have equal texts. None stands for the default."""
    if limits is None or limits == DEFAULT_LIMITS:
        return None
    sorted_limits = {
        name: sorted(set(value)) for name in ("users", "roles", "networks") if (value := getattr(limits, name))
    }
    return msgspec.json.encode(msgspec.structs.replace(limits, **sorted_limits)).decode()


def limits_of(text: str | None) -> ActsFor | None:
    """Return the limits behind a text of the database. Return None for a text that this version cannot read."""
    if text is None:
        return DEFAULT_LIMITS
    try:
        return msgspec.json.decode(text, type=ActsFor)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


class DelegateHolder(Answer, frozen=True, omit_defaults=True):
    """The user or role that holds `delegate`. A role's `name` is present only if the caller may read it."""

    user: str | None = None
    role: UUID | None = None
    name: str | None = None


class DelegateScope(Answer, frozen=True, omit_defaults=True):
    """The project or warehouse in which the holder may act for the caller."""

    type: Literal["project", "warehouse"]
    name: str
    project_id: str
    warehouse_id: str | None = None


class OwnDelegate(Answer, frozen=True, omit_defaults=True):
    """A grant of `delegate` that includes the caller. `acts-for` are its limits without other users and roles."""

    holder: DelegateHolder
    resource: DelegateScope
    acts_for: ActsFor
    created_at: datetime
    expires_at: datetime | None = None


class OwnDelegates(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /whoami/delegates`: the oldest grants first."""

    delegates: list[OwnDelegate]
    next_page_token: str | None = None
