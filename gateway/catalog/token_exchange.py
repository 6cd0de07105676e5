# SPDX-License-Identifier: Apache-2.0
"""Token exchange for engines that act for users (RFC 8693). `api/oauth.py` reads the caller and the subject."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from gateway.access.door import Door
from gateway.access.list_visibility import holders_of
from gateway.access.operations.token_exchange import ExchangeToken
from gateway.access.permit import Permit
from gateway.access.relations import Can
from gateway.db import delegations
from gateway.db.engine import Database
from gateway.iceberg.errors import BadRequestException, ForbiddenException
from gateway.identity.delegated import DelegatedTokens, IssuedToken, TokenTooLarge

_MAX_SCOPES: Final = 100


class NotAnEngine(ForbiddenException):
    """The caller has the delegation right on no object."""


class UnfitSubject(BadRequestException):
    """The user's token has expired, or contains more groups than a delegated token can hold."""


class TokenExchange:
    """The use case of `POST /v1/oauth/tokens`."""

    def __init__(self, *, database: Database, door: Door, tokens: DelegatedTokens) -> None:
        self._database = database
        self._door = door
        self._tokens = tokens

    async def exchange(self, permit: Permit[ExchangeToken]) -> IssuedToken:
        """Issue a token with which the caller acts for the operation's subject. The audit record is committed first.

        Raises NotAnEngine, UnfitSubject and the errors of outages.
        """
        subject = permit.operation.subject
        holders = holders_of(permit.actor, permit.resolution)
        async with self._database.read() as connection:
            scopes = await delegations.scopes_of_engine(connection, holders, limit=_MAX_SCOPES)
        if not any(await self._door.visible(permit, Can.DELEGATE, scopes)):
            raise NotAnEngine(
                f"{permit.actor.id} has the privilege `delegate` on no project or warehouse, and thus cannot act for "
                "users. A security administrator of the project can grant it."
            )
        try:
            issued = await self._tokens.issue(
                user_id=subject.user_id,
                engine_id=permit.actor.id,
                project_id=subject.project_id,
                groups=subject.groups,
                not_after=subject.not_after,
                subject_proven=permit.operation.proven,
            )
        except TokenTooLarge:
            raise UnfitSubject(
                "subject_token names more groups than a token of this server can contain; configure the identity "
                "provider to send fewer groups"
            ) from None
        if issued.seconds == 0:
            raise UnfitSubject("subject_token has expired; get a new one from the identity provider")
        ends = datetime.now(UTC).timestamp() + issued.seconds
        permit.pending_audit.add_details(
            subject=subject.user_id,
            proven="yes" if permit.operation.proven else "no",
            token_id=issued.token_id,
            expires_at=datetime.fromtimestamp(ends, UTC).isoformat(timespec="seconds"),
        )
        await permit.pending_audit.commit()
        return issued
