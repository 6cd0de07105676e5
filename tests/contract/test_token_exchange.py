# SPDX-License-Identifier: Apache-2.0
"""Token exchange (RFC 8693) at `/catalog/v1/oauth/tokens`: its authorization, and the rights of the issued tokens."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.stack.exchanging import ACCESS_TOKEN, JWT, TOKENS, acting, delegating, last_record, send, unsigned
from tests.support.stack.roles import make
from tests.support.stack.world import Person, Table, World, error_of, error_triple, unique


@pytest.fixture
def engine(world: World) -> Iterator[Person]:
    """Yield an engine with `delegate` on the warehouse as its only right there."""
    world.strip(world.etl)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        yield world.etl


@pytest.fixture
def table(world: World, ns: str) -> Iterator[Table]:
    """Yield a table that carol may read."""
    table = world.table(ns)
    world.grant("select", world.carol, "table", table.uuid)
    yield table
    world.revoke("select", world.carol, "table", table.uuid)


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Return (status, error code) of a refusal in the form of OAuth."""
    body = answer.json()
    assert set(body) == {"error", "error_description"}, body
    return answer.status_code, body["error"]


@pytest.mark.parametrize("proven", [True, False], ids=["with the user's token", "by name alone"])
def test_an_engine_acts_for_a_user_with_the_users_rights(
    world: World, engine: Person, table: Table, proven: bool
) -> None:
    assert error_triple(engine.get(table.path))[0] == 404, "the engine must have no right of its own"
    person = acting(world, engine, world.carol, proven=proven)
    assert person.get(table.path).status_code == 200
    assert person.get(f"{table.path}/credentials").status_code == 200
    write = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert error_triple(person.post(table.path, write))[0] == 403, "the engine must not do what the user may not"


def test_token_response_follows_rfc_8693(world: World, engine: Person) -> None:
    answer = send(world, engine.token, subject_token=world.carol.token, subject_token_type=ACCESS_TOKEN)
    body = answer.json()
    assert set(body) == {"access_token", "issued_token_type", "token_type", "expires_in", "scope"}
    assert (body["issued_token_type"], body["token_type"], body["scope"]) == (ACCESS_TOKEN, "Bearer", "catalog")
    assert 0 < body["expires_in"] <= 900
    assert answer.headers["cache-control"] == "no-store"


def test_the_engines_token_may_be_the_actor_token(world: World, engine: Person) -> None:
    subject = unsigned("carol")
    both = send(world, engine.token, subject_token=subject, actor_token=engine.token, actor_token_type=ACCESS_TOKEN)
    alone = send(world, None, subject_token=subject, actor_token=engine.token, actor_token_type=JWT)
    assert (both.status_code, alone.status_code) == (200, 200)


def test_audit_names_user_and_engine(world: World, engine: Person, table: Table) -> None:
    person = acting(world, engine, world.carol, proven=False)
    exchanged = last_record(world, "exchange_token")
    assert f'"id":"{engine.id}"' in exchanged
    assert f'"subject":"{world.carol.id}"' in exchanged
    assert '"proven":"no"' in exchanged
    assert person.token not in exchanged
    assert person.get(f"{table.path}/credentials").status_code == 200
    vended = last_record(world, "vend_credentials")
    assert f'"id":"{world.carol.id}"' in vended
    assert f'"engine":"{engine.id}"' in vended


def test_objects_created_through_an_engine_belong_to_the_user(world: World, engine: Person, ns: str) -> None:
    space = world.namespace_id(ns)
    world.grant("create", world.carol, "namespace", space)
    try:
        table = world.table(ns, by=acting(world, engine, world.carol))
        held = world.sql("select principal_id from grants where object_id = $1 and privilege = 'ownership'", table.uuid)
        assert [row["principal_id"] for row in held] == [world.carol.id]
    finally:
        world.revoke("create", world.carol, "namespace", space)


def test_delegate_relation_is_checked_on_each_use(world: World, engine: Person, table: Table) -> None:
    person = acting(world, engine, world.carol)
    for _ in range(3):
        assert person.get(table.path).status_code == 200
    world.revoke("delegate", engine, "warehouse", world.warehouse)
    assert error_triple(person.get(table.path))[:2] == (404, "NoSuchTableException"), (
        "an engine without delegate must get the response of an absent table"
    )
    assert world.carol.get(table.path).status_code == 200
    assert refused(send(world, engine.token, subject_token=world.carol.token)) == (400, "unauthorized_client")
    world.grant("delegate", engine, "warehouse", world.warehouse)
    assert person.get(table.path).status_code == 200


def test_project_delegate_applies_to_its_warehouses_and_to_roles(world: World, table: Table) -> None:
    engine = world.etl
    world.strip(engine)
    role = make(world)
    path = world.grants_path("project", world.project)
    assert world.admin.post(path, {"writes": [{"type": "delegate", "role": role["id"]}]}).status_code == 204
    try:
        assert refused(send(world, engine.token, subject_token=world.carol.token)) == (400, "unauthorized_client")
        member = world.admin.post(
            f"/management/v1/permissions/role/{role['id']}/assignments",
            {"writes": [{"type": "assignee", "user": engine.id}]},
        )
        assert member.status_code == 204, member.text
        assert acting(world, engine, world.carol).get(table.path).status_code == 200
    finally:
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def test_delegate_can_be_granted_on_projects_and_warehouses_alone(world: World, ns: str) -> None:
    entry = {"writes": [{"type": "delegate", "user": world.etl.id}]}
    assert world.admin.post(world.grants_path("namespace", world.namespace_id(ns)), entry).status_code == 400
    assert world.admin.post(world.grants_path("server", ""), entry).status_code == 400
    assert error_triple(world.bob.post(world.grants_path("warehouse", world.warehouse), entry))[0] == 403


@pytest.mark.threat("LG-DEC-21")
def test_exchanged_token_is_refused_on_the_management_api(world: World, engine: Person) -> None:
    person = acting(world, engine, world.admin)
    for path in ("/management/v1/whoami", "/management/v1/warehouse", "/management/v1/user"):
        assert error_triple(person.get(path))[:2] == (403, "DelegationForbidden"), path
    granting = person.post(
        world.grants_path("warehouse", world.warehouse), {"writes": [{"type": "ownership", "user": engine.id}]}
    )
    assert error_triple(granting)[:2] == (403, "DelegationForbidden")
    assert person.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}").status_code == 200


def test_token_exchange_creates_no_user_record(world: World, engine: Person) -> None:
    stranger = Person("stranger", f"oidc~{unique('stranger')}", "", world.base)
    person = acting(world, engine, stranger, proven=False)
    assert error_triple(person.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}"))[0] == 404
    assert world.sql("select 1 from users where id = $1", stranger.id) == []


def test_self_renewal_error_names_the_identity_provider(world: World, engine: Person) -> None:
    renewal = send(world, engine.token, subject_token=engine.token, subject_token_type=ACCESS_TOKEN)
    assert refused(renewal) == (400, "invalid_request")
    assert "oauth2-server-uri" in renewal.json()["error_description"]
    ordinary = send(world, world.alice.token, subject_token=world.alice.token, subject_token_type=ACCESS_TOKEN)
    assert refused(ordinary) == (400, "invalid_request")
    credentials = send(world, None, grant_type="client_credentials", client_id="a", client_secret="b")
    assert refused(credentials) == (400, "unsupported_grant_type")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"subject_token": ""}, (400, "invalid_request")),
        ({"subject_token_type": "urn:ietf:params:oauth:token-type:id_token"}, (400, "invalid_request")),
        ({"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, (400, "invalid_request")),
        ({"scope": "server"}, (400, "invalid_scope")),
        ({"audience": "another"}, (400, "invalid_target")),
        ({"resource": "https://other.example"}, (400, "invalid_target")),
        ({"actor_token": "x"}, (400, "invalid_request")),
        # A bare name is no proof of a token: a user of Trino can send one as an extra credential.
        ({"subject_token_type": ACCESS_TOKEN}, (400, "invalid_request")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_malformed_token_exchange_is_refused_with_the_reason(
    world: World, engine: Person, form: dict[str, str], expected: tuple[int, str]
) -> None:
    assert refused(send(world, engine.token, **{"subject_token": unsigned("carol"), **form})) == expected


def test_only_a_form_with_each_parameter_once_is_read(world: World, engine: Person) -> None:
    as_json = engine.post(TOKENS, {"grant_type": "client_credentials"})
    assert refused(as_json) == (400, "invalid_request")
    twice = engine.http.post(
        TOKENS,
        content=b"grant_type=client_credentials&grant_type=client_credentials",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert refused(twice) == (400, "invalid_request")
    assert engine.get(TOKENS).status_code == 405


def test_unauthenticated_exchange_is_401_in_oauth_form(world: World) -> None:
    answer = send(world, None, subject_token=unsigned("carol"))
    assert refused(answer) == (401, "invalid_client")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert error_of(httpx.get(f"{world.base}{world.root}/namespaces", trust_env=False, timeout=60))["code"] == 401
