# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for users."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from gateway.protocol.base import Answer, Name, Request, UserId, UserType


class User(Answer, frozen=True, omit_defaults=True):
    """A user record."""

    id: str
    name: str
    user_type: str
    created_at: datetime
    last_updated_with: str
    email: str | None = None
    updated_at: datetime | None = None


class WhoAmIAnswer(User, frozen=True, omit_defaults=True):
    """Response of `GET /whoami`."""

    is_instance_admin: bool | None = None


class CreateUserRequest(Request, frozen=True):
    """Request of `POST /user`. Without an `id`, the caller registers its own user."""

    id: UserId | None = None
    name: Name | None = None
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None
    user_type: UserType | None = None
    update_if_exists: bool = False


class UpdateUserRequest(Request, frozen=True):
    """Request of `PUT /user/{id}`. Without an `email`, the existing address is removed."""

    name: Name
    user_type: UserType
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None


class FoundUser(Answer, frozen=True, omit_defaults=True):
    """A user that matches the search."""

    id: str
    name: str
    user_type: str
    email: str | None = None


class FoundUsers(Answer, frozen=True):
    """Response of `POST /search/user`."""

    users: list[FoundUser]


class UserList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /user`."""

    users: list[User]
    next_page_token: str | None = None
