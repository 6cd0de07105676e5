# SPDX-License-Identifier: Apache-2.0
"""Tokens with an audience bound to a project: valid for that project only."""

from __future__ import annotations

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import ProjectTokenForbidden
from gateway.access.nouns.project import ProjectNotFound, ProjectRef, ResolvedProject
from gateway.access.nouns.server import ServerActionForbidden, UserRef
from gateway.access.operation import Operation
from gateway.access.operations.projects import CreateProject, GetProject, ListProjects
from gateway.access.operations.server import Bootstrap, BootstrapRequest
from gateway.access.operations.tables import LoadTable
from gateway.access.operations.users import DeleteSelf, RegisterSelf, UpdateSelf, WhoAmI
from gateway.iceberg.errors import NoSuchTableException
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context

HERE = Actor.user(world.ALICE.id, project=world.PROJECT_ID)
ELSEWHERE = Actor.user(world.ALICE.id, project="another")


@pytest.mark.parametrize(
    "operation", [GetProject(world.PROJECT), LoadTable(world.TABLE), ListProjects(), WhoAmI(), RegisterSelf()]
)
async def test_a_project_token_is_valid_in_its_project(operation: Operation) -> None:
    permit = await DoorFixture().door.admit(request_context(HERE), operation)
    assert permit.actor.within == world.PROJECT_ID


async def test_a_project_token_hides_every_other_project() -> None:
    door_fixture = DoorFixture()
    with pytest.raises(NoSuchTableException):
        await door_fixture.door.admit(request_context(ELSEWHERE), LoadTable(world.TABLE))
    with pytest.raises(ProjectNotFound):
        await door_fixture.door.admit(request_context(ELSEWHERE), GetProject(world.PROJECT))
    other = ProjectRef("another")
    door_fixture.resolver.rows[other] = ResolvedProject(id="another", name="Another")
    permit = await door_fixture.door.admit(request_context(ELSEWHERE), GetProject(other))
    assert permit.row(other, ResolvedProject).name == "Another"


async def test_a_project_token_cannot_act_on_the_server() -> None:
    with pytest.raises(ServerActionForbidden):
        await DoorFixture().door.admit(request_context(HERE), CreateProject("new"))


@pytest.mark.parametrize(
    "operation",
    [
        Bootstrap(BootstrapRequest(accept_terms_of_use=True)),
        UpdateSelf(UserRef(world.ALICE.id), "Al", "human"),
        DeleteSelf(UserRef(world.ALICE.id)),
    ],
)
async def test_a_project_token_is_refused_for_open_operations_outside_projects(operation: Operation) -> None:
    door_fixture = DoorFixture()
    with pytest.raises(ProjectTokenForbidden):
        await door_fixture.door.admit(request_context(HERE), operation)
    assert (await door_fixture.door.admit(request_context(), operation)).operation == operation
