# SPDX-License-Identifier: Apache-2.0
"""Read new definitions of data policies from a file, for ``lakegate policy diff --data-policies``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from gateway.cli.models import about_models, opened_database

if TYPE_CHECKING:
    from gateway.access.restrictions.replayed_restrictions import ChangedPolicy, RestrictionChange, RestrictionReplay
    from gateway.apply.document import DataPolicy as StatedPolicy
    from gateway.apply.document import Document
    from gateway.db.policies.replayed_policies import NamedObject, NamedPolicy
    from gateway.fga.relationship_replay import RelationshipReplay
    from gateway.opa.replay_records import Asked, Recorded
    from gateway.settings import Settings

    Names = Mapping[tuple[str, str], str]


class DataPolicies:
    """Decides recorded reads of tables by the data policies of the database, and by those of a file."""

    def __init__(self, file: Path, relationships: RelationshipReplay, recorded: Iterable[Recorded]) -> None:
        from gateway.access.operation import Operation
        from gateway.access.operations import credentials, steps, tables
        from gateway.apply.document import read_document
        from gateway.apply.source import read_source

        declared = (each for module in (credentials, steps, tables) for each in vars(module).values())
        kinds = (each for each in declared if isinstance(each, type) and issubclass(each, Operation))
        self._reading = {each.name() for each in kinds if each.enforcement_point is not None}
        asked = (each.asked for each in recorded if each.asked is not None)
        places = dict(place for each in asked if (place := self._place(each)) is not None)
        document = read_document(read_source(str(file), file.read_text(encoding="utf-8")))
        self._replay: RestrictionReplay = about_models(lambda at: _opened(at, document, places, relationships))

    def change(self, asked: Asked) -> RestrictionChange | None:
        """Return what the file changes for a recorded read of a table; None for other decisions."""
        place, inputs = self._place(asked), asked.decision.inputs
        if place is None or inputs is None or inputs.project_id is None:
            return None
        return self._replay.change(asked.actor, asked.caller, place[0], inputs.project_id)

    def _place(self, asked: Asked) -> tuple[UUID, tuple[UUID, ...]] | None:
        """Return (the table that a decision lets its caller read, its containers)."""
        decision, inputs = asked.decision, asked.decision.inputs
        about = decision.resources[0] if decision.resources else None
        if about is None or about.type != "table" or about.id is None or decision.operation not in self._reading:
            return None
        if inputs is None or inputs.namespace_ids is None or inputs.warehouse_id is None:
            return None
        return UUID(about.id), tuple(map(UUID, (*reversed(inputs.namespace_ids), inputs.warehouse_id)))


async def _opened(
    settings: Settings, document: Document, places: Mapping[UUID, Sequence[UUID]], relationships: RelationshipReplay
) -> RestrictionReplay:
    from gateway.access.restrictions.replayed_restrictions import PolicyWorld, RestrictionReplay
    from gateway.db.policies import replayed_policies as rows
    from gateway.db.policies.policy_inputs import inputs_within
    from gateway.db.tables.excerpts import excerpts_of

    async with opened_database(settings) as database, database.transaction() as connection:
        policies = await rows.named_policies(connection)
        roles, tags = await rows.named_roles(connection), await rows.named_tags(connection)
        inputs, excerpts = await inputs_within(connection, places), await excerpts_of(connection, list(places))
        world = PolicyWorld(inputs, excerpts, await rows.mapped_values(connection))
    changed = changed_policies(document, policies, _by_name(roles), _by_name(tags))
    return RestrictionReplay(world, changed, relationships.relates)


def _by_name(objects: Iterable[NamedObject]) -> Names:
    from gateway.iceberg.identifiers import fold

    return {(each.project_id, fold(each.name)): str(each.id) for each in objects}


def changed_policies(
    document: Document, policies: Iterable[NamedPolicy], roles: Names, tags: Names
) -> dict[str, ChangedPolicy]:
    """Return the policies of a file by the id of the existing policy with their name.

    A new policy restricts only what it is bound to later, so it is left out. An unknown role or tag ends the command.
    """
    from gateway.iceberg.identifiers import fold

    existing = {(fold(each.project), fold(each.name)): each for each in policies}
    found: dict[str, ChangedPolicy] = {}
    for project in document.projects:
        for stated in project.data_policies or ():
            present = existing.get((fold(project.name), fold(stated.name)))
            if present is not None and stated.definition is not None:
                found[str(present.id)] = _changed(stated, present, roles, tags)
    return found


def _changed(stated: StatedPolicy, present: NamedPolicy, roles: Names, tags: Names) -> ChangedPolicy:
    from gateway.access.restrictions.replayed_restrictions import ChangedPolicy
    from gateway.apply.data_policies import with_roles
    from gateway.apply.session import is_uuid
    from gateway.iceberg.identifiers import fold
    from gateway.obligations.data_policies import AppliesTo, DataPolicy, with_tags

    def named(names: Names, kind: str, name: str) -> str:
        id = names.get((present.project_id, fold(name)))
        if id is None:
            raise click.ClickException(f"The data policy {stated.name} names the {kind} {name}, which does not exist.")
        return id

    if stated.definition is None:
        raise click.ClickException(f"The data policy {stated.name} has no definition.")
    definition = with_roles(stated.definition, lambda role: role if is_uuid(role) else named(roles, "role", role))
    return ChangedPolicy(
        stated.name,
        DataPolicy(
            id=str(present.id),
            version=present.version,
            definition=with_tags(definition, lambda tag: named(tags, "tag", tag)),
            applies_to=AppliesTo(present.applies_to) if stated.applies_to is None else stated.applies_to,
            allow_append=present.allow_append if stated.allow_append is None else stated.allow_append,
        ),
    )
