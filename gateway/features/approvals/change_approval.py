# SPDX-License-Identifier: Apache-2.0
"""Query the verifiers about a change that is permitted, before files are written or rows are changed.

A verifier approves or rejects the change, or leaves it pending. A pending change gets a ticket, which a person can
approve. The transaction of the approved change marks its ticket as used. No database transaction, lock or place in the
commit queue is held while verifiers are queried.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.access.operations.change_tickets import ChangeTicket, TicketStatus
from gateway.access.operations.deletion import UndropTabulars
from gateway.access.operations.namespaces import MoveNamespace
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView
from gateway.access.operations.warehouses import DeleteWarehouse, RenameWarehouse
from gateway.db.engine.database import Connection
from gateway.db.tables.documents import Document, Documents
from gateway.db.warehouses import change_tickets
from gateway.db.warehouses.change_tickets import NewTicket
from gateway.features.approvals.change_proposals import (
    ChangingPermit,
    Proposal,
    Tabular,
    drop_updates,
    of_new,
    of_object,
)
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.errors import (
    CatalogError,
    CommitFailedException,
    ForbiddenException,
    ServiceUnavailableException,
    TooManyRequests,
)
from gateway.iceberg.identifiers import Namespace
from gateway.offloading import offload
from gateway.verification.change_digest import digest_of, normalised_change
from gateway.verification.panel import Judgement, Panel
from gateway.verification.port import ChangeKind, Pending, ProposedChange, Rejected

_RETRY_SECONDS: Final = 5
_LARGEST_CHANGE: Final = 256 * 1024
_MOST_WAITING: Final = 500


class ChangeRejected(ForbiddenException, type="ChangeRejected"):
    """A verifier or an approver rejected the change. Clients must not retry it."""


class ChangePending(CommitFailedException, type="ChangePending"):
    """The change waits for approval. Clients may retry it: the same change has the same ticket."""


class ChangePendingForbidden(ForbiddenException, type="ChangePending"):
    """The change waits for approval, and clients would misread the 409 of ChangePending: as a taken name, or as a
    namespace that is not empty.

    For example, `CREATE TABLE IF NOT EXISTS` succeeds with a 409.
    """


class VerifierUnavailable(ServiceUnavailableException, type="VerifierUnavailable"):
    """A verifier that fails closed gave no verdict. Nothing was changed."""


class VerifierUnavailableBeforeChange(TooManyRequests, type="VerifierUnavailable"):
    """A verifier that fails closed gave no verdict on a catalog mutation. The status is 429: clients read 5xx as "state
    unknown".
    """


@dataclass(frozen=True, slots=True)
class Approval:
    """The approved tickets that the transaction of the change must mark as used; empty if no ticket was needed."""

    tickets: tuple[UUID, ...] = ()

    async def use(self, connection: Connection) -> None:
        """Mark the tickets as used. Raises ChangePending if another transaction has used one, or one has expired."""
        for id in sorted(self.tickets):
            if not await change_tickets.use(connection, id):
                raise ChangePending(
                    f"The approval of ticket {id} has expired, or another run of the statement has used it. Nothing "
                    "was changed. Run the statement again to get a new ticket."
                )


UNCONDITIONAL: Final = Approval()
"""The approval of changes that no verifier concerns."""


class ChangeApproval(UseCases):
    """The approval of changes by the verifiers of this gateway and by approvers.

    Without a `panel` every change is approved immediately. A ticket is pending for `lifetime` seconds. Its approval or
    rejection is valid for as long.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._panel = kit.panel
        self._lifetime = kit.ticket_lifetime

    def concerns(self, kind: ChangeKind, *types: ObjectType, updates: frozenset[str] = frozenset()) -> bool:
        """Return True if a verifier evaluates changes of this kind on one of these object types. `updates` are the
        actions of a commit: a verifier whose rules they cannot break is not counted.
        """
        return self._panel is not None and any(self._panel.concerns(kind, type.value, updates) for type in types)

    async def require(self, permit: ChangingPermit, proposals: Sequence[Proposal]) -> Approval:
        """Return the approval of all changes of one request.

        Raises:
        - ChangeRejected (403): a verifier or an approver rejected a change.
        - ChangePending (409), ChangePendingForbidden (403): a change waits for approval.
        - VerifierUnavailableBeforeChange (429), VerifierUnavailable (503): a verifier gave no verdict.
        """
        panel = self._panel
        if panel is None:
            return UNCONDITIONAL
        asked = [each for each in proposals if panel.concerns(each.change.kind, each.change.object_type)]
        # Not strict: after a rejection, the remaining proposals are not verified and have no verdict.
        judged = list(zip(asked, await panel.verify_all([each.change for each in asked]), strict=False))
        _refuse_rejected(permit, judged)
        opened = [
            (each, await self._ticket(permit, panel, each, on, judgement.verdict.reasons))
            for each, judgement in judged
            if isinstance(judgement.verdict, Pending)
            for on in each.tickets_on
        ]
        if not opened:
            return UNCONDITIONAL
        permit.pending_audit.add_details(change_tickets=",".join(str(ticket.id) for _, ticket in opened))
        _refuse_undecided(opened)
        return Approval(tuple(ticket.id for _, ticket in opened))

    async def of_creation(
        self,
        permit: ChangingPermit,
        type: ObjectType,
        namespace: ResolvedNamespace,
        name: str,
        document: Callable[[], bytes],
        *,
        updates: Sequence[object] = (),
        location: str | None = None,
    ) -> Approval:
        """Return the approval of a new table or view, whose first metadata is `document`. `location` is the location in
        the request, None for the default. Raises the errors of `require`.
        """
        if not self.concerns(ChangeKind.CREATE, type):
            return UNCONDITIONAL
        levels = namespace.namespace.levels
        new = of_new(permit, type, namespace, name, levels=levels, after=document(), updates=updates, location=location)
        return await self.require(permit, [new])

    async def of_registration(
        self,
        permit: Permit[RegisterTable | AdoptTable | RegisterView | AdoptView],
        type: ObjectType,
        namespace: ResolvedNamespace,
        name: str,
        registered: Document,
        *,
        replaced: ResolvedTable | None = None,
        documents: Documents,
    ) -> Approval:
        """Return the approval of a registration. The approval of one file or content is not valid for another. Raises
        the errors of `require`.

        If the registration overwrites the table `replaced`, the verifiers also evaluate its drop and the change of its
        metadata.
        """
        if not self.concerns(ChangeKind.CREATE, type) and replaced is None:
            return UNCONDITIONAL
        after = registered.text
        # The hash identifies the content, because a caller with access to the storage can write other content to the
        # same file.
        content = {"sha256": await offload(lambda: hashlib.sha256(after).hexdigest(), size=len(after))}
        register = {"action": "register", "metadata-location": registered.metadata_location, **content}
        levels = namespace.namespace.levels
        proposals = [of_new(permit, type, namespace, name, levels=levels, updates=[register], after=after)]
        judged = (ChangeKind.COMMIT, ChangeKind.DROP)
        if replaced is not None and any(self.concerns(kind, type) for kind in judged):
            document = await documents.read(replaced)
            # If the table is gone, the registration replaces nothing. If the table changes from now on, the
            # registration fails.
            before = None if document is None else document.text
            updates = drop_updates(permit)
            if before is not None:
                overwrite = [{**update, **content} for update in updates]
                proposals += [
                    of_object(permit, ChangeKind.COMMIT, replaced, updates=overwrite, before=before, after=after),
                    of_object(permit, ChangeKind.DROP, replaced, updates=updates, before=before),
                ]
        return await self.require(permit, proposals)

    async def of_restoration(
        self, permit: Permit[UndropTabulars], rows: Sequence[Tabular], documents: Documents
    ) -> tuple[Approval, Mapping[UUID, Document] | None]:
        """Return (approval of the restoration of dropped objects, evaluated documents by the id of the object).

        The documents are None if no verifier evaluates restorations. Objects that are not dropped need no approval.
        Raises as `require`.
        """
        if not self.concerns(ChangeKind.RESTORE, *{row.key.type for row in rows}):
            return UNCONDITIONAL, None
        found = await documents.read_dropped([row.id for row in rows])
        proposals = [
            of_object(permit, ChangeKind.RESTORE, row, after=found[row.id].text) for row in rows if row.id in found
        ]
        return await self.require(permit, proposals), found

    async def of_warehouse(
        self, permit: Permit[DeleteWarehouse] | Permit[RenameWarehouse], row: ResolvedWarehouse
    ) -> Callable[[Connection], Awaitable[None]]:
        """Get the approval of a warehouse's deletion or rename. Return the function that marks its tickets as used.
        Raises the errors of `require`.
        """
        operation = permit.operation
        if isinstance(operation, RenameWarehouse):
            proposal = of_object(permit, ChangeKind.RENAME, row, destination=(operation.new_name,))
        else:
            proposal = of_object(permit, ChangeKind.DROP, row, updates=drop_updates(permit))
        return (await self.require(permit, [proposal])).use

    async def of_drop(self, permit: ChangingPermit, row: Tabular, documents: Documents) -> Approval:
        """Return the approval of a drop. A row that is gone needs no approval: its drop fails. Raises the errors of
        `require`.
        """
        if not self.concerns(ChangeKind.DROP, row.key.type):
            return UNCONDITIONAL
        document = await documents.read(row)
        before = None if document is None else document.text
        dropped = of_object(permit, ChangeKind.DROP, row, before=before, updates=drop_updates(permit))
        return await self.require(permit, [dropped])

    async def of_rename(
        self, permit: ChangingPermit, row: Tabular, to: ResolvedNamespace, name: str, documents: Documents
    ) -> Approval:
        """Return the approval of a rename to `name` in the namespace `to`. A move to another namespace needs its
        approvers too.
        """
        if not self.concerns(ChangeKind.RENAME, row.key.type):
            return UNCONDITIONAL
        document = await documents.read(row)
        before = None if document is None else document.text
        into = None if to.id == row.namespace.id else to.key
        destination = (*to.namespace.levels, name)
        renamed = of_object(permit, ChangeKind.RENAME, row, before=before, destination=destination, into=into)
        return await self.require(permit, [renamed])

    async def of_new_namespace(
        self,
        permit: ChangingPermit,
        container: ResolvedNamespace | ResolvedWarehouse,
        namespace: Namespace,
        properties: Mapping[str, str],
    ) -> Approval:
        """Return the approval of a new namespace in `container`. Raises the errors of `require`."""
        if not self.concerns(ChangeKind.CREATE, ObjectType.NAMESPACE):
            return UNCONDITIONAL
        new = of_new(permit, ObjectType.NAMESPACE, container, None, levels=namespace.levels, properties=properties)
        return await self.require(permit, [new])

    async def of_namespace(
        self,
        permit: ChangingPermit,
        kind: ChangeKind,
        row: ResolvedNamespace,
        *,
        properties: Mapping[str, str] | None = None,
        destination: tuple[str, ...] | None = None,
        into: ObjectKey | None = None,
    ) -> Approval:
        """Return the approval of a change of an existing namespace. `into` is the new container if the namespace is
        moved. Raises the errors of `require`.
        """
        if not self.concerns(kind, ObjectType.NAMESPACE):
            return UNCONDITIONAL
        updates = drop_updates(permit) if kind is ChangeKind.DROP else ()
        proposal = of_object(
            permit, kind, row, updates=updates, properties=properties, destination=destination, into=into
        )
        return await self.require(permit, [proposal])

    async def of_move(
        self, permit: Permit[MoveNamespace], row: ResolvedNamespace, parent: ResolvedNamespace | None, to: Namespace
    ) -> Callable[[Connection], Awaitable[None]]:
        """Get the approval to move a namespace below `parent` (None: the warehouse). Return the function that marks its
        tickets as used.

        Raises as `require`.
        """
        moves = row.ancestors[-1:] != (() if parent is None else (parent.id,))
        into = (row.warehouse if parent is None else parent).key if moves else None
        approval = await self.of_namespace(permit, ChangeKind.RENAME, row, destination=to.levels, into=into)
        return approval.use

    async def _ticket(
        self, permit: ChangingPermit, panel: Panel, proposal: Proposal, on: ObjectKey, reasons: Sequence[str]
    ) -> ChangeTicket:
        """Return the open ticket of the change for the approvers of `on`. Open a new ticket if there is none."""
        change = proposal.change
        size = sum(len(document) for document in (change.before, change.after) if document is not None)
        normalised = await offload(lambda: normalised_change(change), size=size)
        if on != proposal.on:
            normalised = {**normalised, "into": [on.type.value, on.id]}
        text = msgspec.json.encode(normalised)
        if len(text) > _LARGEST_CHANGE:
            raise ChangeRejected(
                f"The {proposal.text} needs approval and is too large for a ticket: {len(text)} bytes, at most "
                f"{_LARGEST_CHANGE}. Split it into smaller changes."
            )
        new = NewTicket(
            digest=digest_of(normalised, panel_version=panel.version),
            warehouse_id=UUID(change.warehouse_id),
            on=on,
            name=proposal.name,
            kind=change.kind.value,
            principal=permit.actor.id,
            reasons=reasons,
            # PostgreSQL cannot store a NUL character in JSON.
            change=text.replace(b"\\u0000", b"\\ufffd"),
        )
        async with self._database.transaction() as connection:
            ticket = await change_tickets.open_ticket(connection, new, lifetime=self._lifetime)
            waiting = await change_tickets.waiting(connection, new.warehouse_id, new.principal)
            if ticket.status is TicketStatus.PENDING and waiting > _MOST_WAITING:
                raise ChangeRejected(
                    f"You have {_MOST_WAITING} changes that wait for approval in this warehouse, which is the limit. "
                    "Ask an approver to decide about them first."
                )
        return ticket


def _refuse_rejected(permit: ChangingPermit, judged: Sequence[tuple[Proposal, Judgement]]) -> None:
    rejected = [
        (each, judgement.verdict.reasons, judgement.unavailable)
        for each, judgement in judged
        if isinstance(judgement.verdict, Rejected)
    ]
    if not rejected:
        return
    texts = "; ".join(f"{each.text}: {'; '.join(reasons)}" for each, reasons, _ in rejected)
    if all(unavailable for _, _, unavailable in rejected):
        permit.pending_audit.add_details(change_verdict="unavailable")
        message = f"The change cannot be verified now: {texts}. Nothing was changed. Try again later."
        if permit.operation.is_catalog_mutation():
            raise VerifierUnavailableBeforeChange(message, retry_after_s=_RETRY_SECONDS)
        raise VerifierUnavailable(message, retry_after_s=_RETRY_SECONDS)
    permit.pending_audit.add_details(change_verdict="rejected")
    raise ChangeRejected(f"The change was rejected. Nothing was changed. {texts}")


def _refuse_undecided(opened: Sequence[tuple[Proposal, ChangeTicket]]) -> None:
    """Raise ChangeRejected if a ticket was rejected, or ChangePending or ChangePendingForbidden if one waits."""
    for each, ticket in opened:
        if ticket.status is TicketStatus.REJECTED:
            comment = "" if ticket.comment is None else f": {ticket.comment}"
            raise ChangeRejected(
                f"The {each.text} was rejected by an approver (ticket {ticket.id}){comment}. Nothing was changed."
            )
    waiting = [(each, ticket) for each, ticket in opened if ticket.status is not TicketStatus.APPROVED]
    if waiting:
        raise _pending(waiting)


def _pending(waiting: Sequence[tuple[Proposal, ChangeTicket]]) -> CatalogError:
    texts = "; ".join(f"ticket {ticket.id}: {each.text}: {'; '.join(ticket.reasons)}" for each, ticket in waiting)
    message = (
        f"The change waits for approval. Nothing was changed. Run the same statement again after an approver has "
        f"approved it with `lakegate changes approve --warehouse {waiting[0][1].warehouse_id} <ticket>`. {texts}"
    )
    if any(_means_another(each.change) for each, _ in waiting):
        return ChangePendingForbidden(message)
    return ChangePending(message)


def _means_another(change: ProposedChange) -> bool:
    """Return True if clients read the 409 of this change as a taken name, or as a container that is not empty."""
    if change.kind is ChangeKind.DROP:
        return change.object_type in (ObjectType.NAMESPACE.value, ObjectType.WAREHOUSE.value)
    return change.kind in (ChangeKind.CREATE, ChangeKind.RENAME, ChangeKind.RESTORE)
