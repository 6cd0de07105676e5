# SPDX-License-Identifier: Apache-2.0
"""Operations that read the audit log: search it, count its records over time, and show how far it is sealed.

They are an addition to Lakekeeper's API. An auditor of the server reads all records. An auditor of a project or a
warehouse reads the parts of records that are about objects there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, ProjectId, StrictRequest
from gateway.access.demand import Demand
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import QuestionOperation, ReadOperation

MAX_RECORDS: Final = 1000
DEFAULT_RECORDS: Final = 100
"""The largest page of a search, and the page without a size."""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=r"^[^\x00]+(?![\s\S])$")]
OperationName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Interval = Literal["hour", "day"]
RecordedOutcome = Literal["allowed", "hidden", "forbidden", "unavailable", "unauthenticated"]


class AuditedObject(StrictRequest, frozen=True):
    """An object of the audit log by its type and id. It may have been deleted."""

    type: Text
    id: Text


class ContainerObject(StrictRequest, frozen=True):
    """A warehouse or namespace of the audit log by its id. It may have been deleted."""

    type: Literal["warehouse", "namespace"]
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSelection:
    """The records that a search selects: those from `since` until before `until` that meet every filter.

    A filter that is empty or None does not restrict the search.
    """

    since: datetime
    until: datetime
    actor: str | None = None
    operations: tuple[str, ...] = ()
    outcomes: tuple[RecordedOutcome, ...] = ()
    object: AuditedObject | None = None
    below: ContainerObject | None = None
    request_id: str | None = None
    text: str | None = None

    def described(self) -> str:
        """Return the filters as JSON, without those that are not set."""
        given = {name: getattr(self, name) for name in AuditSelection.__dataclass_fields__}
        return msgspec.json.encode({name: value for name, value in given.items() if value}).decode()


@dataclass(frozen=True)
class ReadingAudit(QuestionOperation, abstract=True):
    """Base class of operations that read the audit records about the server, a project or a warehouse (`on`)."""

    on: Ref
    selection: AuditSelection

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_AUDIT, self.on),)

    def audit_details(self) -> Mapping[str, str]:
        return {"search": self.selection.described()}


@dataclass(frozen=True)
class SearchAudit(ReadingAudit):
    """Search the audit log, newest records first. The caller must be an auditor of the server, project or warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/audit/search"
    page_token: str | None = None
    page_size: int | None = None


@dataclass(frozen=True)
class CountAudit(ReadingAudit):
    """Count audit records by operation and outcome over time. The caller must be an auditor of the place."""

    endpoint: ClassVar[str] = "POST /management/v1/audit/statistics"
    interval: Interval


@dataclass(frozen=True)
class GetAuditIntegrity(ReadOperation):
    """Return how far the audit log is sealed. The caller must be an auditor of the server."""

    endpoint: ClassVar[str] = "GET /management/v1/audit/integrity"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_AUDIT, ServerRef()),)


class AuditRange(StrictRequest, frozen=True):
    """The place, the time range and the decisions of a question about the audit log.

    Without `warehouse-id` and `project-id` it is about the server. The default time range is the last day.
    `operations` has names such as `load_table`; each `outcomes` value is that of a decision.
    """

    project_id: ProjectId | None = None
    warehouse_id: UUID | None = None
    since: Moment | None = None
    until: Moment | None = None
    actor: Text | None = None
    operations: Annotated[list[OperationName], msgspec.Meta(max_length=20)] = []
    outcomes: Annotated[list[RecordedOutcome], msgspec.Meta(max_length=5)] = []


class AuditStatisticsRequest(AuditRange, frozen=True):
    """Request of `POST /audit/statistics`. `interval` is the length of a period, which begins in UTC."""

    interval: Interval = "day"


class AuditCount(Answer, frozen=True):
    """The number of records from `at` for one interval whose requested operation had this outcome."""

    at: datetime
    operation: str
    outcome: str
    count: int


class AuditStatistics(Answer, frozen=True):
    """Response of `POST /audit/statistics`: the counts that are not 0, in the order of time."""

    since: datetime
    until: datetime
    interval: Interval
    counts: list[AuditCount]


class AuditIntegrity(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /audit/integrity`: the newest block of the chain over the audit log.

    Without `block` nothing is sealed. `anchor` is its number and digest, for `lakegate audit verify --anchor`.
    `newest-record-at` is the time of its newest record. `fault` says what is wrong with its records: those of earlier
    blocks are not verified here. `unsealed` counts the records of the last 15 minutes that no block has yet, at most
    1000. Retention removed the records before `removed-until`.
    """

    unsealed: int
    block: int | None = None
    anchor: str | None = None
    records: int | None = None
    sealed_at: datetime | None = None
    newest_record_at: datetime | None = None
    fault: str | None = None
    removed_until: datetime | None = None


class AuditFilters(AuditRange, frozen=True):
    """The filters of a search of the audit log.

    `below` selects records about a warehouse or namespace and its contents. `request-id` is the id of a request, of an
    error or of a trace. `text` is a part of a reason, without regard to the case of ASCII letters.
    """

    object: AuditedObject | None = None
    below: ContainerObject | None = None
    request_id: Text | None = None
    text: Text | None = None


class SearchAuditRequest(AuditFilters, frozen=True):
    """Request of `POST /audit/search`. The page size is at most 1000."""

    page_token: str | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AuditEntryActor(Answer, frozen=True, omit_defaults=True):
    """The caller of a record, as in the audit log."""

    kind: str
    id: str
    assumed_role: str | None = None
    engine: str | None = None
    subject_proven: bool = True
    asked_by: str | None = None


class AuditEntryObject(Answer, frozen=True, omit_defaults=True):
    """An object of a decision: its name as in the request, and its id if it existed."""

    type: str
    id: str | None = None
    name: str | None = None
    warehouse_id: str | None = None
    project_id: str | None = None


class AuditEntryDecision(Answer, frozen=True, omit_defaults=True):
    """The decision on one operation. `partial` is true if it has objects elsewhere, which are left out."""

    operation: str
    outcome: str
    determined_by: str
    relations: tuple[str, ...] = ()
    objects: tuple[AuditEntryObject, ...] = ()
    failure: str | None = None
    policy_reasons: tuple[str, ...] = ()
    obligations: Mapping[str, int | bool] = {}
    partial: bool = False


class AuditEntry(Answer, frozen=True, omit_defaults=True):
    """An audit record, without what auditors do not read: metadata of tables, values of policies, facts for policies.

    `id` is also the id in the message of a refusal. `block` is the number of the block that seals the record. `detail`
    is empty if a decision is left out or partial.
    """

    id: UUID
    at: datetime
    request_id: str
    actor: AuditEntryActor
    decisions: tuple[AuditEntryDecision, ...]
    client_request_id: str | None = None
    trace_id: str | None = None
    user_agent: str | None = None
    client_address: str | None = None
    detail: Mapping[str, str] = {}
    block: int | None = None
    partial: bool = False


class AuditPage(Answer, frozen=True, omit_defaults=True):
    """Response of `POST /audit/search`: records from `since` until before `until`, newest first.

    All matching records since `searched-since` are in this page and the pages before it. A page may have fewer records
    than its size, or none, although more follow: only an answer without `next-page-token` is the last one.
    `unreadable` is the number of records of another version that were left out.
    """

    records: list[AuditEntry]
    since: datetime
    until: datetime
    searched_since: datetime
    next_page_token: str | None = None
    unreadable: int = 0
