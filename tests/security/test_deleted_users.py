# SPDX-License-Identifier: Apache-2.0
"""Who is deleted has nothing when they come back, whatever they had begun meanwhile (threats E05, D23)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.contract.world import SCHEMA, Person, World, unique

_ROUNDS = 12
_AT_ONCE = 4


def test_what_somebody_creates_while_they_are_deleted_is_not_theirs_when_they_come_back(world: World, ns: str) -> None:
    space = world.namespace_id(ns)
    created = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number in range(_ROUNDS):
            leaver = world.stranger()
            world.grant("create", leaver, "namespace", space)
            # Some creations are done when the deletion comes, some have just been allowed, some come too late.
            creating = [pool.submit(_create_until_refused, world, leaver, ns) for _ in range(_AT_ONCE)]
            time.sleep(0.2 + 0.02 * number)
            assert world.admin.delete(f"/management/v1/user/{leaver.id}").status_code == 204
            created += sum(each.result() for each in creating)
            assert world.sql("select * from grants where principal_id = $1", leaver.id) == []
            for kind in ("table", "namespace", "warehouse"):
                assert world.tuples_of(f"user:{leaver.id}", kind) == set()
            assert leaver.get(f"{world.root}/namespaces/{ns}/tables").status_code == 404
    assert created > 0


def _create_until_refused(world: World, person: Person, ns: str) -> int:
    """How many tables the person made before they were told that they may not."""
    made = 0
    with httpx.Client(base_url=world.base, trust_env=False, timeout=60) as http:
        while True:
            body = {"name": unique("t"), "schema": SCHEMA}
            headers = {"Authorization": f"Bearer {person.token}"}
            answer = http.post(f"{world.root}/namespaces/{ns}/tables", json=body, headers=headers)
            if answer.status_code in (403, 404):
                return made
            # 429: what is allowed keeps changing.
            assert answer.status_code in (200, 429), answer.text
            made += answer.status_code == 200
