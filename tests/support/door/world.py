# SPDX-License-Identifier: Apache-2.0
"""A small object hierarchy and doors for it, shared by the tests of access, the API and the matrix.

server - project - warehouse - namespace `sales` - namespace `sales.eu` - table `orders` and view `recent`; and a role
and a tag of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import AuditRecord, IssuedCredential
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest, Reason
from gateway.access.delegate_grants import ActsFor, DelegateGrant
from gateway.access.dependency_errors import AuditUnavailable
from gateway.access.door.door import Door
from gateway.access.door.request_context import RequestContext
from gateway.access.engine_probes import EngineProbes
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.data_policy import DataPolicyRef, ResolvedDataPolicy
from gateway.access.nouns.project import ProjectRef, ResolvedProject
from gateway.access.nouns.refs import (
    GenericTable,
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    Ref,
    Table,
    TabularRef,
    View,
    WarehouseNameRef,
    WarehouseRef,
)
from gateway.access.nouns.resolved import (
    Excerpt,
    Governed,
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
)
from gateway.access.nouns.role import ResolvedRole, RoleRef
from gateway.access.nouns.server import ResolvedServer, ResolvedUser, ServerRef, UserRef
from gateway.access.nouns.tag import ResolvedTag, TagNameRef, TagRef
from gateway.access.ports import Pin, Question
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.obligations.data_policies import PolicyInputs
from gateway.storage.registry import stored_profile

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
SERVER_ID = UUID("00000000-0000-4000-8000-000000000001")
PROJECT_ID = "00000000-0000-4000-8000-000000000002"
WAREHOUSE_ID = UUID("00000000-0000-4000-8000-000000000003")
OUTER_ID = UUID("00000000-0000-4000-8000-000000000004")
INNER_ID = UUID("00000000-0000-4000-8000-000000000005")
TABLE_ID = UUID("00000000-0000-4000-8000-000000000006")
ROLE_ID = UUID("00000000-0000-4000-8000-000000000007")
VIEW_ID = UUID("00000000-0000-4000-8000-000000000008")
FIELD_ID = 2
DATA_POLICY_ID = UUID("00000000-0000-4000-8000-000000000010")
GENERIC_TABLE_ID = UUID("00000000-0000-4000-8000-000000000009")
TAG_ID = UUID("00000000-0000-4000-8000-00000000000a")
ALICE = Actor.user("oidc~alice", name="Alice")
BOB_ID = "oidc~bob"

OUTER = Namespace(("sales",))
INNER = Namespace(("sales", "eu"))
ORDERS = TableIdentifier(INNER, "orders")
RECENT = TableIdentifier(INNER, "recent")
VECTORS = TableIdentifier(INNER, "vectors")

SERVER = ServerRef()
PROJECT = ProjectRef(PROJECT_ID)
WAREHOUSE = WarehouseRef(WAREHOUSE_ID)
WAREHOUSE_BY_NAME = WarehouseNameRef(PROJECT_ID, "lake")
NAMESPACE = NamespaceRef(WAREHOUSE_ID, INNER)
TABLE = TabularRef(Table, WAREHOUSE_ID, ORDERS)
VIEW = TabularRef(View, WAREHOUSE_ID, RECENT)
GENERIC_TABLE = TabularRef(GenericTable, WAREHOUSE_ID, VECTORS)
ROLE = RoleRef(ROLE_ID)
DATA_POLICY = DataPolicyRef(DATA_POLICY_ID)
TAG = TagRef(TAG_ID)
TAG_BY_NAME = TagNameRef(WAREHOUSE_ID, "pii")
BOB = UserRef(BOB_ID)

server_row = ResolvedServer(id=SERVER_ID, bootstrapped=True)
project_row = ResolvedProject(id=PROJECT_ID, name="Default Project")
warehouse_row = ResolvedWarehouse(
    id=WAREHOUSE_ID,
    project_id=PROJECT_ID,
    name="lake",
    active=True,
    decode=stored_profile,
    profile=b"{}",
    profile_version=1,
    credential_id=None,
    allowed_format_versions=(1, 2, 3),
    default_format_version=None,
)
outer_row = ResolvedNamespace(id=OUTER_ID, warehouse=warehouse_row, namespace=OUTER, ancestors=())
inner_row = ResolvedNamespace(id=INNER_ID, warehouse=warehouse_row, namespace=INNER, ancestors=(OUTER_ID,))
table_row = ResolvedTable(
    id=TABLE_ID,
    namespace=inner_row,
    identifier=ORDERS,
    location="s3://lake/orders",
    metadata_location="s3://lake/orders/metadata/00000.metadata.json",
    version=1,
)
view_row = ResolvedView(
    id=VIEW_ID,
    namespace=inner_row,
    identifier=RECENT,
    location="s3://lake/recent",
    metadata_location="s3://lake/recent/metadata/00000.metadata.json",
    version=1,
)
generic_table_row = ResolvedGenericTable(
    id=GENERIC_TABLE_ID,
    namespace=inner_row,
    identifier=VECTORS,
    location="s3://lake/vectors",
    format="lance",
)
role_row = ResolvedRole(id=ROLE_ID, project_id=PROJECT_ID, name="analysts")
data_policy_row = ResolvedDataPolicy(id=DATA_POLICY_ID, project_id=PROJECT_ID, name="mask e-mail")
tag_row = ResolvedTag(id=TAG_ID, project_id=PROJECT_ID, name="pii")
bob_row = ResolvedUser(
    id=BOB_ID, name="Bob", email=None, user_type="human", created_at=NOW, updated_at=None, last_updated_with="test"
)

alice_row = msgspec.structs.replace(bob_row, id=ALICE.id, name="Alice")

ROWS: dict[Ref, Resolved] = {
    SERVER: server_row,
    PROJECT: project_row,
    WAREHOUSE: warehouse_row,
    WAREHOUSE_BY_NAME: warehouse_row,
    NamespaceRef(WAREHOUSE_ID, OUTER): outer_row,
    NamespaceIdRef(OUTER_ID): outer_row,
    NAMESPACE: inner_row,
    NamespaceIdRef(INNER_ID): inner_row,
    NamespaceIdRef(INNER_ID, WAREHOUSE_ID): inner_row,
    TABLE: table_row,
    TabularRef(Table, WAREHOUSE_ID, TABLE_ID): table_row,
    TabularRef(Table, WAREHOUSE_ID, TABLE_ID, dropped=True): table_row,
    VIEW: view_row,
    TabularRef(View, WAREHOUSE_ID, VIEW_ID): view_row,
    TabularRef(View, WAREHOUSE_ID, VIEW_ID, dropped=True): view_row,
    GENERIC_TABLE: generic_table_row,
    TabularRef(GenericTable, WAREHOUSE_ID, GENERIC_TABLE_ID): generic_table_row,
    TabularRef(GenericTable, WAREHOUSE_ID, GENERIC_TABLE_ID, dropped=True): generic_table_row,
    ROLE: role_row,
    DATA_POLICY: data_policy_row,
    TAG: tag_row,
    TAG_BY_NAME: tag_row,
    BOB: bob_row,
    UserRef(ALICE.id): alice_row,
}

#: The objects of the examples, by type.
TARGETS: dict[ObjectType, Resolved] = {
    ObjectType.SERVER: server_row,
    ObjectType.PROJECT: project_row,
    ObjectType.WAREHOUSE: warehouse_row,
    ObjectType.NAMESPACE: inner_row,
    ObjectType.TABLE: table_row,
    ObjectType.VIEW: view_row,
    ObjectType.GENERIC_TABLE: generic_table_row,
    ObjectType.ROLE: role_row,
    ObjectType.DATA_POLICY: data_policy_row,
    ObjectType.TAG: tag_row,
    ObjectType.USER: bob_row,
}


@dataclass
class TableResolver:
    """A resolver that reads a dictionary and counts calls."""

    rows: dict[Ref, Resolved] = field(default_factory=lambda: dict(ROWS))
    calls: list[tuple[Ref, ...]] = field(default_factory=list)
    roles: tuple[str, ...] = ()
    validity: dict[str, Any] = field(default_factory=dict)
    """Revisions in the resolution; without them nothing may be cached."""

    delegations: tuple[DelegateGrant, ...] = (
        DelegateGrant(on=warehouse_row.key, limits=ActsFor(administrators=True), expires_at=None, direct=True),
    )
    """The recorded grants of `delegate` to the engine of a request, by default one without limits."""

    probes: EngineProbes = EngineProbes(required=False)
    """The probes of the engine of a request, by default one that counts without a probe."""

    ends: tuple[datetime, ...] = ()
    looked_for_columns: list[tuple[UUID, ...]] = field(default_factory=list)

    granted: dict[UUID, frozenset[int]] = field(default_factory=dict)
    """Columns with grants for the caller, by table."""

    async def columns(self, caller: Actor, table_ids: Sequence[UUID]) -> Mapping[UUID, frozenset[int]]:
        self.looked_for_columns.append(tuple(table_ids))
        return {id: self.granted[id] for id in table_ids if id in self.granted}

    documents: dict[UUID, bytes] = field(default_factory=lambda: {TABLE_ID: b"{}", VIEW_ID: b"{}"})
    """Metadata documents by table or view; an excerpt suffices."""

    read_documents: list[tuple[UUID, ...]] = field(default_factory=list)

    async def excerpts(self, ids: Sequence[UUID]) -> Mapping[UUID, Excerpt]:
        self.read_documents.append(tuple(ids))
        return {id: Excerpt("file", self.documents[id]) for id in ids if id in self.documents}

    policies: dict[UUID, PolicyInputs | None] = field(default_factory=dict)
    """Data policies by table or namespace. The warehouse of the rows needs a `data_policy_revision`."""

    values: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """The values of mapping tables by name and principal."""

    looked_for_policies: list[tuple[UUID, ...]] = field(default_factory=list)

    async def policy_inputs(self, rows: Sequence[Governed]) -> Mapping[UUID, PolicyInputs | None]:
        self.looked_for_policies.append(tuple(row.id for row in rows))
        return {row.id: self.policies.get(row.id, PolicyInputs()) for row in rows}

    async def mapped_values(
        self, project_id: str, names: Sequence[str], user: str, roles: Sequence[str]
    ) -> Sequence[tuple[str, tuple[str, ...]]]:
        return [
            (name, tuple(v for who in (user, *roles) for v in self.values.get(name, {}).get(who, ()))) for name in names
        ]

    grouped: frozenset[str] = frozenset()
    """The data policies whose subjects include a role that groups can give."""

    async def subjects_by_group(self, policy_ids: Sequence[str], provider: str) -> frozenset[str]:
        return self.grouped & set(policy_ids)

    async def grant_expiries(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        return [end for end in self.ends if after < end <= until]

    async def resolve(self, refs: Sequence[Ref], caller: Actor) -> Resolution:
        self.calls.append(tuple(refs))
        rows = {ref: self.rows[ref] for ref in refs if ref in self.rows}
        held = () if caller.engine is None else self.delegations
        return Resolution(
            rows=rows, now=NOW, caller_roles=self.roles, delegations=held, probes=self.probes, **self.validity
        )


@dataclass
class Judge:
    """Relationships from a function of one check; records its checks."""

    answer: Callable[[Question], bool] = lambda _: True
    calls: list[tuple[Question, ...]] = field(default_factory=list)
    paced: list[bool] = field(default_factory=list)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.calls.append(tuple(questions))
        self.paced.append(paced)
        return [self.answer(question) for question in questions]


@dataclass
class Rules:
    """Policies that return one answer for every request; records its requests."""

    answer: PolicyAnswer = PolicyAnswer(allow=True)
    calls: list[PolicyRequest] = field(default_factory=list)

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        self.calls.append(request)
        return tuple(self.answer for _ in request.questions)


DENIED = PolicyAnswer(allow=False, reasons=(Reason(code="closed", message="The house is closed."),))


@dataclass
class MemoryAudit:
    """An audit that keeps records; `full` makes it refuse them."""

    buffered: list[AuditRecord] = field(default_factory=list)
    committed: list[AuditRecord] = field(default_factory=list)
    issued: list[IssuedCredential] = field(default_factory=list)
    full: bool = False

    def buffer(self, record: AuditRecord) -> None:
        if self.full:
            raise AuditUnavailable("full")
        self.buffered.append(record)

    async def commit(self, record: AuditRecord, issued: IssuedCredential | None = None) -> None:
        if self.full:
            raise AuditUnavailable("full")
        self.committed.append(record)
        if issued is not None:
            self.issued.append(issued)


@dataclass
class Watcher:
    """An observer that records the figures for metrics."""

    decisions: list[tuple[str, str, str]] = field(default_factory=list)
    answers: list[tuple[str | None, int]] = field(default_factory=list)

    def decided(self, *, operation: str, outcome: str, determined_by: str) -> None:
        self.decisions.append((operation, outcome, determined_by))

    def decision_took(self, engine: str, seconds: float) -> None:
        pass

    def request_answered(self, *, method: str, operation: str | None, status: int, seconds: float) -> None:
        self.answers.append((operation, status))


@dataclass
class DoorFixture:
    """A door and its dependencies in memory; `read_only` puts it into read-only maintenance."""

    resolver: TableResolver = field(default_factory=TableResolver)
    judge: Judge = field(default_factory=Judge)
    rules: Rules = field(default_factory=Rules)
    audit: MemoryAudit = field(default_factory=MemoryAudit)
    watcher: Watcher = field(default_factory=Watcher)
    read_only: bool = False

    @property
    def door(self) -> Door:
        return Door(
            resolver=self.resolver,
            relationships=self.judge,
            policies=self.rules,
            audit=self.audit,
            observer=self.watcher,
            read_only=self.read_only,
        )


def request_context(actor: Actor = ALICE) -> RequestContext:
    """Return the context of a request of `actor`."""
    return RequestContext(actor=actor, request_id="request-1")
