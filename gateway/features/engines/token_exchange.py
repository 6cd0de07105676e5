# SPDX-License-Identifier: Apache-2.0
"""Token exchange for engines that act for users (RFC 8693): check the engine's right, and issue a token of the gateway.

`oauth_routes.py` reads the engine and the user from the request.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import structlog

from gateway.access.actor import Actor
from gateway.access.delegate_grants import ADMINISTRATORS_REFUSED, refusing_limit
from gateway.access.door.list_visibility import holders_of
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import ExchangeToken, Subject
from gateway.db.grants import grant_lists
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.errors import BadRequestException, ForbiddenException
from gateway.identity.delegated import IssuedToken, TokenTooLarge

_log = structlog.get_logger("catalog.token_exchange")
_MAX_GRANTS: Final = 2_000
_MAX_SCOPES: Final = 100


class NotAnEngine(ForbiddenException):
    """The caller has the right to act for users on no object."""


class SubjectOutsideLimits(ForbiddenException):
    """The caller's grants of `delegate` exclude this user, or the network of the request."""


class UnfitSubject(BadRequestException):
    """The user's token has expired, or contains more groups than a delegated token can hold."""


class TokenExchange(UseCases):
    """The use case of `POST /v1/oauth/tokens`."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._resolver = DatabaseResolver(kit.database)
        self._tokens = kit.own_tokens

    async def exchange(self, permit: Permit[ExchangeToken]) -> IssuedToken:
        """Issue a token with which the caller acts for the subject of the operation. The audit record is committed
        first.

        Raises NotAnEngine, SubjectOutsideLimits, UnfitSubject and the errors of outages.
        """
        subject = permit.operation.subject
        await self._require_delegation(permit, subject)
        issued = await self._issue(permit)
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

    async def _issue(self, permit: Permit[ExchangeToken]) -> IssuedToken:
        """Issue the token. If the policy claims do not fit into it, all of them are left out. Raises UnfitSubject."""
        subject = permit.operation.subject
        for claims in dict.fromkeys((subject.policy_claims, ())):
            try:
                issued = await self._tokens.issue(
                    user_id=subject.user_id,
                    engine_id=permit.actor.id,
                    project_id=subject.project_id,
                    groups=subject.groups,
                    groups_known=subject.groups_known,
                    policy_claims=claims,
                    not_after=subject.not_after,
                    subject_proven=permit.operation.proven,
                )
            except TokenTooLarge:
                continue
            if claims != subject.policy_claims:
                _log.warning("claims.omitted", reason="the policy claims of the user do not fit into a token")
                permit.pending_audit.add_details(policy_claims="omitted")
            return issued
        raise UnfitSubject(
            "subject_token names more groups than a token of this server can contain; configure the identity "
            "provider to send fewer groups"
        )

    async def _require_delegation(self, permit: Permit[ExchangeToken], subject: Subject) -> None:
        """Raise NotAnEngine or SubjectOutsideLimits unless the engine may act for the subject on at least one object.

        Each use of the token is decided again for its warehouse, by the rule in `access/decisions/delegation.py`.
        """
        holders = holders_of(permit.actor, permit.resolution)
        async with self._database.read() as connection:
            rows = await grant_lists.grants_of_engine(connection, holders, limit=_MAX_GRANTS)
        grants = [(grant_lists.grant_of(row), ObjectKey(ObjectType.PROJECT, row.project_id)) for row in rows]
        user = Actor.user(subject.user_id, groups=subject.groups, project=subject.project_id)
        known = permit.resolution
        if not all(grant.limits is not None and grant.limits.unlimited for grant, _ in grants):
            known = await self._resolver.resolve((), user)
        address = permit.pending_audit.record.client_address
        permitting = [pair for pair in grants if pair[0].permits(user.id, known.caller_roles, address)]
        places = list(dict.fromkeys(grant.on for grant, _ in permitting or grants))[:_MAX_SCOPES]
        answers = await self._door.visible(permit, Can.DELEGATE, places)
        held = {place for place, answer in zip(places, answers, strict=True) if answer}
        if not held:
            raise NotAnEngine(
                f"{permit.actor.id} has the privilege `delegate` on no project or warehouse, and thus cannot act for "
                "users. A security administrator of the project can grant it."
            )
        usable = [pair for pair in permitting if pair[0].on in held]
        if usable and any(grant.for_administrators for grant, _ in usable):
            return
        for place, project in dict.fromkeys((grant.on, project) for grant, project in usable):
            asked = list(dict.fromkeys((place, project)))
            if not await self._door.hypothetical_checks.administered(permit, known.acting(user), asked):
                return
        refusal = (
            ADMINISTRATORS_REFUSED
            if usable
            else refusing_limit([grant for grant, _ in grants], user.id, known.caller_roles)
        )
        permit.pending_audit.add_details(subject=user.id, refused_by=refusal)
        raise SubjectOutsideLimits(
            f"The grants of `delegate` to {permit.actor.id} do not allow it to act for this user from this network. "
            "The audit record names the limit. A security administrator of the project can change `acts-for`."
        )
