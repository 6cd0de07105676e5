# SPDX-License-Identifier: Apache-2.0
"""Compare the changes of a model on rows of PostgreSQL with the answers of the real OpenFGA to both models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor, ActorKind
from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.ports import Question
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Database
from gateway.db.tuples.recorded_grants import read_world
from gateway.fga.client import FgaClient
from gateway.fga.compiled import compiled_model
from gateway.fga.model import push_model
from gateway.fga.model_diff import compare_models
from gateway.fga.model_proof import Bounds, gained
from gateway.fga.relationships import UNEXPIRED, FgaRelationships
from gateway.fga.wire import Condition, FgaTuple
from gateway.fga.world_diff import changed_access
from tests.support.changed_rights import changed_rights
from tests.support.model_edits import Edited, computed
from tests.support.rows.parts import KEY, Parts
from tests.support.rows.random_grants import Grants, written

pytestmark = [pytest.mark.generated, pytest.mark.integration, pytest.mark.timeout(300)]

SHIPPED = compiled_model()
IN_FORCE = {"expires_at": "2100-01-01T00:00:00Z"}
CHANGED = (
    Edited()
    .also("namespace", "selects", computed("create"))
    .also("role", "can_read", computed("assignee"))
    .rule("warehouse", "describes", computed("describe"))
    .rule("table", "can_drop", computed("ownership"))
    .model
)


class ChangedGrants(Grants):
    """Random grants, and some by which rights change."""

    async def insert(self, connection: AsyncConnection) -> None:
        await super().insert(connection)
        await connection.execute(text("delete from scim_users"))
        of, (ann, _, role, above) = self.rows.objects, self.principals
        await self.add(connection, Privilege.CREATE, ann, of["outer"], by="oidc~3")
        await self.add(connection, Privilege.ASSIGNEE, ann, of["role"], by="oidc~3")
        await self.add(connection, Privilege.ASSIGNEE, role, of["role_above"], by="oidc~3")
        await self.add(connection, Privilege.MODIFY, above, of["second"], by="oidc~3")
        await self.add(connection, Privilege.MODIFY, role, of["table"], by="oidc~3")


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=10)
    yield database
    await database.close()


async def test_changes_equal_the_answers_of_openfga(parts: Parts, database: Database) -> None:
    name = f"diff-{uuid4()}"
    pushed = [await push_model(parts.openfga_url, KEY, name, compiled=each) for each in (SHIPPED, CHANGED)]
    assert pushed[0].model_id != pushed[1].model_id
    clients = [FgaClient(parts.openfga_url, KEY, each.store_id, each.model_id, timeout_s=30) for each in pushed]
    try:
        gained, lost = await _compared(database, clients, CHANGED, seed=0)
    finally:
        for client in clients:
            await client.aclose()
    assert gained and lost, "no right changed, so nothing was compared"


async def _compared(
    database: Database, clients: list[FgaClient], after: Mapping[str, Any], seed: int
) -> tuple[int, int]:
    """Compare all rights of all principals; return the numbers of gained and of lost ones."""
    grants = ChangedGrants(seed)
    await written(clients[0], database, grants)
    world = await read_world(database)
    tree: dict[ObjectKey, ObjectKey | None] = {key: place.above for key, place in world.places.items()}
    for key in grants.objects:
        if key.type in (ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE) and key not in tree:
            outer = key.type is ObjectType.GENERIC_TABLE
            tree[key] = ObjectKey(ObjectType.NAMESPACE, str(grants.rows.outer if outer else grants.rows.inner))
    rows = changed_access(SHIPPED, after, compare_models(SHIPPED, after, world.nested_namespaces()), world)
    questions = [Question(action, key) for key in tree for action in sorted(ACTIONS[key.type])]
    gained = lost = 0
    for who, actor in _actors(grants):
        before, then = [
            {(q.relation.value, q.object) for q, yes in zip(questions, answers, strict=True) if yes}
            for answers in [await _asked(client, actor, questions, grants) for client in clients]
        ]
        found = [changed_rights(rows, who, tree, gained=each) for each in (True, False)]
        assert found == [then - before, before - then], (who, rows)
        gained, lost = gained + len(then - before), lost + len(before - then)
    return gained, lost


async def _asked(client: FgaClient, actor: Actor, questions: list[Question], grants: Grants) -> list[bool]:
    return await FgaRelationships(client).check(actor, questions, now=grants.now, paced=False)


def _actors(grants: Grants) -> list[tuple[Principal | None, Actor]]:
    ann, ben, _ = grants.rows.users
    roles = (grants.rows.role, grants.rows.role_above)
    return [
        *((Principal(PrincipalType.USER, user), Actor.user(user)) for user in (ann, ben)),
        *(
            (Principal(PrincipalType.ROLE, str(role)), Actor(kind=ActorKind.USER, id=ann, assumed_role=role))
            for role in roles
        ),
        (None, Actor.user("oidc~without-grants")),
    ]


async def test_expired_grants_and_those_of_deactivated_users_do_not_count(database: Database) -> None:
    grants = Grants(7)
    ann, ben, table = grants.rows.ann, grants.rows.ben, grants.rows.objects["table"]
    async with database.transaction() as connection:
        await grants.rows.insert(connection)
        await connection.execute(text("delete from scim_users"))
        await grants.add(connection, Privilege.SELECT, ann, table, timedelta(hours=-1))
        await grants.add(connection, Privilege.SELECT, ben, table)
        await connection.execute(
            text(
                "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
                "values (gen_random_uuid(), :user, 'oidc', 'x', 'x', false, '{}')"
            ),
            {"user": ben.id},
        )
    assert (await read_world(database)).grants == []


async def test_openfga_confirms_a_synthesized_world(parts: Parts) -> None:
    """Write the tuples of the world, and ask OpenFGA with both models."""
    world = gained(SHIPPED, CHANGED, Bounds())
    assert world is not None
    name = f"world-{uuid4()}"
    pushed = [await push_model(parts.openfga_url, KEY, name, compiled=each) for each in (SHIPPED, CHANGED)]
    written = [
        FgaTuple(each.user, each.relation, each.object, None if each.until is None else Condition(UNEXPIRED, IN_FORCE))
        for each in world.tuples
    ]
    answers: list[list[bool]] = []
    for each in pushed:
        client = FgaClient(parts.openfga_url, KEY, each.store_id, each.model_id, timeout_s=30)
        try:
            if not answers:
                await client.write(written)
            asked = [FgaTuple(world.user, world.relation, world.object)]
            answers.append(await client.batch_check(asked, context={"current_time": "2026-03-04T12:00:00Z"}))
        finally:
            await client.aclose()
    assert answers == [[False], [True]]
