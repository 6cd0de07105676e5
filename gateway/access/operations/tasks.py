# SPDX-License-Identifier: Apache-2.0
"""What the gateway does by itself, in the background: each the narrowest thing its task needs.

No relation is asked for, because the right to it was decided when the task was made; policies are asked, and every run
is in the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import ProjectRef, Ref, WarehouseRef


@dataclass(frozen=True)
class _InWarehouse:
    """Part of what changes something in one warehouse."""

    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    warehouse: WarehouseRef

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.warehouse,)


@dataclass(frozen=True)
class _OfTable(_InWarehouse):
    """Part of what ends a table, or a view."""

    table_id: UUID

    def facts(self) -> Facts:
        return {"table_id": str(self.table_id)}


@dataclass(frozen=True)
class PurgeTable(_OfTable, Operation):
    """Delete every file below the place of a table that was dropped with its files."""

    endpoint: ClassVar[str] = "TASK /tasks/tabular_purge"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"tabular_purge"})
    location: str

    def facts(self) -> Facts:
        return {**super().facts(), "location": self.location}


@dataclass(frozen=True)
class ExpireStagedTable(_OfTable, Operation):
    """Forget a table that was staged and never made, and have its files deleted."""

    endpoint: ClassVar[str] = "TASK /tasks/expire_staged_table"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"expire_staged_table"})


@dataclass(frozen=True)
class ExpireDeleted(_OfTable, Operation):
    """End a table or view that was dropped, once the time in which it could be brought back is over."""

    endpoint: ClassVar[str] = "TASK /tasks/soft_deletion"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"soft_deletion"})


@dataclass(frozen=True)
class CleanTaskLog(Operation):
    """Forget a project's tasks that ended long ago."""

    endpoint: ClassVar[str] = "TASK /tasks/task_log_cleanup"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"task_log_cleanup"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    project: ProjectRef

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class SweepMetadataFiles(_InWarehouse, Operation):
    """Delete metadata files that were written for changes that never happened."""

    endpoint: ClassVar[str] = "TASK /tasks/sweep_metadata_files"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"sweep_metadata_files"})
    files: tuple[str, ...]

    def facts(self) -> Facts:
        return {"files": self.files}


@dataclass(frozen=True)
class CompareTuples(Operation):
    """Compare every relationship in OpenFGA with what the rows want. Repairing what differs is `RepairDrift`."""

    endpoint: ClassVar[str] = "TASK /tasks/reconcile_tuples"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"reconcile_tuples"})
    repairs: bool

    def facts(self) -> Facts:
        return {"repairs": self.repairs}


@dataclass(frozen=True)
class RepairDrift(Operation):
    """Make OpenFGA and the rows agree again on the relationships that were found to differ (section 5, "Drift").

    `tuples` are `user relation object` as OpenFGA has them, `kinds` what is wrong with each, in the same order.
    """

    endpoint: ClassVar[str] = "TASK /tasks/repair_drift"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"watch_drift", "reconcile_tuples"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    goes_on_because: ClassVar[str] = "a right that nobody gave must not stay in force for as long as maintenance takes"
    tuples: tuple[str, ...]
    kinds: tuple[str, ...]

    def facts(self) -> Facts:
        return {"tuples": self.tuples, "kinds": self.kinds}


@dataclass(frozen=True)
class ChangeEncryptionKey(Operation):
    """Seal stored credentials with the first of the configured keys; `secrets` are their ids, never what they hold."""

    endpoint: ClassVar[str] = "TASK /tasks/change_encryption_key"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"change_encryption_key"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    goes_on_because: ClassVar[str] = "it changes how secrets are kept and none of them, and a leaked key is urgent"
    secrets: tuple[str, ...]

    def facts(self) -> Facts:
        return {"secrets": self.secrets}


@dataclass(frozen=True)
class WithdrawSigningKeys(Operation):
    """End the keys of the gateway's own tokens, and with them every token they signed."""

    endpoint: ClassVar[str] = "TASK /tasks/withdraw_signing_keys"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"withdraw_signing_keys"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    goes_on_because: ClassVar[str] = "it only takes away, and a leaked key is urgent"


@dataclass(frozen=True)
class ReopenBootstrap(Operation):
    """Let the server be bootstrapped once more: who does it first with a token administers it, or only `user_id`."""

    endpoint: ClassVar[str] = "TASK /tasks/reopen_bootstrap"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"reopen_bootstrap"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    user_id: str | None = None

    def facts(self) -> Facts:
        return {} if self.user_id is None else {"user_id": self.user_id}

    def told(self) -> Mapping[str, str]:
        return {} if self.user_id is None else {"bootstrap_for": self.user_id}


@dataclass(frozen=True)
class IssueScimToken(Operation):
    """Make a token with which a provider's directory comes (SCIM). It gives no right: that is granted to its user."""

    endpoint: ClassVar[str] = "TASK /tasks/issue_scim_token"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"scim_tokens"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    provider_id: str
    project_id: str
    days: int

    def facts(self) -> Facts:
        return {"provider_id": self.provider_id, "project_id": self.project_id, "days": self.days}


@dataclass(frozen=True)
class RevokeScimToken(Operation):
    """End a token for provisioning, with the next request that comes with it."""

    endpoint: ClassVar[str] = "TASK /tasks/revoke_scim_token"
    system_tasks: ClassVar[frozenset[str]] = frozenset({"scim_tokens"})
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    goes_on_because: ClassVar[str] = "it only takes away, and a leaked token is urgent"
    id: UUID

    def facts(self) -> Facts:
        return {"about": str(self.id)}
