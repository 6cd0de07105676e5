# SPDX-License-Identifier: Apache-2.0
"""Create the door, which decides operations, with the interfaces that it uses.

These are the resolver of rows, relationships in OpenFGA with their caches, policies in OPA, and the audit sink.
"""

from __future__ import annotations

from uuid import UUID

from gateway.access.decisions.grant_expiry import ExpiryCache
from gateway.access.door.door import Door
from gateway.access.ports import Policies, Relationships
from gateway.assembly.authorizers import WITHOUT_AUTHORIZERS, Authorizers
from gateway.assembly.engines import probe_rules
from gateway.audit.sink import BufferedAudit
from gateway.db.engine.database import Database
from gateway.db.policies.policy_alerts import PolicyAlerts
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.tuples.desired_tuples import RecordedGrants
from gateway.db.tuples.held_tuples import HeldTuples
from gateway.db.tuples.undelivered import PendingCreations, PendingRevocations
from gateway.fga.cache import CachedRelationships
from gateway.fga.client import FgaClient
from gateway.fga.grant_checks import GrantCheckedRelationships
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.pending_checks import CreationAwareRelationships, RevocationAwareRelationships
from gateway.fga.relationships import FgaRelationships
from gateway.fga.row_authorizer import FollowedModel, RowAuthorizer
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics


def build_door(
    settings: Settings,
    database: Database,
    fga: FgaClient,
    reaches: FollowedReaches,
    server_id: UUID | None,
    policies: Policies,
    audit: BufferedAudit,
    metrics: Metrics,
    authorizers: Authorizers = WITHOUT_AUTHORIZERS,
) -> Door:
    """Return the door with its ports. Without `server_id`, it is the door of a command.

    `authorizers` can only refuse rights that OpenFGA gives.
    """
    return Door(
        resolver=DatabaseResolver(database, probe_rules=probe_rules(settings.engine_probes)),
        relationships=authorizers.narrow(_relationships(settings, database, fga, reaches, server_id, metrics)),
        policies=policies,
        audit=audit,
        observer=metrics,
        read_only=settings.maintenance_mode == "read-only",
        alert=PolicyAlerts(database, metrics.policies_not_applied).note,
        kept_claims=frozenset(path for each in settings.identity_providers().values() for path in each.policy_claims),
        expiries=ExpiryCache(
            model_id=lambda: fga.answers_key, entries=settings.memory.expiries, seconds=settings.memory.allow_seconds
        )
        if settings.memory.expiries
        else None,
    )


def _relationships(
    settings: Settings,
    database: Database,
    fga: FgaClient,
    reaches: FollowedReaches,
    server_id: UUID | None,
    metrics: Metrics,
) -> Relationships:
    """Return OpenFGA's port with the layers above it: pending revocations and creations, cached allows, confirmed
    grants, plain checks.
    """
    plain = FgaRelationships(fga, reaches)
    complete = settings.drift.external_grants != "report"
    seconds = settings.memory.allow_seconds
    confirming = GrantCheckedRelationships(
        plain,
        reaches,
        RecordedGrants(database),
        model_id=lambda: fga.answers_key,
        server_id=None if server_id is None else str(server_id),
        complete=complete,
        seconds=seconds,
        observer=metrics,
    )
    cached = CachedRelationships(
        confirming if settings.memory.confirm_grants else plain,
        model_id=lambda: fga.answers_key,
        seconds=seconds,
        observer=metrics,
    )
    usual: Relationships = cached
    if settings.openfga.pending_creations:
        usual = CreationAwareRelationships(cached, plain, PendingCreations(database))
    rows = RowAuthorizer(FollowedModel(fga), HeldTuples(database))
    return RevocationAwareRelationships(usual, rows, PendingRevocations(database), complete=complete)
