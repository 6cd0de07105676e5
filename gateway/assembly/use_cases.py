# SPDX-License-Identifier: Apache-2.0
"""Create the services of the handlers, and the kit: the components and settings that all use cases share."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec

from gateway.access.actor import Actor, provisioner_of
from gateway.access.door.door import Door
from gateway.access.door.list_visibility import ReachesInUse
from gateway.access.nouns.warehouse_names import WarehouseNames
from gateway.access.operations.access_request_bodies import AccessRequestRules
from gateway.api.authentication import Authentication
from gateway.api.services import Services
from gateway.assembly.adapters import Stores, delegated_tokens
from gateway.assembly.authzen import authzen_mapping
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
from gateway.features.kit import AnswerEngines, Kit, instances_of
from gateway.identity import provisioning
from gateway.identity.errors import AuthenticationFailed, Refusal
from gateway.identity.tokens import VerifiedToken
from gateway.settings import Settings
from gateway.settings.sections import AccessRequests
from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics
from gateway.vending.remote_signing import RemoteSigner
from gateway.vending.scope_verdict import Enforcement, ScopeRule
from gateway.verification.panel import Panel

_GRACE_SECONDS: Final = 300.0
"""Time for which the success of a request is recorded beyond the advertised one, for late retries."""


def open_kit(
    settings: Settings,
    metrics: Metrics,
    database: Database,
    reads: ReadPool,
    door: Door,
    delivery: TupleDelivery,
    server_id: UUID,
    stores: Stores,
    reaches: ReachesInUse,
    answers: AnswerEngines,
    panel: Panel | None = None,
) -> Kit:
    """Return the kit for the use cases, built from the components of the process."""
    documents = DocumentCache(settings.memory.documents, metrics)
    providers = list(settings.identity_providers())
    once = settings.idempotency
    return Kit(
        database=database,
        reads=reads,
        door=door,
        delivery=delivery,
        reaches=reaches,
        answers=answers,
        documents=Documents(database, documents, max_together=settings.limits.transaction_size),
        files=stores.files,
        pending_files=PendingFiles(database),
        locks=AdvisoryLocks(database),
        storage=stores.storage,
        clients=stores.clients,
        vendor=stores.vendor,
        rules=stores.rules,
        signer=RemoteSigner(stores.clients, stores.vendor),
        scope=ScopeRule(Enforcement(settings.canary.enforce)),
        own_tokens=delegated_tokens(stores.sealer, database, server_id),
        panel=panel,
        engine_reads=engine_reads(settings.engine_probes),
        probe_rules=probe_rules(settings.engine_probes),
        policy_source=policy_source(settings),
        count_probe=metrics.probes.engine_probed,
        server_id=server_id,
        default_project_id=settings.default_project_id if settings.enable_default_project else None,
        base_uri=settings.base_uri,
        page_size=settings.pagination_size_max,
        default_page_size=settings.pagination_size_default,
        request_seconds=settings.max_request_time,
        limits=metadata_limits(settings),
        reserved=frozenset(name.lower() for name in settings.reserved_namespaces),
        tag_labels=settings.tag_labels,
        tag_suggestions=settings.tag_suggestions,
        skip_storage_validation=settings.skip_storage_validation,
        idempotency_seconds=once.lifetime if once.enabled else None,
        ticket_lifetime=settings.change_tickets.lifetime,
        access_rules=access_rules(settings.access_requests),
        break_glass_second_person=settings.break_glass.second_person,
        canary_keep=settings.canary.keep(),
        probe_valid_days=settings.engine_probes.valid_days,
        sinks=settings.events.sink_names(),
        system_identities=settings.enabled_system_identities(),
        scim_subjects={
            id: each.scim_subject for id, each in settings.identity_providers().items() if each.scim_subject is not None
        },
        sole_provider=providers[0] if len(providers) == 1 else None,
        protected_view_properties=owner_properties(settings.trusted_engines),
        authzen=authzen_mapping(settings.authzen),
    )


def access_rules(settings: AccessRequests) -> AccessRequestRules:
    """Return the limits of access requests. A longest duration below the default one limits that too."""
    return AccessRequestRules(
        default_duration=min(settings.default_duration, settings.longest_duration),
        longest_duration=settings.longest_duration,
        lifetime=settings.lifetime,
        reminder_interval=settings.reminder_interval,
        per_principal=settings.per_principal,
        per_object=settings.per_object,
    )


def build_services(
    settings: Settings,
    metrics: Metrics,
    kit: Kit,
    health: HealthMonitor,
    identity: Identity,
    refused_logins: RefusedLogins | None,
) -> Services:
    """Return the services of the handlers."""
    instance_admins = frozenset(settings.instance_admins)
    engines = EnginesByToken(settings.trusted_engines)

    async def verify_any(token: str) -> VerifiedToken:
        if provisioning.has_token_type(token):
            raise AuthenticationFailed(
                "a provisioning token is valid only for the paths below /scim/v2; send a user's token for other paths",
                Refusal.WRONG_KIND,
            )
        return await (kit.own_tokens if kit.own_tokens.has_token_type(token) else identity.router).verify(token)

    def actor_of(token: VerifiedToken) -> Actor:
        return actor_of_token(token, instance_admins, engines)

    provisioning_tokens = ScimTokens(kit.database)

    async def provisioner_of(token: str) -> Actor | None:
        if not provisioning.has_token_type(token):
            return None
        return _provisioner(await provisioning.verify(token, provisioning_tokens))

    authentication = Authentication(
        verify_any=verify_any, possession=identity.possession, actor_of=actor_of, provisioner_of=provisioner_of
    )
    return Services(
        door=kit.door,
        use_case=instances_of(kit),
        shares=open_shares(settings, metrics),
        authenticate=authentication.authenticate,
        authenticate_provisioner=authentication.authenticate_provisioner,
        verify=authentication.verify,
        verify_caller=authentication.verify_caller,
        actor_of=actor_of,
        health=health,
        warehouse_names=WarehouseNames(DatabaseResolver(kit.database)),
        swagger_ui=settings.serve_swagger_ui,
        ui=settings.ui.enabled,
        sign_in=identity.sign_in,
        page_size_max=kit.page_size,
        max_view_depth=settings.referenced_by.max_nesting_depth,
        limits=kit.limits,
        default_project_id=kit.default_project_id,
        base_uri=kit.base_uri,
        known_callers=set(),
        refused_logins=refused_logins,
        idempotency=_idempotency(settings, kit),
        authzen=kit.authzen,
    )


def _idempotency(settings: Settings, kit: Kit) -> Idempotency | None:
    once = settings.idempotency
    if not once.enabled:
        return None
    keep, lease = once.lifetime + _GRACE_SECONDS, max(60.0, 2 * settings.max_request_time)
    return Idempotency(kit.database, kit.delivery, keep_seconds=keep, lease_seconds=lease)


def _provisioner(token: provisioning.ProvisioningToken) -> Actor:
    """Return the actor of a provisioning token: the SCIM client of the identity provider, restricted to one project."""
    caller = Actor.user(provisioner_of(token.provider_id), application=True)
    return msgspec.structs.replace(caller, within=token.project_id)
