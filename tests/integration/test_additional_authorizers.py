# SPDX-License-Identifier: Apache-2.0
"""Authorizers in addition to OpenFGA, through a gateway: the one over rows, and one of another package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from lakegate.conformance.authorizers import AUTHORIZER_RULES
from lakegate.local.ready import Ready
from tests.extensions.installing import install
from tests.support.servers.toxic import second_gateway
from tests.support.stack.explained import explain, of_table
from tests.support.stack.world import SCHEMA, Person, World, error_of, error_triple, unique

pytestmark = [pytest.mark.servers, pytest.mark.integration]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Narrowed:
    """The persons of the stack at a gateway with both authorizers, and the folder of frozen objects."""

    world: World
    base: str
    frozen: Path

    def person(self, other: Person) -> Person:
        return Person(other.name, other.id, other.token, self.base)


@pytest.fixture(scope="module")
def narrowed(stack: Ready, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Narrowed]:
    site, frozen = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("frozen")
    install(site, "folders")
    environment = {"PYTHONPATH": f"{site}:{ROOT}", "LAKEGATE_FOLDERS_FROZEN": str(frozen)}
    world = World(stack)
    log = tmp_path_factory.mktemp("log") / "gateway.log"
    with second_gateway(stack, log, environment, AUTHORIZERS="rows,freeze") as (base, _):
        yield Narrowed(world, base, frozen)
    world.close()


def test_rights_are_those_of_grants_from_creation_to_revocation(narrowed: Narrowed) -> None:
    """A right that OpenFGA and the rows give at different times would be refused in between."""
    admin, stranger = narrowed.person(narrowed.world.admin), narrowed.person(narrowed.world.stranger())
    root, namespace = f"/catalog/v1/{narrowed.world.warehouse}/namespaces", unique("ns")
    created = admin.post(root, {"namespace": [namespace]})
    assert created.status_code == 200, created.text
    table = admin.post(f"{root}/{namespace}/tables", {"name": "t", "schema": SCHEMA})
    assert table.status_code == 200, table.text
    path, id = f"{root}/{namespace}/tables/t", table.json()["metadata"]["table-uuid"]
    assert admin.get(path).status_code == 200
    assert error_triple(stranger.get(path))[0] == 404
    narrowed.world.grant("select", stranger, "table", id)
    assert stranger.get(path).status_code == 200
    listed = stranger.get(f"{root}/{namespace}/tables").json()["identifiers"]
    assert [each["name"] for each in listed] == ["t"], "the list needs `traverse` and the table's own grant"
    assert stranger.delete(path).status_code == 403


def test_an_authorizer_of_a_package_refuses_what_openfga_allows(narrowed: Narrowed) -> None:
    admin = narrowed.person(narrowed.world.admin)
    root, namespace = f"/catalog/v1/{narrowed.world.warehouse}/namespaces", unique("ns")
    assert admin.post(root, {"namespace": [namespace]}).status_code == 200
    table = admin.post(f"{root}/{namespace}/tables", {"name": "t", "schema": SCHEMA})
    path = f"{root}/{namespace}/tables/t"
    [row] = narrowed.world.sql(
        "select id::text from tables where table_uuid = $1", table.json()["metadata"]["table-uuid"]
    )
    frozen = narrowed.frozen / f"table:{row['id']}"
    assert explain(admin, of_table(narrowed.world, row["id"], "drop"))["decision"] == "allowed"
    frozen.touch()
    refused = admin.delete(path)
    assert refused.status_code == 403, "the refusal must count although OpenFGA's allow is cached"
    assert admin.get(path).status_code == 200
    found = explain(admin, of_table(narrowed.world, row["id"], "drop"))
    assert (found["decision"], found["blocked-by"]) == ("denied", ["authorizer"])
    assert found["summary"].endswith(": an additional authorizer refuses it.")
    assert found["relationships"]["witnesses"], "the grants give the right"
    about = {"action": "drop", "object": {"table": {"warehouse-id": narrowed.world.warehouse, "table-id": row["id"]}}}
    for question in ("who-can", "what-can"):
        listed = admin.post(f"/management/v1/access/{question}", about)
        assert listed.json()["authorizers-not-asked"] == ["rows", "freeze"], listed.text
        plain = narrowed.world.admin.post(f"/management/v1/access/{question}", about)
        assert "authorizers-not-asked" not in plain.json(), plain.text
    denial = admin.get(f"/management/v1/access/denials/{error_of(refused)['message'].rpartition('denial=')[2]}")
    assert denial.json()["explanation"]["blocked-by"] == ["authorizer"], denial.text
    frozen.unlink()
    assert admin.delete(path).status_code == 204


def test_authorizers_are_shown_in_health(narrowed: Narrowed) -> None:
    health = httpx.get(f"{narrowed.base}/health", timeout=30, trust_env=False).json()
    services = health.get("services", health)
    assert {each["name"]: each["status"] for each in services["authorizers"]} == {"rows": "ok", "freeze": "ok"}


@pytest.mark.parametrize("name", ["rows", "openfga"])
def test_the_kit_accepts_both_implementations_of_the_repository(narrowed: Narrowed, name: str, tmp_path: Path) -> None:
    world, stranger = narrowed.world, narrowed.world.stranger()
    table = world.table(world.namespace()).uuid
    world.grant("select", stranger, "table", table)
    answers = [
        {"user": user, "relation": "can_read_data", "object": f"table:{table}", "allowed": user == stranger.id}
        for user in (stranger.id, "oidc~unknown")
    ]
    expected = tmp_path / "answers.json"
    expected.write_text(json.dumps(answers))
    done = world.lakegate("conformance", "authorizers", name, "--expected", str(expected))
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [f"holds   {rule.name}" for rule in AUTHORIZER_RULES],
    ), done.stderr
    expected.write_text(json.dumps([each | {"allowed": not each["allowed"]} for each in answers]))
    done = world.lakegate("conformance", "authorizers", name, "--expected", str(expected))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "BROKEN  the expected answers are given")
