# SPDX-License-Identifier: Apache-2.0
"""The services that handlers use: door, authentication, use cases and limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from litestar.types import Scope

from gateway.access.actor import Actor
from gateway.access.door.door import Door
from gateway.access.idempotency import IdempotencyStore
from gateway.access.nouns.warehouse_names import WarehouseNames
from gateway.access.shares.shares import Shares
from gateway.audit.refused_logins import RefusedLogins
from gateway.features.approvals.change_tickets import ChangeTickets
from gateway.features.credentials.credential_scope import CredentialScope
from gateway.features.credentials.credentials import Credentials
from gateway.features.credentials.live_credentials import LiveCredentials
from gateway.features.credentials.signing import Signing
from gateway.features.deletion.deleted import DeletedTables
from gateway.features.deletion.protection import Protection
from gateway.features.engines.engine_probes import EngineProbes
from gateway.features.engines.token_exchange import TokenExchange
from gateway.features.events.events import EventDeliveries
from gateway.features.grants.checks import Checks
from gateway.features.grants.delegates import Delegates
from gateway.features.grants.grant_lists import GrantLists
from gateway.features.grants.grants import Grants
from gateway.features.grants.managed_access import ManagedAccess
from gateway.features.grants.rights import Rights
from gateway.features.namespaces.namespace_moves import NamespaceMoves
from gateway.features.namespaces.namespaces import Namespaces
from gateway.features.namespaces.registrations import Registrations
from gateway.features.policies.data_policies import DataPolicies
from gateway.features.policies.data_policy_bindings import DataPolicyBindings
from gateway.features.policies.mapping_tables import MappingTables
from gateway.features.policies.table_policies import DataPolicyPreviews, TablePolicies
from gateway.features.principals.roles import Roles
from gateway.features.principals.scim_groups import ScimGroups
from gateway.features.principals.scim_users import ScimUsers
from gateway.features.principals.users import Users
from gateway.features.server.config import Configurations
from gateway.features.server.policy_bundles import PolicyBundles
from gateway.features.server.servers import Servers
from gateway.features.server.statistics import Reports, Statistics
from gateway.features.tables.commits import Commits
from gateway.features.tables.generic_tables import GenericTables
from gateway.features.tables.renames import Renames
from gateway.features.tables.search import Search
from gateway.features.tables.tables import Tables
from gateway.features.tags.tag_attachments import TagAttachments
from gateway.features.tags.tags import Tags
from gateway.features.tasks.task_queues import TaskQueues
from gateway.features.tasks.tasks import Tasks
from gateway.features.views.view_commits import ViewCommits
from gateway.features.views.views import Views
from gateway.features.warehouses.projects import Projects
from gateway.features.warehouses.warehouse_changes import WarehouseChanges
from gateway.features.warehouses.warehouse_storage import WarehouseStorage
from gateway.features.warehouses.warehouses import Warehouses
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
    """Cached ids of callers with a user record; bounded by `gateway.features.principals.routes.register_caller`."""
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
