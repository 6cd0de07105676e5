# SPDX-License-Identifier: Apache-2.0
"""Operations of the gateway's background tasks, each as narrow as its task needs.

They demand no relation, because the right was decided when the task was created. Policies decide about them, and every
run is in the audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Facts
from gateway.access.operation import Durability, SystemTask
from gateway.access.refs import ProjectRef, Ref, WarehouseRef


@dataclass(frozen=True)
class _InWarehouse:
    """Mixin of tasks that change something in one warehouse."""

    warehouse: WarehouseRef

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.warehouse,)


@dataclass(frozen=True)
class _OfTable(_InWarehouse):
    """Mixin of tasks that remove a table or a view."""

    table_id: UUID

    def facts(self) -> Facts:
        return {"table_id": str(self.table_id)}


@dataclass(frozen=True)
class PurgeTable(_OfTable, SystemTask):
    """Delete every file below the place of a table that was dropped with its files."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"tabular_purge"})
    location: str

    def facts(self) -> Facts:
        return {**super().facts(), "location": self.location}


@dataclass(frozen=True)
class ExpireStagedTable(_OfTable, SystemTask):
    """Forget a table that was staged and never made, and have its files deleted."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"expire_staged_table"})


@dataclass(frozen=True)
class ExpireDeleted(_OfTable, SystemTask):
    """End a table or view that was dropped, once the time in which it could be brought back is over."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"soft_deletion"})


@dataclass(frozen=True)
class CleanTaskLog(SystemTask):
    """Forget a project's tasks that ended long ago."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"task_log_cleanup"})
    project: ProjectRef

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class SweepMetadataFiles(_InWarehouse, SystemTask):
    """Delete metadata files that were written for changes that never happened."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"sweep_metadata_files"})
    files: tuple[str, ...]

    def facts(self) -> Facts:
        return {"files": self.files}


@dataclass(frozen=True)
class CompareTuples(SystemTask):
    """Compare every relationship in OpenFGA with what the rows want. Repairing what differs is `RepairDrift`."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"reconcile_tuples"})
    durability: ClassVar[Durability] = Durability.BUFFERED
    repairs: bool

    def facts(self) -> Facts:
        return {"repairs": self.repairs}


@dataclass(frozen=True)
class RepairDrift(SystemTask):
    """Make OpenFGA and the rows agree again on the relationships that were found to differ (section 5, "Drift").

    `tuples` are `user relation object` as OpenFGA has them, `kinds` what is wrong with each, in the same order.
    """

    system_tasks: ClassVar[frozenset[str]] = frozenset({"watch_drift", "reconcile_tuples"})
    goes_on_because: ClassVar[str] = "a right that nobody gave must not stay in force for as long as maintenance takes"
    tuples: tuple[str, ...]
    kinds: tuple[str, ...]

    def facts(self) -> Facts:
        return {"tuples": self.tuples, "kinds": self.kinds}


@dataclass(frozen=True)
class ChangeEncryptionKey(SystemTask):
    """Seal stored credentials with the first of the configured keys; `secrets` are their ids, never what they hold."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"change_encryption_key"})
    goes_on_because: ClassVar[str] = "it changes how secrets are kept and none of them, and a leaked key is urgent"
    secrets: tuple[str, ...]

    def facts(self) -> Facts:
        return {"secrets": self.secrets}


@dataclass(frozen=True)
class WithdrawSigningKeys(SystemTask):
    """End the keys of the gateway's own tokens, and with them every token they signed."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"withdraw_signing_keys"})
    goes_on_because: ClassVar[str] = "it only takes away, and a leaked key is urgent"


@dataclass(frozen=True)
class ReopenBootstrap(SystemTask):
    """Let the server be bootstrapped once more: who does it first with a token administers it, or only `user_id`."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"reopen_bootstrap"})
    user_id: str | None = None

    def facts(self) -> Facts:
        return {} if self.user_id is None else {"user_id": self.user_id}

    def told(self) -> Mapping[str, str]:
        return {} if self.user_id is None else {"bootstrap_for": self.user_id}


@dataclass(frozen=True)
class IssueScimToken(SystemTask):
    """Make a token with which a provider's directory comes (SCIM). It gives no right: that is granted to its user."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"scim_tokens"})
    provider_id: str
    project_id: str
    days: int

    def facts(self) -> Facts:
        return {"provider_id": self.provider_id, "project_id": self.project_id, "days": self.days}


@dataclass(frozen=True)
class RevokeScimToken(SystemTask):
    """End a token for provisioning, with the next request that comes with it."""

    system_tasks: ClassVar[frozenset[str]] = frozenset({"scim_tokens"})
    goes_on_because: ClassVar[str] = "it only takes away, and a leaked token is urgent"
    id: UUID

    def facts(self) -> Facts:
        return {"about": str(self.id)}
