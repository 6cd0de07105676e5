# SPDX-License-Identifier: Apache-2.0
"""Operations of the gateway's background tasks. Each allows only what its task needs.

They demand no relation, because the right was decided when the task was created. Policies decide about them, and the
audit records every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration, EventPerFurtherChange
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import Ref, WarehouseRef
from gateway.access.operation import Durability, SystemTask


@dataclass(frozen=True)
class _InWarehouse:
    """Mixin of tasks that change something in one warehouse."""

    warehouse: WarehouseRef

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.warehouse,)


@dataclass(frozen=True)
class _OfTable(_InWarehouse):
    """Mixin of tasks that remove a table or a view."""

    table_id: UUID

    def facts(self) -> Facts:
        return {"table_id": str(self.table_id)}


@dataclass(frozen=True)
class PurgeTable(_OfTable, SystemTask):
    """Delete every file below the location of a dropped table. Its files were to be deleted with it."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"tabular_purge"})
    location: str

    def facts(self) -> Facts:
        return {**super().facts(), "location": self.location}


@dataclass(frozen=True)
class ExpireStagedTable(_OfTable, SystemTask):
    """Remove a staged table that was never committed, and schedule the deletion of its files."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"expire_staged_table"})


@dataclass(frozen=True)
class ExpireDeleted(_OfTable, SystemTask):
    """Remove a dropped table or view permanently, after the period in which it could be restored."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"soft_deletion"})
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="warehouse", new="table_id", kind_in="kind", type="expireDeletedTabular"
    )


@dataclass(frozen=True)
class CleanTaskLog(SystemTask):
    """Delete the records of a project's tasks that ended long ago."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"task_log_cleanup"})
    project: ProjectRef

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class SweepMetadataFiles(_InWarehouse, SystemTask):
    """Delete metadata files that were written for commits that never succeeded."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"sweep_metadata_files"})
    files: tuple[str, ...]

    def facts(self) -> Facts:
        return {"files": self.files}


@dataclass(frozen=True)
class VerifyCredentialScope(_InWarehouse, SystemTask):
    """Test on the live store whether vended credentials stay within their scope, and store the verdict."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"verify_credential_scope"})


@dataclass(frozen=True)
class CompareTuples(SystemTask):
    """Compare every relationship in OpenFGA with the rows of PostgreSQL. `RepairDrift` repairs differences."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"reconcile_tuples"})
    durability: ClassVar[Durability] = Durability.BUFFERED
    repairs: bool

    def facts(self) -> Facts:
        return {"repairs": self.repairs}


@dataclass(frozen=True)
class RepairDrift(SystemTask):
    """Repair drift: make the tuples in OpenFGA equal to those that the rows of PostgreSQL require.

    `tuples` are `user relation object` as in OpenFGA. `kinds` are the kinds of the differences, in the same order.
    """

    system_tasks: ClassVar[frozenset[str]] = frozenset({"watch_drift", "reconcile_tuples"})
    event: ClassVar[EventDeclaration] = EventPerFurtherChange()
    continue_reason: ClassVar[str] = "a right that nobody gave must not stay in force for as long as maintenance takes"
    tuples: tuple[str, ...]
    kinds: tuple[str, ...]

    def facts(self) -> Facts:
        return {"tuples": self.tuples, "kinds": self.kinds}


@dataclass(frozen=True)
class ChangeEncryptionKey(SystemTask):
    """Encrypt stored credentials with the first of the configured keys. `secrets` are the ids of the credentials."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"change_encryption_key"})
    continue_reason: ClassVar[str] = "it changes how secrets are kept and none of them, and a leaked key is urgent"
    secrets: tuple[str, ...]

    def facts(self) -> Facts:
        return {"secrets": self.secrets}


@dataclass(frozen=True)
class MoveSecret(SystemTask):
    """Move the storage credential of warehouses into another secret store.

    `secret` is the id of the credential before the move.
    """

    system_tasks: ClassVar[frozenset[str]] = frozenset({"move_secrets"})
    continue_reason: ClassVar[str] = "it changes where a secret is kept and not the secret, and needs no pause"
    secret: str
    to: str

    def facts(self) -> Facts:
        return {"secret": self.secret, "to": self.to}


@dataclass(frozen=True)
class WithdrawSigningKeys(SystemTask):
    """Revoke the keys that sign the gateway's own tokens. Every token signed with them becomes invalid."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"withdraw_signing_keys"})
    continue_reason: ClassVar[str] = "it only takes away, and a leaked key is urgent"


@dataclass(frozen=True)
class ReopenBootstrap(SystemTask):
    """Allow one more bootstrap: by the first caller with a token, or only by `user_id` if it is set."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"reopen_bootstrap"})
    user_id: str | None = None

    def facts(self) -> Facts:
        return {} if self.user_id is None else {"user_id": self.user_id}

    def audit_details(self) -> Mapping[str, str]:
        return {} if self.user_id is None else {"bootstrap_for": self.user_id}


@dataclass(frozen=True)
class IssueScimToken(SystemTask):
    """Issue a provisioning token for the directory of an identity provider (SCIM).

    The token gives no right: its user needs a grant.
    """

    system_tasks: ClassVar[frozenset[str]] = frozenset({"scim_tokens"})
    provider_id: str
    project_id: str
    days: int

    def facts(self) -> Facts:
        return {"provider_id": self.provider_id, "project_id": self.project_id, "days": self.days}


@dataclass(frozen=True)
class RevokeScimToken(SystemTask):
    """Revoke a provisioning token. It is refused from the next request on."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"scim_tokens"})
    continue_reason: ClassVar[str] = "it only takes away, and a leaked token is urgent"
    id: UUID

    def facts(self) -> Facts:
        return {"about": str(self.id)}


@dataclass(frozen=True)
class _EventCommand(SystemTask, abstract=True):
    """Mixin of changes that the command line makes to the event outbox. `sinks` are the names of sinks."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"event_commands"})
    sinks: tuple[str, ...]

    def facts(self) -> Facts:
        return {"sinks": self.sinks}

    def audit_details(self) -> Mapping[str, str]:
        return {"sinks": ",".join(self.sinks)}


@dataclass(frozen=True)
class ReplayEventsByCommand(_EventCommand):
    """Send all stored events again, from `start` on, which is a sequence number or a time."""

    start: str

    def audit_details(self) -> Mapping[str, str]:
        return {**super().audit_details(), "from": self.start}


@dataclass(frozen=True)
class RetryDeadLettersByCommand(_EventCommand):
    """Resend the dead letters of the sinks."""


@dataclass(frozen=True)
class ForgetEventSink(SystemTask):
    """Delete the waiting events and dead letters of a sink that is not in the settings."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"event_commands"})
    sink: str

    def facts(self) -> Facts:
        return {"sink": self.sink}

    def audit_details(self) -> Mapping[str, str]:
        return {"sink": self.sink}
