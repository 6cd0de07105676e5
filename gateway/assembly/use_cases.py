# SPDX-License-Identifier: Apache-2.0
"""Create the use cases with their dependencies."""

from __future__ import annotations

from uuid import UUID

import msgspec

from gateway.access.actor import Actor, provisioner_of
from gateway.access.door.door import Door
from gateway.access.door.list_visibility import ReachesInUse
from gateway.access.nouns.warehouse_names import WarehouseNames
from gateway.api.authentication import Authentication
from gateway.api.services import Services
from gateway.assembly.adapters import Stores, delegated_tokens
from gateway.assembly.change_approval import open_change_approval
from gateway.assembly.engines import EnginesByToken, engine_reads, owner_properties, probe_rules
from gateway.assembly.identity import Identity, actor_of_token
from gateway.assembly.limits import metadata_limits, open_shares
from gateway.assembly.policies import policy_source
from gateway.audit.refused_logins import RefusedLogins
from gateway.db.engine.advisory_locks import AdvisoryLocks
from gateway.db.engine.database import Database
from gateway.db.principals.scim_tokens import ScimTokens
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.tables.documents import DocumentCache, Documents
from gateway.db.tables.pending_files import PendingFiles
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.idempotency import Idempotency
from gateway.db.warehouses.read_pool import ReadPool
from gateway.features.approvals.change_tickets import ChangeTickets
from gateway.features.contents.lists import Lists
from gateway.features.credentials.credential_scope import CredentialScope
from gateway.features.credentials.credentials import Credentials
from gateway.features.credentials.live_credentials import LiveCredentials
from gateway.features.credentials.signing import Signing
from gateway.features.credentials.storage_reports import StorageValidator
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
from gateway.features.metadata.metadata_files import MetadataFiles
from gateway.features.namespaces.namespace_moves import NamespaceMoves
from gateway.features.namespaces.namespaces import Namespaces
from gateway.features.namespaces.registrations import Registrations
from gateway.features.policies.data_policies import DataPolicies
from gateway.features.policies.data_policy_bindings import DataPolicyBindings
from gateway.features.policies.mapping_tables import MappingTables
from gateway.features.policies.table_policies import DataPolicyPreviews, TablePolicies
from gateway.features.principals.roles import Roles
from gateway.features.principals.scim_groups import ScimGroups
from gateway.features.principals.scim_resources import ScimSources
from gateway.features.principals.scim_users import ScimUsers
from gateway.features.principals.users import Users
from gateway.features.server.config import Configurations
from gateway.features.server.policy_bundles import PolicyBundles
from gateway.features.server.servers import Servers
from gateway.features.server.statistics import Reports, Statistics
from gateway.features.tables.chosen_locations import ChosenLocations
from gateway.features.tables.commits import Commits
from gateway.features.tables.generic_tables import GenericTables
from gateway.features.tables.labels import Labels
from gateway.features.tables.renames import Renames
from gateway.features.tables.search import Search
from gateway.features.tables.tables import Tables
from gateway.features.tags.tag_attachments import TagAttachments
from gateway.features.tags.tags import Tags
from gateway.features.tasks.task_queues import TaskQueues
from gateway.features.tasks.tasks import Tasks
from gateway.features.views.view_commits import ViewCommits
from gateway.features.views.view_owners import ViewOwners
from gateway.features.views.views import Views
from gateway.features.warehouses.projects import Projects
from gateway.features.warehouses.warehouse_changes import WarehouseChanges
from gateway.features.warehouses.warehouse_storage import WarehouseStorage
from gateway.features.warehouses.warehouses import Warehouses
from gateway.identity import provisioning
from gateway.identity.errors import AuthenticationFailed, Refusal
from gateway.identity.tokens import VerifiedToken
from gateway.settings import Settings
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from gateway.vending.remote_signing import RemoteSigner, SigningOffers
from gateway.vending.scope_verdict import Enforcement, ScopeRule
from gateway.verification.panel import Panel


def build_services(
    settings: Settings,
    metrics: Metrics,
    database: Database,
    reads: ReadPool,
    door: Door,
    delivery: TupleDelivery,
    health: HealthMonitor,
    identity: Identity,
    server_id: UUID,
    stores: Stores,
    reaches: ReachesInUse,
    refused_logins: RefusedLogins | None,
    panel: Panel | None = None,
) -> Services:
    """Return the services of the handlers, from the components of the process."""
    approval = open_change_approval(settings, database, panel)
    lists = Lists(database, door, reaches)
    once = settings.idempotency
    limits = metadata_limits(settings)
    metadata_files = MetadataFiles(
        files=stores.files,
        storage=stores.storage,
        vendor=stores.vendor,
        pending=PendingFiles(database),
        limits=limits,
    )
    signer = RemoteSigner(stores.clients, stores.vendor)
    scope = ScopeRule(Enforcement(settings.canary.enforce))
    credentials = Credentials(
        database=database,
        door=door,
        vendor=stores.vendor,
        storage=stores.storage,
        signing=SigningOffers(signer, base_uri=settings.base_uri),
        scope=scope,
    )
    documents = Documents(
        database, DocumentCache(settings.memory.documents, metrics), max_together=settings.limits.transaction_size
    )
    chosen = ChosenLocations(database=database, door=door)
    labels = Labels(database, enabled=settings.tag_labels)
    tables = Tables(
        labels=labels,
        database=database,
        door=door,
        delivery=delivery,
        files=metadata_files,
        credentials=credentials,
        lists=lists,
        documents=documents,
        chosen=chosen,
        approval=approval,
    )
    locks = AdvisoryLocks(database)
    providers = list(settings.identity_providers())
    owners = ViewOwners(
        sole_provider=providers[0] if len(providers) == 1 else None,
        protected=owner_properties(settings.trusted_engines),
    )
    views = Views(
        labels=labels,
        database=database,
        delivery=delivery,
        files=metadata_files,
        lists=lists,
        owners=owners,
        documents=documents,
        chosen=chosen,
        approval=approval,
    )
    trials = StorageValidator(
        clients=stores.clients,
        rules=stores.rules,
        skip=settings.skip_storage_validation,
        request_seconds=settings.max_request_time,
    )
    default_project = settings.default_project_id if settings.enable_default_project else None
    delegated = delegated_tokens(stores.sealer, database, server_id)
    instance_admins = frozenset(settings.instance_admins)
    engines = EnginesByToken(settings.trusted_engines)

    async def verify_any(token: str) -> VerifiedToken:
        if provisioning.has_token_type(token):
            raise AuthenticationFailed(
                "a provisioning token is valid only for the paths below /scim/v2; send a user's token for other paths",
                Refusal.WRONG_KIND,
            )
        return await (delegated if delegated.has_token_type(token) else identity.router).verify(token)

    def actor_of(token: VerifiedToken) -> Actor:
        return actor_of_token(token, instance_admins, engines)

    provisioning_tokens = ScimTokens(database)

    async def provisioner_of(token: str) -> Actor | None:
        if not provisioning.has_token_type(token):
            return None
        return _provisioner(await provisioning.verify(token, provisioning_tokens))

    authentication = Authentication(
        verify_any=verify_any, possession=identity.possession, actor_of=actor_of, provisioner_of=provisioner_of
    )

    sources = ScimSources(
        {id: each.scim_subject for id, each in settings.identity_providers().items() if each.scim_subject is not None}
    )

    return Services(
        door=door,
        shares=open_shares(settings, metrics),
        authenticate=authentication.authenticate,
        authenticate_provisioner=authentication.authenticate_provisioner,
        verify=authentication.verify,
        verify_caller=authentication.verify_caller,
        actor_of=actor_of,
        exchanges=TokenExchange(database=database, resolver=DatabaseResolver(database), door=door, tokens=delegated),
        health=health,
        warehouse_names=WarehouseNames(DatabaseResolver(database)),
        swagger_ui=settings.serve_swagger_ui,
        ui=settings.ui.enabled,
        sign_in=identity.sign_in,
        page_size_max=settings.pagination_size_max,
        max_view_depth=settings.referenced_by.max_nesting_depth,
        limits=limits,
        default_project_id=default_project,
        configurations=Configurations(
            base_uri=settings.base_uri,
            page_size=settings.pagination_size_default,
            idempotency_seconds=once.lifetime if once.enabled else None,
        ),
        namespaces=Namespaces(
            database=database,
            lists=lists,
            delivery=delivery,
            reserved=frozenset(name.lower() for name in settings.reserved_namespaces),
            limits=limits,
            approval=approval,
        ),
        tables=tables,
        commits=Commits(
            database=database,
            delivery=delivery,
            files=metadata_files,
            locks=locks,
            documents=documents,
            chosen=chosen,
            approval=approval,
        ),
        views=views,
        view_commits=ViewCommits(
            database=database,
            files=metadata_files,
            locks=locks,
            owners=owners,
            documents=documents,
            chosen=chosen,
            approval=approval,
        ),
        renames=Renames(database=database, door=door, delivery=delivery, documents=documents, approval=approval),
        generic_tables=GenericTables(
            database=database,
            door=door,
            delivery=delivery,
            files=metadata_files,
            credentials=credentials,
            lists=lists,
            documents=documents,
            chosen=chosen,
            approval=approval,
        ),
        registrations=Registrations(
            database=database, door=door, delivery=delivery, files=metadata_files, views=views, documents=documents
        ),
        credentials=credentials,
        signing=Signing(database=database, signer=signer, storage=stores.storage, scope=scope),
        deleted=DeletedTables(database=database, lists=lists, documents=documents, approval=approval),
        servers=Servers(
            database=database,
            delivery=delivery,
            server_id=server_id,
            default_project_id=default_project,
            system_identities=settings.enabled_system_identities(),
        ),
        users=Users(database=database, reads=reads, delivery=delivery, page_size=settings.pagination_size_max),
        projects=Projects(database=database, door=door, delivery=delivery, server_id=server_id, reaches=reaches),
        warehouses=Warehouses(
            database=database,
            door=door,
            delivery=delivery,
            storage=stores.storage,
            trials=trials,
            reaches=reaches,
        ),
        warehouse_changes=WarehouseChanges(database=database, delivery=delivery, approve=approval.of_warehouse),
        warehouse_storage=WarehouseStorage(database=database, storage=stores.storage, trials=trials),
        credential_scope=CredentialScope(
            database=database,
            storage=stores.storage,
            clients=stores.clients,
            request_seconds=settings.max_request_time,
            keep=settings.canary.keep(),
        ),
        grants=Grants(database=database, door=door, delivery=delivery),
        grant_lists=GrantLists(database=database, reads=reads, door=door, page_size=settings.pagination_size_max),
        delegates=Delegates(database=database, door=door, page_size=settings.pagination_size_max),
        live_credentials=LiveCredentials(database=database, door=door, page_size=settings.pagination_size_max),
        change_tickets=ChangeTickets(
            database=database,
            door=door,
            page_size=settings.pagination_size_max,
            lifetime=settings.change_tickets.lifetime,
        ),
        engine_probes=EngineProbes(
            database=database,
            count=metrics.probes.engine_probed,
            valid_days=settings.engine_probes.valid_days,
            rules=probe_rules(settings.engine_probes),
            reads=engine_reads(settings.engine_probes),
            request_seconds=settings.max_request_time,
        ),
        checks=Checks(door=door),
        rights=Rights(door=door),
        search=Search(reads=reads, door=door, reaches=reaches),
        tags=Tags(database=database, delivery=delivery, page_size=settings.pagination_size_max),
        tag_attachments=TagAttachments(
            database=database, door=door, page_size=settings.pagination_size_max, suggests=settings.tag_suggestions
        ),
        statistics=Statistics(reads=reads, page_size=settings.pagination_size_max),
        roles=Roles(
            database=database, reads=reads, door=door, delivery=delivery, page_size=settings.pagination_size_max
        ),
        data_policies=DataPolicies(database=database, delivery=delivery, page_size=settings.pagination_size_max),
        data_policy_bindings=DataPolicyBindings(database=database),
        table_policies=TablePolicies(database=database, door=door),
        data_policy_previews=DataPolicyPreviews(door=door),
        mapping_tables=MappingTables(database=database, page_size=settings.pagination_size_max),
        scim_users=ScimUsers(database=database, delivery=delivery, sources=sources),
        scim_groups=ScimGroups(database=database, door=door, delivery=delivery, sources=sources),
        managed_access=ManagedAccess(database=database, delivery=delivery),
        tasks=Tasks(database=database, reads=reads, door=door, reaches=reaches, page_size=settings.pagination_size_max),
        task_queues=TaskQueues(database=database),
        event_deliveries=EventDeliveries(
            database=database, sinks=settings.events.sink_names(), page_size=settings.pagination_size_max
        ),
        policy_bundles=PolicyBundles(*policy_source(settings)),
        namespace_moves=NamespaceMoves(
            database=database,
            door=door,
            delivery=delivery,
            reserved=frozenset(name.lower() for name in settings.reserved_namespaces),
            approve=approval.of_move,
        ),
        protection=Protection(database=database),
        known_callers=set(),
        reports=Reports(database=database),
        refused_logins=refused_logins,
        idempotency=(
            Idempotency(
                database,
                delivery,
                keep_seconds=once.lifetime + once.grace_period,
                lease_seconds=max(60.0, 2 * settings.max_request_time),
            )
            if once.enabled
            else None
        ),
    )


def _provisioner(token: provisioning.ProvisioningToken) -> Actor:
    """Return the actor of a provisioning token: the identity provider's SCIM client, restricted to one project."""
    caller = Actor.user(provisioner_of(token.provider_id), application=True)
    return msgspec.structs.replace(caller, within=token.project_id)
