# SPDX-License-Identifier: Apache-2.0
"""The exchange of a token (RFC 8693)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from gateway.access.demand import Facts
from gateway.access.operation import Audience, PublicAudience, VendingOperation


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The user that a token is issued for.

    `groups` and `policy_claims` are those of the token that proves the user; a user that the engine named has none.
    `groups_known` is False if that token does not contain the groups.
    `project_id` is the only project that the token is valid for, if there is one. `not_after` (seconds since 1970) is
    the expiry of the token that proves the user.
    """

    user_id: str
    project_id: str | None = None
    groups: tuple[str, ...] = ()
    groups_known: bool = True
    policy_claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    not_after: float | None = None


@dataclass(frozen=True)
class ExchangeToken(VendingOperation):
    """Issue a token for a user to the calling engine (RFC 8693).

    The user is `proven` by a token of their own, or only named by the engine. The token names no warehouse: each use
    checks that the engine holds `delegate` on the warehouse of the object. An engine that holds `delegate` nowhere gets
    no token.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/oauth/tokens"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "the issued token is checked at each use: its engine needs can_delegate there"
    )
    authenticates_itself: ClassVar[str] = "the engine's token may be in the form, as RFC 8693 has it"
    subject: Subject
    proven: bool

    def facts(self) -> Facts:
        return {"subject": self.subject.user_id, "proven": self.proven}

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """Return False: no commit depends on the outcome, so clients may retry the request after an outage."""
        return False
