# SPDX-License-Identifier: Apache-2.0
"""Create the parts that answer questions about access. They ask both engines without any cache."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.door.engines import Engines
from gateway.access.restrictions.column_restrictions import GrantedColumns
from gateway.access.restrictions.data_restrictions import DataRestrictions
from gateway.access.shares.fair_slots import FairSlots
from gateway.access.shares.shares import Lane
from gateway.assembly.authorizers import Authorizers
from gateway.assembly.engines import probe_rules
from gateway.db.engine.database import Database
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.tuples.undelivered import PendingCreations
from gateway.features.kit import AnswerEngines
from gateway.fga.answer_checks import AnswerChecks
from gateway.fga.client import FgaClient
from gateway.fga.confirmation import Confirmations
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.pending_checks import CreationAwareRelationships
from gateway.fga.relationships import FgaRelationships
from gateway.opa.decider import OpaDecider
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics


def answer_engines(
    settings: Settings,
    database: Database,
    fga: FgaClient,
    reaches: FollowedReaches,
    opa: OpaDecider,
    metrics: Metrics,
    authorizers: Authorizers,
    slots: Mapping[Lane, FairSlots],
) -> AnswerEngines:
    """Return the engines behind answers.

    `authorizers` can only refuse rights that OpenFGA gives, as at the door. `slots` are those of the door's own
    hypothetical checks.
    """
    resolver = DatabaseResolver(database, probe_rules=probe_rules(settings.engine_probes))
    plain = FgaRelationships(fga)
    aware = CreationAwareRelationships(plain, plain, PendingCreations(database))
    engines = Engines(authorizers.narrow(aware), opa, metrics)
    columns = GrantedColumns(resolver, engines)
    return AnswerEngines(
        decisions=HypotheticalChecks(resolver, engines, columns, DataRestrictions(resolver, engines), slots),
        checks=AnswerChecks(fga, reaches, metrics.answer_disagreed),
        confirmations=Confirmations(fga),
        evaluate=opa.evaluate,
        trace=opa.trace,
        refuses=partial(authorizers.refuses, aware),
        authorizers=tuple(each.name for each in authorizers.opened),
    )
