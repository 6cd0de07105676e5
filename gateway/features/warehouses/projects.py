# SPDX-License-Identifier: Apache-2.0
"""Use cases to create, rename, delete, list and read projects."""

from __future__ import annotations

from collections.abc import Sequence

from uuid_utils.compat import uuid7

from gateway.access.door.list_visibility import holders_of, reach_of
from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    ProjectIdNotFree,
    ProjectNameAlreadyTaken,
    ProjectNotEmpty,
    pending_during_outage,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.project import ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.projects import (
    CreatedProject,
    CreateProject,
    DeleteProject,
    GetProject,
    ListProjects,
    Project,
    ProjectList,
    RenameProject,
)
from gateway.db.engine import list_candidates
from gateway.db.engine.database import Connection
from gateway.db.engine.list_candidates import ProjectCandidate
from gateway.db.tuples import outbox
from gateway.db.tuples.ownership import owner_of_new, record_deleted
from gateway.db.warehouses import projects
from gateway.features.kit import Kit, UseCases
from gateway.features.server.servers import create_project


class Projects(UseCases):
    """Create, rename, delete, list and read the projects of the server."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._server = ObjectKey(ObjectType.SERVER, str(kit.server_id))

    async def create(self, permit: Permit[CreateProject]) -> CreatedProject:
        """Create a project that its creator administers.

        Raises ProjectNameAlreadyTaken. Raises ProjectIdNotFree while OpenFGA may still contain grants on an earlier
        project with this id: they would apply to the new project.
        """
        operation = permit.operation
        id = operation.project_id or str(uuid7())
        permit.pending_audit.add_details(project_id=id)
        async with self._database.change(permit) as connection:
            keys = await create_project(
                connection, id, operation.project_name, self._server, owner_of_new(permit.actor), by=permit.actor.id
            )
            if not keys:
                raise ProjectNameAlreadyTaken(
                    f"A project with the name {operation.project_name} or the id {id} already exists. Choose another "
                    "name or id."
                )
            if operation.project_id is not None:
                await _refuse_undelivered(connection, ObjectKey(ObjectType.PROJECT, id))
            pending = await outbox.enqueue(connection, keys, takes_away=False)
        await self._delivery.deliver_or_defer(pending)
        return CreatedProject(project_id=id)

    async def rename(self, permit: Permit[RenameProject]) -> None:
        """Rename a project. Raises ProjectNameAlreadyTaken."""
        operation = permit.operation
        async with self._database.change(permit) as connection:
            try:
                renamed = await projects.rename(connection, operation.project.project_id, operation.new_name)
            except projects.NameTaken as taken:
                raise ProjectNameAlreadyTaken(
                    f"A project with the name {operation.new_name} already exists. Choose another name."
                ) from taken
            if not renamed:
                raise not_found(operation.project)

    async def delete(self, permit: Permit[DeleteProject]) -> None:
        """Delete an empty project and every grant on it. Return when all those rights are revoked everywhere.

        Raises ProjectNotEmpty. Raises RevocationPending if the deletion is recorded but OpenFGA has not confirmed it
        yet.
        """
        ref = permit.operation.project
        async with self._database.change(permit) as connection:
            deleted = await projects.delete_if_empty(connection, ref.project_id)
            if deleted is None:
                raise not_found(ref)
            if not deleted:
                raise ProjectNotEmpty(
                    f"The project {ref.project_id} is not empty. Delete its warehouses, roles, tags and data policies "
                    "first."
                )
            gone = ObjectKey(ObjectType.PROJECT, ref.project_id)
            pending = await record_deleted(
                connection, gone, self._server, above=(), warehouse_id=None, by=permit.actor.id
            )
        with pending_during_outage(
            "The project is deleted, but the revocation of the grants on it is not yet complete. The gateway "
            "retries it; no further request is needed."
        ):
            await self._delivery.deliver(pending)

    async def list(self, permit: Permit[ListProjects]) -> ProjectList:
        """Return the projects that the caller can see."""
        reach, within = await reach_of(self._reaches, ObjectType.PROJECT), permit.actor.within
        by: list[str | None] = []
        rows: Sequence[projects.ProjectRow | ProjectCandidate]
        async with self._database.read() as connection:
            if reach is None:
                rows = await projects.all_projects(connection)
            else:
                holders = holders_of(permit.actor, permit.resolution)
                rows = found = await list_candidates.projects(connection, holders, reach)
                by = [row.by for row in found if within in (None, row.id)]
        rows = [row for row in rows if within in (None, row.id)]
        keys = [ObjectKey(ObjectType.PROJECT, row.id) for row in rows]
        seen = await self._door.visible(permit, Can.INCLUDE_IN_LIST, keys, by)
        return ProjectList(
            projects=[
                Project(project_id=row.id, project_name=row.name) for row, yes in zip(rows, seen, strict=True) if yes
            ]
        )

    async def get(self, permit: Permit[GetProject]) -> Project:
        """Return one project."""
        row = permit.row(permit.operation.project, ResolvedProject)
        return Project(project_id=row.id, project_name=row.name)


async def _refuse_undelivered(connection: Connection, project: ObjectKey) -> None:
    """Raise ProjectIdNotFree if OpenFGA has not confirmed all revocations of an earlier project with this id.

    Call it after the insert of the row: by then a concurrent deletion of the earlier project has committed.
    """
    next_try = await outbox.latest_attempt(connection, project)
    if next_try is not None:
        raise ProjectIdNotFree(
            f"A project with id {project.id} was deleted, but the revocation of the grants on it is not yet "
            f"complete. The gateway retries it at {next_try.isoformat(timespec='seconds')} at the latest. Try again "
            "then, or choose another id."
        )
