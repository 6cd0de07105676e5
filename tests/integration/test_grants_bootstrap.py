# SPDX-License-Identifier: Apache-2.0
"""The first administrator of an empty server: one of those who try at once, and nobody afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.contract.world import World, told
from tests.integration.conftest import StartStack


def test_of_those_who_bootstrap_at_once_one_becomes_administrator_and_the_others_nothing(
    start_stack: StartStack,
) -> None:
    world = World(start_stack(empty=True))
    body = {"accept-terms-of-use": True}
    assert world.nobody.post("/management/v1/bootstrap", body).status_code == 401
    assert world.admin.post("/management/v1/bootstrap", {"accept-terms-of-use": False}).status_code == 400
    assert world.admin.post("/management/v1/project", {"project-name": "early"}).status_code == 403
    assert world.admin.get("/management/v1/info").json()["bootstrapped"] is False
    people = [world.admin, world.alice, world.bob, world.carol]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda person: person.post("/management/v1/bootstrap", body), people))
    assert sorted(answer.status_code for answer in answers) == [204, 400, 400, 400]
    assert {told(answer)[1] for answer in answers if answer.status_code == 400} == {"CatalogAlreadyBootstrapped"}
    first = people[[answer.status_code for answer in answers].index(204)]
    for person in people:
        made = person.post("/management/v1/project", {"project-name": f"of {person.name}"})
        assert made.status_code == (201 if person is first else 403)
    assert world.sql("select principal_id from grants where object_type = 'server'")[0]["principal_id"] == first.id
    world.close()
