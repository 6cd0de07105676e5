# SPDX-License-Identifier: Apache-2.0
"""Lakekeeper's Python client (`pylakekeeper`) works with Lakegate unchanged.

Opt-in by `make test-lakekeeper-client`, which sets LAKEGATE_TEST_LAKEKEEPER_CLIENT.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.docs_commands import block
from tests.support.engines.pylakekeeper_environment import ProgramFailed, environment, run_program
from tests.support.stack.world import Person, World, unique

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("LAKEGATE_TEST_LAKEKEEPER_CLIENT"), reason="run `make test-lakekeeper-client`"
    ),
]


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    """Return the interpreter of the client's environment."""
    yield environment()


def by_id(world: World, person: Person) -> dict[str, Any]:
    """Return the arguments of a client of this user, for the warehouse by its id."""
    return {"base": world.base, "warehouse": world.warehouse, "token": person.token}


@pytest.fixture(params=["id", "name"])
def at(request: pytest.FixtureRequest, world: World) -> dict[str, Any]:
    """Return the arguments of a client of the administrator, with the id or the name of the warehouse."""
    found = by_id(world, world.admin)
    return found if request.param == "id" else {**found, "warehouse": world.ready.warehouse, "project": world.project}


def test_whoami_is_the_user_of_the_token(world: World, python: Path) -> None:
    assert run_program(python, "whoami", at=by_id(world, world.alice))["id"] == world.alice.id


def test_client_credentials_give_and_renew_a_token(world: World, python: Path) -> None:
    user = world.ready.users["bob"]
    login = {
        "token_url": world.ready.token_endpoint,
        "client_id": user.client_id,
        "client_secret": user.client_secret,
        "scope": "catalog",
    }
    at = {"base": world.base, "warehouse": world.warehouse, "login": login}
    assert run_program(python, "renewal", at=at) == [world.bob.id, world.bob.id, True]


def test_generic_tables_are_created_listed_by_page_and_dropped(at: dict[str, Any], ns: str, python: Path) -> None:
    found = run_program(python, "tables", at=at, namespace=ns)
    made = found["made"]
    assert (made["name"], made["format"], made["doc"], made["properties"]) == ("a", "lance", "vectors", {"k": "v"})
    assert found["loaded"] == made
    assert found["chosen"]
    assert sorted(found["listed"]) == [
        [[ns], "a", "lance", True],
        [[ns], "b", "dataset", True],
        [[ns], "c", "delta", True],
    ]
    assert (found["again"], found["dropped"], found["absent"]) == (409, 404, 404)
    assert sorted(found["left"]) == ["a", "b"]


def test_objects_of_a_table_are_written_and_read_with_vended_credentials(
    at: dict[str, Any], ns: str, python: Path
) -> None:
    found = run_program(python, "objects", at=at, namespace=ns, table="files")
    assert sorted(found["listed"][0]) == ["b.md", "notes/a.md"]
    assert found["listed"][1] == ["notes/a.md"]
    assert (found["read"], found["left"]) == ("one", ["b.md"])
    assert {"aws_access_key_id", "aws_endpoint", "aws_secret_access_key", "aws_session_token"} <= set(found["lance"])
    assert {"client_kwargs", "key", "secret", "token"} <= set(found["fsspec"])
    assert found["expires"]


def test_table_of_another_user_is_not_found(world: World, at: dict[str, Any], ns: str, python: Path) -> None:
    run_program(python, "objects", at=at, namespace=ns, table="hidden")
    stranger = {**at, "token": world.stranger().token}
    with pytest.raises(ProgramFailed) as refused:
        run_program(python, "load", at=stranger, namespace=ns, table="hidden")
    assert (refused.value.kind, refused.value.status) == ("NotFoundError", 404)


def test_iceberg_catalog_shares_the_login(at: dict[str, Any], ns: str, python: Path) -> None:
    assert run_program(python, "iceberg", at=at, namespace=ns) == {"rows": [1, 2], "tables": [[ns, "events"]]}


def test_memory_keeps_entries_and_vectors(at: dict[str, Any], ns: str, python: Path) -> None:
    assert run_program(python, "memory", at=at, namespace=ns) == {
        "hits": ["m/second.md"],
        "left": ["m/first.md"],
        "text": "aaa",
        "after": ["m/first.md"],
    }


def test_skills_are_proposed_by_the_caller(world: World, at: dict[str, Any], ns: str, python: Path) -> None:
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "proposed"]})
    assert made.status_code == 200, made.text
    listed, proposer, rejected, left = run_program(python, "skills", at=at, namespace=ns)
    assert (listed, rejected, left) == (["greet"], ["insult"], [])
    assert proposer == world.admin.id


def test_the_documented_example_runs(world: World, python: Path) -> None:
    namespace = unique("ml")
    world.namespace(namespace)
    user = world.ready.users["admin"]
    text = block("docs/data-engineer.md", "from pylakekeeper").text
    for documented, here in (
        ("http://127.0.0.1:8181", world.base),
        ('"demo"', f'"{world.ready.warehouse}"'),
        ('"ml"', f'"{namespace}"'),
    ):
        assert documented in text
        text = text.replace(documented, here)
    login = {"CLIENT_ID": user.client_id, "CLIENT_SECRET": user.client_secret}
    done = subprocess.run(
        [str(python), "-c", text],
        env={**os.environ, **login, "TOKEN_ENDPOINT": world.ready.token_endpoint},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert namespace in done.stdout
