# SPDX-License-Identifier: Apache-2.0
"""Use cases of the server: its information, and the bootstrap, which makes its first administrator.

A command can allow one more bootstrap.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from uuid_utils.compat import uuid7

from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.events.change_event import FurtherChanges, FurtherEvent
from gateway.access.events.unrequested_events import ChangedGrant
from gateway.access.management_errors import BootstrapForbidden, CatalogAlreadyBootstrapped, TermsOfUseNotAccepted
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.server import Bootstrap, GetServerInfo, LicenseStatus, ServerInfo
from gateway.access.operations.tasks import ReopenBootstrap
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Connection, Database
from gateway.db.grants import grants
from gateway.db.principals import users
from gateway.db.tasks.tasks import Queue
from gateway.db.tuples import outbox
from gateway.db.warehouses import projects, servers
from gateway.features.kit import Kit, UseCases, admitted
from gateway.features.principals.users import own_profile

DEFAULT_PROJECT_NAME = "Default Project"


class Servers(UseCases):
    """Read and bootstrap the server."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._server_id = kit.server_id
        self._default_project_id = kit.default_project_id
        self._system_identities = kit.system_identities

    async def info(self, permit: Permit[GetServerInfo]) -> ServerInfo:
        """Return version, id and state of the server."""
        async with self._database.read() as connection:
            bootstrapped = not await servers.needs_bootstrap(connection)
        own = version("lakegate")
        return ServerInfo(
            version=own,
            lakekeeper_version=own,
            bootstrapped=bootstrapped,
            server_id=self._server_id,
            default_project_id=self._default_project_id,
            authz_backend="openfga",
            aws_system_identities_enabled="aws" in self._system_identities,
            azure_system_identities_enabled="azure" in self._system_identities,
            gcp_system_identities_enabled="gcp" in self._system_identities,
            queues=tuple(Queue),
            license_status=LicenseStatus(),
        )

    async def bootstrap(self, permit: Permit[Bootstrap]) -> None:
        """Make the caller administrator or operator of the server, and administrator of a configured default project.

        If TermsOfUseNotAccepted, CatalogAlreadyBootstrapped or BootstrapForbidden is raised, nothing was changed.
        """
        request = permit.operation.request
        if not request.accept_terms_of_use:
            raise TermsOfUseNotAccepted("To bootstrap the server, set accept-terms-of-use to true.")
        actor = permit.actor
        caller = Principal(PrincipalType.USER, actor.id)
        server = ObjectKey(ObjectType.SERVER, str(self._server_id))
        held = Privilege.OPERATOR if request.is_operator else Privilege.ADMIN
        async with self._database.change(permit) as connection:
            if not await servers.claim_bootstrap(connection, actor.id):
                if await servers.needs_bootstrap(connection):
                    raise BootstrapForbidden(
                        "Only the user that the operator named may bootstrap this server again. The operator can "
                        "name another with `lakegate reopen-bootstrap`."
                    )
                raise CatalogAlreadyBootstrapped(
                    "This server is already bootstrapped. A user with `admin` or `operator` on the server can grant "
                    "these to more users."
                )
            await users.upsert(
                connection,
                id=actor.id,
                profile=own_profile(actor, request.user_name, request.user_type),
                address=None if actor.email is None else users.Address(email=actor.email, verified=True),
                by="create-endpoint",
                update_if_exists=True,
            )
            await grants.grant(connection, privilege=held, principal=caller, on=server, by=actor.id)
            keys = [TupleKey(caller, held.value, server)]
            announced = [ChangedGrant(privilege=held, principal=caller, on=server).added()]
            if self._default_project_id is not None and (
                created := await create_project(
                    connection, self._default_project_id, DEFAULT_PROJECT_NAME, server, caller, by=actor.id
                )
            ):
                keys += created
                announced.append(_created_project(self._default_project_id, DEFAULT_PROJECT_NAME))
            permit.pending_audit.further_changes = FurtherChanges(announced).all
            pending = await outbox.enqueue(connection, keys, takes_away=False)
        await self._delivery.deliver_or_defer(pending)


def _created_project(id: str, name: str) -> FurtherEvent:
    """Return the event of the default project, which is created without an operation that would announce it."""
    return FurtherEvent(
        type="createProject", kind="project", id=id, name=name, project_id=id, data={"project_name": name}
    )


async def create_project(
    connection: Connection, id: str, name: str, server: ObjectKey, admin: Principal, *, by: str
) -> list[TupleKey]:
    """Insert a project that `admin` administers. Return the keys of the tuples to deliver.

    The list is empty if the id or the name is taken.
    """
    if not await projects.create(connection, id=id, name=name):
        return []
    project = ObjectKey(ObjectType.PROJECT, id)
    await grants.grant(connection, privilege=Privilege.PROJECT_ADMIN, principal=admin, on=project, by=by)
    return [TupleKey(server, "server", project), TupleKey(admin, Privilege.PROJECT_ADMIN.value, project)]


TASK: Final = "reopen_bootstrap"


async def reopen(*, database: Database, door: Door, user_id: str | None) -> bool:
    """Allow one more bootstrap: by the user `user_id` (`<provider>~<subject>`), or by the first caller with a token if
    that is None.

    Returns True if the server still has an administrator. Existing grants do not change. Raises the error of a policy
    refusal and the errors of outages.
    """
    async with (
        admitted(door, TASK, str(uuid7()), ReopenBootstrap(user_id)) as permit,
        database.change(permit) as connection,
    ):
        managed = await users.has_administrator(connection)
        await servers.reopen_bootstrap(connection, user_id)
    return managed
