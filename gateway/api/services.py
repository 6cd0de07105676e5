# SPDX-License-Identifier: Apache-2.0
"""The services that handlers use: door, authentication, use cases and limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from litestar.types import Scope

from gateway.access.actor import Actor
from gateway.access.door import Door
from gateway.access.idempotency import IdempotencyStore
from gateway.access.shares import Shares
from gateway.access.warehouse_names import WarehouseNames
from gateway.audit.refused_logins import RefusedLogins
from gateway.catalog.commits import Commits
from gateway.catalog.config import Configurations
from gateway.catalog.credentials import Credentials
from gateway.catalog.deleted import DeletedTables
from gateway.catalog.generic_tables import GenericTables
from gateway.catalog.namespaces import Namespaces
from gateway.catalog.registrations import Registrations
from gateway.catalog.renames import Renames
from gateway.catalog.reports import Reports
from gateway.catalog.signing import Signing
from gateway.catalog.tables import Tables
from gateway.catalog.token_exchange import TokenExchange
from gateway.catalog.view_commits import ViewCommits
from gateway.catalog.views import Views
from gateway.governance.change_tickets import ChangeTickets
from gateway.governance.checks import Checks
from gateway.governance.credential_scope import CredentialScope
from gateway.governance.data_policies import DataPolicies
from gateway.governance.data_policy_bindings import DataPolicyBindings
from gateway.governance.data_policy_preview import DataPolicyPreviews
from gateway.governance.delegates import Delegates
from gateway.governance.engine_probes import EngineProbes
from gateway.governance.events import EventDeliveries
from gateway.governance.grant_lists import GrantLists
from gateway.governance.grants import Grants
from gateway.governance.live_credentials import LiveCredentials
from gateway.governance.managed_access import ManagedAccess
from gateway.governance.mapping_tables import MappingTables
from gateway.governance.namespace_moves import NamespaceMoves
from gateway.governance.policy_bundles import PolicyBundles
from gateway.governance.projects import Projects
from gateway.governance.protection import Protection
from gateway.governance.rights import Rights
from gateway.governance.roles import Roles
from gateway.governance.scim_groups import ScimGroups
from gateway.governance.scim_users import ScimUsers
from gateway.governance.search import Search
from gateway.governance.servers import Servers
from gateway.governance.statistics import Statistics
from gateway.governance.table_policies import TablePolicies
from gateway.governance.tag_attachments import TagAttachments
from gateway.governance.tags import Tags
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
    """All services of handlers. `gateway.assembly.use_cases` creates one instance per process."""

    door: Door
    shares: Shares
    """The admission control: limits the part of this process that one principal uses."""
    authenticate: Callable[[list[bytes], Scope], Awaitable[Actor]]
    """Returns the caller, by the values of the Authorization header and the proofs in the request."""
    authenticate_provisioner: Callable[[list[bytes], Scope], Awaitable[Actor]]
    """As `authenticate`, for SCIM: it accepts provisioning tokens too."""
    verify: Callable[[str], Awaitable[VerifiedToken]]
    """Verifies a token of an identity provider or of the gateway itself. Raises 401 and 503.

    It is for tokens in bodies. A token that is bound to a key of its client is refused there.
    """
    verify_caller: Callable[[list[bytes], Scope], Awaitable[VerifiedToken]]
    """As `verify`, for the values of the Authorization header: the request must prove the key of a bound token."""
    actor_of: Callable[[VerifiedToken], Actor]
    exchanges: TokenExchange
    health: HealthMonitor
    warehouse_names: WarehouseNames
    page_size_max: int
    max_view_depth: int
    """The largest number of views in `referenced-by`."""
    default_project_id: str | None
    limits: Limits
    configurations: Configurations
    namespaces: Namespaces
    tables: Tables
    commits: Commits
    views: Views
    view_commits: ViewCommits
    renames: Renames
    generic_tables: GenericTables
    registrations: Registrations
    credentials: Credentials
    signing: Signing
    deleted: DeletedTables
    servers: Servers
    users: Users
    projects: Projects
    warehouses: Warehouses
    warehouse_changes: WarehouseChanges
    warehouse_storage: WarehouseStorage
    credential_scope: CredentialScope
    grants: Grants
    grant_lists: GrantLists
    delegates: Delegates
    live_credentials: LiveCredentials
    change_tickets: ChangeTickets
    engine_probes: EngineProbes
    checks: Checks
    rights: Rights
    roles: Roles
    data_policies: DataPolicies
    data_policy_bindings: DataPolicyBindings
    table_policies: TablePolicies
    data_policy_previews: DataPolicyPreviews
    mapping_tables: MappingTables
    scim_users: ScimUsers
    scim_groups: ScimGroups
    search: Search
    statistics: Statistics
    tags: Tags
    tag_attachments: TagAttachments
    managed_access: ManagedAccess
    tasks: Tasks
    task_queues: TaskQueues
    event_deliveries: EventDeliveries
    policy_bundles: PolicyBundles
    namespace_moves: NamespaceMoves
    protection: Protection
    known_callers: set[str]
    """Cached ids of callers with a user record; bounded by `gateway.api.endpoints.users.register_caller`."""
    reports: Reports
    swagger_ui: bool = True
    """True if Swagger UI and the OpenAPI documents are served."""
    ui: bool = True
    """True if the page `/ui` is served."""
    sign_in: Callable[[], Awaitable[SignIn | None]] | None = None
    """Returns the endpoints for signing in with a browser; None if sign-in is not configured."""
    idempotency: IdempotencyStore | None = None
    """The store of idempotency keys; None if keys are disabled."""
    refused_logins: RefusedLogins | None = None
    """Counts refused logins for the audit log; None if they are not recorded."""
