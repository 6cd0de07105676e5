# SPDX-License-Identifier: Apache-2.0
"""Operations that list live credentials, which are vended and not yet expired: by object and by principal.

They are an addition to Lakekeeper's API. Callers that may read the grants on an object may list the credentials that
are still valid for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.bodies import Answer
from gateway.access.demand import Demand, Facts
from gateway.access.nouns.families import KEPT_TABULARS, VIEW, declare_for_each
from gateway.access.nouns.refs import Ref, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import Audience, PublicAudience, ReadOperation
from gateway.access.operations.grant_lists import Paged
from gateway.access.operations.grants import ReadingGrants
from gateway.access.request import About, InPath, OfRequest, PageSize, PageToken, Query


@dataclass(frozen=True)
class ListingLiveCredentials(Paged, ReadingGrants):
    """Mixin of lists of an object's live credentials. `user` limits the list to credentials that concern one user."""

    user: Annotated[str | None, Query("user")] = None


@dataclass(frozen=True, kw_only=True)
class ListWarehouseLiveCredentials(ListingLiveCredentials, ReadOperation):
    """List the live credentials for the tables of a warehouse, deleted tables included."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/live-credentials"
    on: InPath[WarehouseRef]
    table_id: Annotated[UUID | None, Query("tableId")] = None


@dataclass(frozen=True)
class ListTabularLiveCredentials(ListingLiveCredentials, ReadOperation, abstract=True):
    """List the live credentials for one table or generic table."""


@dataclass(frozen=True)
class ListPrincipalLiveCredentials(ReadOperation):
    """List the live credentials of one principal (the caller if None) in a project.

    Callers may list those that they received. For those of another principal a caller must be able to read the
    assignments of the project.
    """

    endpoint: ClassVar[str] = "GET /management/v1/live-credentials"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own credentials; a question about another principal demands can_read_assignments"
    )
    project: OfRequest
    principal: About = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return () if self.principal is None else (Demand(Can.READ_ASSIGNMENTS, self.project),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.project,)

    def facts(self) -> Facts:
        return {"about": "" if self.principal is None else f"{self.principal.type}:{self.principal.id}"}


LIST_TABULAR_LIVE_CREDENTIALS: tuple[type[ListTabularLiveCredentials], ...] = declare_for_each(
    ListTabularLiveCredentials,
    [target for target in KEPT_TABULARS if target.noun != VIEW.noun],
    name="List{noun}LiveCredentials",
    endpoint="GET /management/v1/{path}/live-credentials",
    doc="List the live credentials for {words}.",
)


class LiveCredential(Answer, frozen=True, omit_defaults=True):
    """A credential that left this server and may still be valid. The secret itself is stored nowhere.

    `principal` is the user that received it, `engine` the engine that acted for the user, and `view-owner` the owner of
    the definer view whose right was used. Exactly one of `table-id` and `generic-table-id` is present; the table may be
    deleted. `session-name` is in the logs of the store. `policy-digest` is the SHA-256 of the session policy.
    `expires-at` is the expiry that the store stated; by `live-until` the credential has expired by every clock.
    """

    id: UUID
    principal: str
    warehouse_id: UUID
    prefix: str
    level: str
    provider: str
    session_name: str
    policy_digest: str
    issued_at: datetime
    expires_at: datetime
    live_until: datetime
    table_id: UUID | None = None
    generic_table_id: UUID | None = None
    assumed_role: UUID | None = None
    engine: str | None = None
    view_owner: str | None = None


class LiveCredentialList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/live-credentials`: the oldest credentials first."""

    live_credentials: list[LiveCredential]
    next_page_token: str | None = None
