# SPDX-License-Identifier: Apache-2.0
"""The services that handlers may use: the door, the use cases, and readers of requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.access.actor import Actor
from gateway.access.door import Door
from gateway.access.idempotency import Repetitions
from gateway.access.shares import Shares
from gateway.catalog.commits import Commits
from gateway.catalog.config import Configurations
from gateway.catalog.credentials import Credentials
from gateway.catalog.deleted import DeletedTables
from gateway.catalog.generic_tables import GenericTables
from gateway.catalog.namespaces import Namespaces
from gateway.catalog.registrations import Registrations
from gateway.catalog.renames import Renames
from gateway.catalog.reports import Reports
from gateway.catalog.tables import Tables
from gateway.catalog.token_exchange import TokenExchange
from gateway.catalog.views import Views
from gateway.governance.checks import Checks
from gateway.governance.grant_lists import GrantLists
from gateway.governance.grants import Grants
from gateway.governance.managed_access import ManagedAccess
from gateway.governance.namespace_moves import NamespaceMoves
from gateway.governance.projects import Projects
from gateway.governance.protection import Protection
from gateway.governance.rights import Rights
from gateway.governance.roles import Roles
from gateway.governance.scim_groups import ScimGroups
from gateway.governance.scim_users import ScimUsers
from gateway.governance.search import Search
from gateway.governance.servers import Servers
from gateway.governance.statistics import Statistics
from gateway.governance.task_queues import TaskQueues
from gateway.governance.tasks import Tasks
from gateway.governance.users import Users
from gateway.governance.warehouse_changes import WarehouseChanges
from gateway.governance.warehouse_storage import WarehouseStorage
from gateway.governance.warehouses import Warehouses
from gateway.iceberg.limits import Limits
from gateway.identity.sign_in import SignIn
from gateway.identity.tokens import VerifiedToken
from gateway.telemetry.health import HealthMonitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything handlers may reach, made once per process by `app.py`."""

    door: Door
    shares: Shares
    """Bounds what each caller may use of this process at the same time."""
    authenticate: Callable[[list[bytes]], Awaitable[Actor]]
    authenticate_provisioner: Callable[[list[bytes]], Awaitable[Actor]]
    """As `authenticate`, for SCIM alone, where tokens for provisioning are taken as well."""
    verify: Callable[[str], Awaitable[VerifiedToken]]
    """What a token proves, a provider's or one of ours; raises 401 and 503."""
    actor_of: Callable[[VerifiedToken], Actor]
    exchanges: TokenExchange
    health: HealthMonitor
    page_size_max: int
    passages_max: int
    """Most views that something may be read through."""
    default_project_id: str | None
    limits: Limits
    configurations: Configurations
    namespaces: Namespaces
    tables: Tables
    commits: Commits
    views: Views
    renames: Renames
    generic_tables: GenericTables
    registrations: Registrations
    credentials: Credentials
    deleted: DeletedTables
    servers: Servers
    users: Users
    projects: Projects
    warehouses: Warehouses
    warehouse_changes: WarehouseChanges
    warehouse_storage: WarehouseStorage
    grants: Grants
    grant_lists: GrantLists
    checks: Checks
    rights: Rights
    roles: Roles
    scim_users: ScimUsers
    scim_groups: ScimGroups
    search: Search
    statistics: Statistics
    managed_access: ManagedAccess
    tasks: Tasks
    task_queues: TaskQueues
    namespace_moves: NamespaceMoves
    protection: Protection
    met: set[str]
    """Ids of callers this process has seen to have a user record; bounded by `Ctx.meet`."""
    reports: Reports
    swagger_ui: bool = True
    """Whether the page of the interface and its documents are served."""
    ui: bool = True
    """Whether the page to sign in on is served."""
    sign_in: Callable[[], Awaitable[SignIn | None]] | None = None
    """Where people sign in with a browser; None when that is not set up."""
    repetitions: Repetitions | None = None
    """What remembers successes under idempotency keys; None when keys are not heeded."""
