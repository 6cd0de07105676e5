# SPDX-License-Identifier: Apache-2.0
"""The kit: the components and settings of the process that all use cases share.

The gateway's own tasks get their permits (proofs of a decision) here, from the door, which decides every operation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.authzen_mapping import AuthZenMapping
from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.decisions.policy import PolicyAnswers, PolicyRequest
from gateway.access.door.door import Door
from gateway.access.door.list_visibility import ReachesInUse
from gateway.access.door.permit import Permit
from gateway.access.door.request_context import RequestContext
from gateway.access.engine_probes import ProbeRules
from gateway.access.operation import Operation
from gateway.access.operations.access_request_bodies import AccessRequestRules
from gateway.access.ports import Question
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.engine.advisory_locks import AdvisoryLocks
from gateway.db.engine.database import Database
from gateway.db.tables.documents import Documents
from gateway.db.tables.pending_files import PendingFiles
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.warehouses.read_pool import ReadPool
from gateway.features.paging import Page, Paged, Place, place_of
from gateway.fga.answer_checks import AnswerChecks
from gateway.fga.confirmation import Confirmations
from gateway.iceberg.limits import Limits
from gateway.identity.delegated import DelegatedTokens
from gateway.opa.bundle import SigningKey
from gateway.opa.policy_files import PolicySource
from gateway.opa.rule_hits import PolicyTrace
from gateway.scope.profile import StorageRules
from gateway.storage.files import Files
from gateway.storage.provider import StorageClients
from gateway.vending.remote_signing import RemoteSigner
from gateway.vending.scope_verdict import ScopeRule
from gateway.vending.vendor import Vendor
from gateway.verification.engine_reads import EngineReads
from gateway.verification.panel import Panel


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEngines:
    """The engines behind answers to questions about access. None of them uses a cache of decisions.

    `evaluate` and `trace` are those of `gateway.opa.decider.OpaDecider`. `refuses` returns True if OpenFGA allows a
    question and an additional authorizer refuses it. `authorizers` are the names of the additional authorizers.
    """

    decisions: HypotheticalChecks
    checks: AnswerChecks
    confirmations: Confirmations
    evaluate: Callable[[PolicyRequest], Awaitable[PolicyAnswers]]
    trace: Callable[[PolicyRequest], Awaitable[tuple[PolicyAnswers, PolicyTrace]]]
    refuses: Callable[[Actor, Question, datetime], Awaitable[bool]]
    authorizers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The components of the process and its settings. The composition root makes one for all use cases."""

    database: Database
    reads: ReadPool
    door: Door
    delivery: TupleDelivery
    reaches: ReachesInUse
    """Returns the grants that make an object visible in the current model."""
    answers: AnswerEngines
    """Confirms answers about access with OpenFGA."""
    documents: Documents
    files: Files
    pending_files: PendingFiles
    locks: AdvisoryLocks
    """One for all commits of the process: it limits the connections that locks occupy."""
    storage: StorageCredentials
    clients: StorageClients
    vendor: Vendor
    rules: StorageRules
    signer: RemoteSigner
    scope: ScopeRule
    own_tokens: DelegatedTokens
    """Signs and verifies the gateway's own tokens."""
    panel: Panel | None
    """The verifiers of changes; None without any."""
    engine_reads: EngineReads
    probe_rules: ProbeRules
    policy_source: tuple[PolicySource | None, SigningKey | None]
    """The policies that the gateway serves as a bundle, and the key that signs it."""
    count_probe: Callable[[str], None]
    """Counts a probe of an engine by its outcome."""
    server_id: UUID
    default_project_id: str | None
    base_uri: str | None
    page_size: int
    """The largest page of the management API."""
    default_page_size: int
    request_seconds: float
    """The time after which a request is answered with an error. What takes longer ends before it."""
    limits: Limits
    reserved: frozenset[str]
    """Names of namespaces that nobody can create, in lower case."""
    tag_labels: bool
    tag_suggestions: bool
    skip_storage_validation: bool
    idempotency_seconds: float | None
    """The lifetime of idempotency keys; None if they are disabled."""
    ticket_lifetime: float
    """The time in seconds after which the ticket of a change expires."""
    access_rules: AccessRequestRules
    """The limits of access requests."""
    break_glass_second_person: bool
    """True if another principal confirms each break-glass activation."""
    canary_keep: timedelta
    probe_valid_days: float
    sinks: tuple[str, ...]
    """Names of the sinks of change events."""
    system_identities: frozenset[str]
    scim_subjects: Mapping[str, str]
    """The attribute (`externalId` or `userName`) that identifies users, of each provider with SCIM."""
    sole_provider: str | None
    """The only identity provider; None if there are several."""
    protected_view_properties: frozenset[str]
    """Properties of views that name their owner."""
    authzen: AuthZenMapping
    """The names of policy enforcement points (AuthZEN) for types and actions."""


class UseCases:
    """Base class of all classes with use cases. It holds the components that they share."""

    def __init__(self, kit: Kit) -> None:
        self._database = kit.database
        self._reads = kit.reads
        self._door = kit.door
        self._delivery = kit.delivery
        self._reaches = kit.reaches
        self._page_size = kit.page_size
        self._answer_engines = kit.answers

    def _page_of(self, request: Paged, read: Callable[[str], Place], *, most: int | None = None) -> Page[Place]:
        """Return the page that a request selects. `read` parses its page token. `most` replaces the maximum page size.

        Raises InvalidPaginationToken.
        """
        limit = self._page_size if most is None else most
        return Page(place_of(request.page_token, read), min(request.page_size or limit, limit))


def instances_of(kit: Kit) -> Callable[[type[Any]], Any]:
    """Return a function from a class with use cases to the only instance of that class, which is created at its first
    use.
    """
    made: dict[type[Any], Any] = {}

    def instance(kind: type[Any]) -> Any:
        found = made.get(kind)
        if found is None:
            found = made[kind] = kind(kit)
        return found

    return instance


Op = TypeVar("Op", bound=Operation)


@asynccontextmanager
async def admitted(door: Door, task: str, run: str, operation: Op) -> AsyncIterator[Permit[Op]]:
    """Yield the permit for `operation` of the system task `task`; `run` identifies the run. An exception in the block
    is recorded in the audit log.

    Raises the error of a policy refusal and the errors of outages.
    """
    context = RequestContext(actor=Actor.system(task), request_id=f"task-{run}")
    try:
        yield await door.admit(context, operation)
    except BaseException as error:
        context.abandon(type(error).__name__)
        raise
