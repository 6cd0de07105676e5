# SPDX-License-Identifier: Apache-2.0
"""Operations on the notices of a project, and their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from gateway.access.bodies import Answer, Name, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.notice import NoticeRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.roles import Description
from gateway.access.request import InBody, InPath, OfRequest, PageSize, PageToken


@dataclass(frozen=True)
class CreateNotice(ChangeOperation):
    """Write a notice for all principals that see the project. The creator owns it."""

    endpoint: ClassVar[str] = "POST /management/v1/notice"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project", new="notice_id", named="request.name")
    returns: ClassVar[int] = 201
    project: OfRequest
    request: InBody[CreateNoticeRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_NOTICE, self.project),)

    def facts(self) -> Facts:
        return {"notice_name": self.request.name}


@dataclass(frozen=True)
class ListNotices(ReadOperation):
    """List the notices of a project."""

    endpoint: ClassVar[str] = "GET /management/v1/notice"
    project: OfRequest
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.project),)


@dataclass(frozen=True)
class GetNotice(ReadOperation):
    """Return a notice."""

    endpoint: ClassVar[str] = "GET /management/v1/notice/{notice_id}"
    notice: InPath[NoticeRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ, self.notice),)


@dataclass(frozen=True)
class DeleteNotice(ChangeOperation):
    """Delete a notice, and the grants on it."""

    endpoint: ClassVar[str] = "DELETE /management/v1/notice/{notice_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="notice")
    returns: ClassVar[int] = 204
    notice: InPath[NoticeRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE, self.notice),)


class CreateNoticeRequest(StrictRequest, frozen=True):
    """Request of `POST /notice`."""

    name: Name
    text: Description


class Notice(Answer, frozen=True):
    """A notice of a project."""

    id: UUID
    name: str
    text: str
    created_at: datetime


class NoticeList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /notice`: the oldest first."""

    notices: list[Notice]
    next_page_token: str | None = None
