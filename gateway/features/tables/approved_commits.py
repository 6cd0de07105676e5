# SPDX-License-Identifier: Apache-2.0
"""Commit changes that verifiers must approve: describe the change, query the verifiers, and commit.

If another commit was faster, the change is described and the verifiers are queried again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar
from uuid import UUID

from gateway.access.nouns.refs import ObjectType
from gateway.db.tables.documents import Document
from gateway.features.approvals.change_approval import Approval
from gateway.features.approvals.change_proposals import ChangingPermit, Proposal, of_new, of_object
from gateway.features.tables.changes import Change, TableChange
from gateway.features.tables.commit_retry import CommitConflict
from gateway.iceberg.commit import CommitOutcome
from gateway.iceberg.errors import CommitFailedException
from gateway.iceberg.metadata import encode_table_metadata
from gateway.iceberg.updates import TableUpdate, ViewUpdate
from gateway.offloading import offload
from gateway.verification.builtin.documents import keep_parsed
from gateway.verification.port import ChangeKind

_ATTEMPTS: Final = 4

State = TypeVar("State")
Answer = TypeVar("Answer")


class ApprovedStateChanged(Exception):
    """Another commit changed the table or view after the verifiers evaluated this one. Nothing was changed."""


async def commit_approved(
    state: State,
    *,
    reread: Callable[[State], Awaitable[State]],
    approve: Callable[[State], Awaitable[Approval]],
    commit: Callable[[State, Approval], Awaitable[Answer]],
) -> Answer:
    """Query the verifiers about the change of `state`, and commit it. If another commit was faster, do both again on
    the new state.

    `approve` is called outside of the commit queue, so that a slow verifier delays no other commit. `commit` raises
    ApprovedStateChanged if the state has changed. Raises CommitFailedException (409) if other commits are faster at
    every attempt.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await commit(state, await approve(state))
        except (ApprovedStateChanged, CommitConflict):
            state = await reread(state)
    raise CommitFailedException(
        "Commit failed: concurrent commits changed the table or view each time while the change was verified. Try "
        "again."
    )


def require_same_state(approved: Sequence[Change], now: Sequence[Change]) -> None:
    """Raise ApprovedStateChanged if the metadata file of a table has changed since the verifiers evaluated the
    commit.
    """
    if [each.previous for each in approved] != [each.previous for each in now]:
        raise ApprovedStateChanged


def actions_of(updates: Sequence[TableUpdate | ViewUpdate]) -> frozenset[str]:
    """Return the kinds of the updates, by their names in the protocol."""
    return frozenset(str(type(each).__struct_config__.tag) for each in updates)


def kind_of(change: Change) -> ChangeKind:
    """Return the kind of change by which verifiers are selected and queried."""
    return ChangeKind.COMMIT if isinstance(change, TableChange) else ChangeKind.CREATE


async def proposals_of(
    permit: ChangingPermit,
    changes: Sequence[Change],
    outcomes: Sequence[CommitOutcome],
    before: Mapping[UUID, Document],
) -> list[Proposal]:
    """Return the proposals for the tables that the commit changes."""
    pairs = [each for each in zip(changes, outcomes, strict=True) if each[1].changed]
    size = sum(len(document.text) for document in before.values()) + sum(change.extent for change, _ in pairs)
    return await offload(lambda: [_proposal(permit, change, outcome, before) for change, outcome in pairs], size=size)


def _proposal(
    permit: ChangingPermit, change: Change, outcome: CommitOutcome, before: Mapping[UUID, Document]
) -> Proposal:
    after = encode_table_metadata(outcome.metadata)
    proposal = _of_change(permit, change, before, after)
    keep_parsed(proposal.change, after=outcome.metadata)
    return proposal


def _of_change(permit: ChangingPermit, change: Change, before: Mapping[UUID, Document], after: bytes) -> Proposal:
    if isinstance(change, TableChange):
        return of_object(
            permit,
            ChangeKind.COMMIT,
            change.table,
            updates=change.request.updates,
            before=before[change.table.id].text,
            after=after,
        )
    return of_new(
        permit,
        ObjectType.TABLE,
        change.namespace,
        change.identifier.name,
        levels=change.namespace.namespace.levels,
        updates=change.updates,
        after=after,
        location=change.location.text if change.chosen else None,
    )
