# SPDX-License-Identifier: Apache-2.0
"""Attacks on engines that act for users (LG-AUT-13, LG-DEC-20): each attempt is refused and issues no token."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.stack.exchanging import JWT, TOKENS, acting, b64, delegating, send, unsigned
from tests.support.stack.lifecycle import until
from tests.support.stack.warehouses import make
from tests.support.stack.world import Person, Table, World, error_triple, unique


@pytest.fixture
def engine(world: World) -> Iterator[Person]:
    """Return an engine with `delegate` on the warehouse."""
    world.strip(world.etl)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        yield world.etl


def kept(answer: httpx.Response, *statuses: int) -> None:
    """Assert that the response is a refusal and holds no token."""
    assert answer.status_code in (statuses or (400, 401)), answer.text
    assert "access_token" not in answer.json()


def opened(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the header, claims and signature of a token."""
    header, claims, signature = token.split(".")

    def read(part: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return found

    return read(header), read(claims), signature


def closed(header: dict[str, Any], claims: dict[str, Any], signature: str) -> str:
    """Return the token that these parts form."""
    return f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}.{signature}"


def rejected(world: World, token: str, path: str) -> None:
    """Assert that the gateway rejects the token with 401 and does not return it in the response."""
    answer = httpx.get(f"{world.base}{path}", headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60)
    assert answer.status_code == 401, answer.text
    assert token not in answer.text


def test_subject_name_without_an_actor_is_refused(world: World, engine: Person, table: Table) -> None:
    kept(send(world, None, subject_token=unsigned("admin")), 401)
    kept(send(world, None, subject_token=unsigned("admin"), actor_token=unsigned("etl"), actor_token_type=JWT))
    rejected(world, unsigned("admin"), table.path)


@pytest.mark.threat("LG-DEC-20")
def test_engine_without_delegate_cannot_name_a_user(world: World, engine: Person) -> None:
    for proven in (world.admin.token, unsigned("admin")):
        kept(send(world, world.carol.token, subject_token=proven))


def test_forged_actor_token_is_refused(world: World, engine: Person) -> None:
    header, claims, signature = opened(world.carol.token)
    forged = closed(header, {**claims, "sub": "etl"}, signature)
    kept(send(world, forged, subject_token=world.alice.token), 401)
    kept(send(world, None, subject_token=world.alice.token, actor_token=forged, actor_token_type=JWT))
    # A valid bearer token with the actor token of another principal, and the reverse.
    kept(
        send(world, world.carol.token, subject_token=unsigned("admin"), actor_token=engine.token, actor_token_type=JWT)
    )
    kept(
        send(world, engine.token, subject_token=unsigned("admin"), actor_token=world.carol.token, actor_token_type=JWT)
    )


@pytest.mark.threat("LG-AUT-13")
def test_actor_token_as_subject_and_subject_with_an_actor_are_refused(world: World, engine: Person) -> None:
    kept(send(world, engine.token, subject_token=engine.token))
    kept(send(world, engine.token, subject_token=unsigned("etl")))
    kept(send(world, engine.token, subject_token=unsigned("carol", act={"sub": "other-engine"})))
    kept(send(world, world.carol.token, subject_token=engine.token))


@pytest.mark.threat("LG-AUT-13")
def test_exchanged_token_cannot_be_exchanged_again(world: World, engine: Person) -> None:
    exchanged = acting(world, engine, world.admin).token
    kept(send(world, exchanged, subject_token=exchanged))
    kept(send(world, exchanged, subject_token=unsigned("carol")))
    kept(send(world, engine.token, subject_token=exchanged))
    kept(send(world, engine.token, subject_token=unsigned("carol"), actor_token=exchanged, actor_token_type=JWT))
    # The user of an exchanged token may be an engine: such a token gives no right to act for another user.
    with delegating(world, world.steward, "warehouse", world.warehouse):
        through = acting(world, engine, world.steward).token
        kept(send(world, through, subject_token=unsigned("admin")))


def test_exchanged_token_is_refused_after_revocation_of_delegate(world: World, engine: Person, table: Table) -> None:
    token = acting(world, engine, world.admin)
    assert token.get(table.path).status_code == 200
    world.revoke("delegate", engine, "warehouse", world.warehouse)
    try:
        for path in (table.path, f"{table.path}/credentials", f"{world.root}/namespaces"):
            assert error_triple(token.get(path))[0] == 404, path
        renamed = token.post(
            f"{world.root}/tables/rename",
            {
                "source": {"namespace": [table.namespace], "name": table.name},
                "destination": {"namespace": [table.namespace], "name": unique("taken")},
            },
        )
        assert error_triple(renamed)[0] == 404
    finally:
        world.grant("delegate", engine, "warehouse", world.warehouse)
    assert world.admin.get(table.path).status_code == 200


@pytest.mark.threat("LG-DEC-20")
def test_delegate_on_one_warehouse_has_no_effect_in_another(world: World, table: Table) -> None:
    world.strip(world.etl)
    other = make(world).id
    with delegating(world, world.etl, "warehouse", other):
        person = acting(world, world.etl, world.admin)
        absent = error_triple(person.get(f"{world.root}/namespaces/{unique('no')}"))
        there = error_triple(person.get(f"{world.root}/namespaces/{table.namespace}"))
        assert there[:2] == absent[:2] == (404, "NoSuchNamespaceException"), (
            "an engine must get the response of an absent namespace"
        )
        assert error_triple(person.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}"))[0] == 404
        assert person.get(f"/catalog/v1/{other}/namespaces").status_code == 200


@pytest.mark.parametrize("subject", ["", " ", "carol ", "carol\n", "carol\x00", "c" * 128, None, 1, ["carol"]])
def test_subject_that_is_no_user_id_is_refused(world: World, engine: Person, subject: object) -> None:
    kept(send(world, engine.token, subject_token=unsigned(subject)), 400)


@pytest.mark.parametrize("subject", ["*", "user:*", "carol#member", "role:0#assignee"])
def test_subject_with_relationship_syntax_is_a_user_without_rights(
    world: World, engine: Person, table: Table, subject: str
) -> None:
    """The name is an ordinary user id without grants: never a wildcard, never a userset."""
    answer = send(world, engine.token, subject_token=unsigned(subject))
    assert answer.status_code == 200, answer.text
    person = Person("odd", "", answer.json()["access_token"], world.base)
    assert error_triple(person.get(table.path))[0] == 404


def test_modified_exchanged_token_is_refused(world: World, engine: Person, table: Table) -> None:
    token = acting(world, engine, world.carol).token
    header, claims, signature = opened(token)
    for change in (
        {"sub": world.admin.id},
        {"act": {"sub": world.admin.id}},
        {"aud": "urn:lakegate:another"},
        {"iss": "urn:lakegate:another"},
        {"exp": claims["exp"] + 3600},
    ):
        rejected(world, closed(header, {**claims, **change}, signature), table.path)
    for change in ({"alg": "none"}, {"alg": "HS256"}, {"kid": "another"}, {"kid": "../../etc"}, {"typ": "at+jwt"}):
        rejected(world, closed({**header, **change}, claims, signature), table.path)
    rejected(world, closed({**header, "alg": "none"}, claims, ""), table.path)
    # A provider's token with the type of a gateway token is validated as a gateway token.
    theirs, encoded, sealed = opened(world.admin.token)
    rejected(world, closed({**theirs, "typ": header["typ"]}, encoded, sealed), table.path)


def test_token_of_a_revoked_signing_key_is_refused_within_a_second(world: World, table: Table) -> None:
    world.strip(world.etl)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        before = acting(world, world.etl, world.admin)
        assert before.get(table.path).status_code == 200
        assert world.lakegate("secrets", "withdraw-signing-keys").returncode == 2
        assert before.get(table.path).status_code == 200
        done = world.lakegate("secrets", "withdraw-signing-keys", "--yes")
        assert (done.returncode, done.stdout) == (0, "revoked signing keys: 1\n"), done.stderr
        # Every worker process must reject the token.
        until(
            lambda: {before.get(table.path).status_code for _ in range(8)} == {401},
            "the revoked key still verifies",
            10,
        )
        rejected(world, before.token, table.path)
        after = acting(world, world.etl, world.admin)
        assert after.get(table.path).status_code == 200
        rejected(world, before.token, table.path)


def test_private_signing_key_is_stored_encrypted(world: World, engine: Person) -> None:
    acting(world, engine, world.carol)
    rows = world.sql(
        "select convert_from(k.public, 'UTF8') as public, s.sealed from signing_keys k join secrets s on "
        "s.id = k.secret_id"
    )
    assert rows
    for row in rows:
        assert '"d"' not in row["public"]
        assert b'"d"' not in bytes(row["sealed"])


def test_no_token_is_in_the_audit(world: World, engine: Person) -> None:
    token = acting(world, engine, world.carol, proven=True).token
    parts = {part for each in (token, engine.token, world.carol.token) for part in each.split(".")[1:]}
    records = " ".join(
        row["record"]
        for row in world.sql(
            "select convert_from(record, 'UTF8') as record from audit_log where operation = 'exchange_token'"
        )
    )
    assert records
    assert not [part for part in parts if part in records]


def test_token_endpoint_does_not_bypass_the_latch(world: World) -> None:
    assert httpx.post(f"{world.base}{TOKENS}", trust_env=False, timeout=60).status_code == 400
