# SPDX-License-Identifier: Apache-2.0
"""Row filters with claims: the user's own token decides, also through an engine, and tokens share no answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.exchanging import ACCESS_TOKEN, JWT, last_record, send, unsigned
from tests.support.stack.providers import AUDIENCE, StubProvider, stub_provider
from tests.support.stack.world import Person, Table, World, send_until_decided, unique

pytestmark = pytest.mark.servers

AMONG: dict[str, Any] = {
    "kind": "row-filter",
    "test": {
        "type": "in",
        "column": {"name": "name"},
        "values": {"type": "attribute", "source": "claim", "name": "org.team"},
    },
}
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}
OTHER_AUDIENCE = "else"

#: Returns a user of the stub provider with these claims in the token; `subject` names an earlier user again.
NewPerson = Callable[..., Person]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claims") / "gateway.log"


@pytest.fixture(scope="module")
def partner(world: World, log: Path) -> Iterator[tuple[str, StubProvider]]:
    """Run a gateway with two providers of one issuer that keep different claims; yield (address, provider)."""
    with stub_provider() as provider:
        settings = {
            "OPENID_PROVIDERS__PARTNER__URI": provider.issuer,
            "OPENID_PROVIDERS__PARTNER__AUDIENCE": AUDIENCE,
            "OPENID_PROVIDERS__PARTNER__POLICY_CLAIMS": "org.team,unused",
            "OPENID_PROVIDERS__ELSE__URI": provider.issuer,
            "OPENID_PROVIDERS__ELSE__AUDIENCE": OTHER_AUDIENCE,
            "OPENID_PROVIDERS__ELSE__POLICY_CLAIMS": "site",
        }
        with second_gateway(world.ready, log, **settings) as (base, _):
            yield base, provider


@pytest.fixture
def person(partner: tuple[str, StubProvider]) -> Iterator[NewPerson]:
    base, provider = partner
    people: list[Person] = []

    def new(team: Any = ..., *, subject: str | None = None, provider_id: str = "partner", **claims: Any) -> Person:
        subject = subject or unique("pat")
        audience = AUDIENCE if provider_id == "partner" else OTHER_AUDIENCE
        org: dict[str, Any] = {} if team is ... else {"org": {"team": team}}
        token = provider.token(subject, aud=audience, **org, **claims)
        found = Person(subject, f"{provider_id}~{subject}", token, base)
        people.append(found)
        body = {"name": subject, "user-type": "human", "update-if-exists": True}
        assert send_until_decided(lambda: found.post("/management/v1/user", body)).status_code in (200, 201)
        return found

    yield new
    for each in people:
        each.http.close()


@pytest.fixture
def table(world: World, ns: str) -> Table:
    return wide(world, ns)


@pytest.fixture
def engine(world: World, person: NewPerson) -> Person:
    """Return an engine with `delegate` and `enforcer`, whose own token has a claim."""
    found = person("of-the-engine")
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, found, "warehouse", world.warehouse)
    return found


def restrict(world: World, table: Table, definition: dict[str, Any] = AMONG) -> None:
    """Bind a new policy to the table."""
    policy = make(world, definition)
    assert change(world, policy, add=[target(world, table)]).status_code == 204


def exchanged(world: World, engine: Person, user: Person, *, proven: bool = True) -> Person:
    """Return the user with a token that the engine exchanged; the engine asserts the user unless `proven`."""
    token = user.token if proven else unsigned(user.name, org={"team": "asserted"})
    kind, base = ACCESS_TOKEN if proven else JWT, str(engine.http.base_url)
    answer = send(world, engine.token, base=base, subject_token=token, subject_token_type=kind, scope="catalog")
    assert answer.status_code == 200, answer.text
    return Person(user.name, user.id, answer.json()["access_token"], base)


def row_filter(through: Person, table: Table) -> Any:
    """Return the row filter of a load: the sorted values that it accepts, or the filter itself."""
    loaded = through.get(table.path)
    assert loaded.status_code == 200, loaded.text
    found = loaded.json()["read-restrictions"]["required-row-filter"]
    if isinstance(found, dict) and found["type"] in ("in", "eq"):
        right = found.get("values") or [found["right"]["value"]]
        return sorted(each["value"] if isinstance(each, dict) else each for each in right)
    return found


def key_of(through: Person, table: Table) -> str:
    """Return the id of the access key that a load vends."""
    [credential] = through.get(table.path, headers=DELEGATION).json()["storage-credentials"]
    return str(credential["config"]["s3.access-key-id"])


@pytest.mark.threat("LG-AUT-18")
def test_two_tokens_of_one_user_read_different_rows(
    world: World, person: NewPerson, engine: Person, table: Table
) -> None:
    restrict(world, table)
    europe = person("eu")
    world.grant("select", europe, "table", table.uuid)
    america = person(["us", "ca"], subject=europe.name)
    neither = person(subject=europe.name)
    by_token = {each.token: exchanged(world, engine, each) for each in (europe, america, neither)}
    for _ in range(2):
        assert row_filter(by_token[europe.token], table) == ["eu"]
        assert row_filter(by_token[america.token], table) == ["ca", "us"]
        assert row_filter(by_token[neither.token], table) is False
    keys = {each.token: [key_of(by_token[each.token], table) for _ in range(2)] for each in (europe, america)}
    assert all(first == again for first, again in keys.values()), "one token reuses its cached credential"
    assert keys[europe.token] != keys[america.token]
    tag = by_token[europe.token].get(table.path).headers["etag"]
    assert by_token[europe.token].get(table.path, headers={"If-None-Match": tag}).status_code == 304
    assert by_token[america.token].get(table.path, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.threat("LG-AUT-18")
def test_a_named_user_has_neither_its_own_claims_nor_those_of_the_engine(
    world: World, person: NewPerson, engine: Person, table: Table
) -> None:
    restrict(world, table)
    user = person("eu")
    world.grant("select", user, "table", table.uuid)
    assert row_filter(exchanged(world, engine, user), table) == ["eu"]
    assert exchanged(world, engine, user, proven=False).get(table.path).status_code == 403
    about = {"action": "read_columns", "warehouse-id": world.warehouse, "table-id": table.uuid, "restrictions": "trino"}
    check = {"operation": {"table": about}, "identity": {"user": user.id}}
    answer = engine.post("/management/v1/action/batch-check", {"checks": [check], "delegated": True})
    [result] = answer.json()["results"]
    assert result["allowed"], answer.text
    assert result["restrictions"]["row-filter"] == "FALSE"
    where = ("--warehouse", world.warehouse, "--table", table.uuid, "--user", user.id)
    done = world.lakegate(
        "data-policy", "test", *where, "--gateway", world.ready.catalog_uri, "--token", world.admin.token
    )
    assert json.loads(done.stdout)["restrictions"]["row-filter"] == "FALSE", done.stderr
    assert "Tests with claims are false" in done.stderr


@pytest.mark.threat("LG-AUT-13", "LG-AUT-18")
def test_an_exchanged_token_cannot_be_exchanged_for_other_claims(
    world: World, person: NewPerson, engine: Person, table: Table
) -> None:
    user = person("eu")
    through = exchanged(world, engine, user)
    claims = json.loads(base64.urlsafe_b64decode(through.token.split(".")[1] + "=="))
    assert claims["policy_claims"] == [["org.team", ["eu"]]]
    base = str(engine.http.base_url)
    for bearer, subject in ((engine.token, through.token), (through.token, person("us", subject=user.name).token)):
        again = send(world, bearer, base=base, subject_token=subject, subject_token_type=ACCESS_TOKEN, scope="catalog")
        assert again.status_code == 400, again.text


@pytest.mark.threat("LG-AUT-18")
def test_each_provider_keeps_the_claims_of_its_own_setting(
    world: World, person: NewPerson, engine: Person, table: Table
) -> None:
    restrict(world, table)
    site = {**AMONG, "test": {**AMONG["test"], "values": {**AMONG["test"]["values"], "name": "site"}}}
    for provider_id, kept, expected in (("else", AMONG, False), ("else", site, ["hq"]), ("partner", site, False)):
        other = wide(world, table.namespace)
        restrict(world, other, kept)
        user = person("eu", provider_id=provider_id, site="hq")
        world.grant("select", user, "table", other.uuid)
        assert row_filter(exchanged(world, engine, user), other) == expected, (provider_id, kept)


def test_claims_that_do_not_fit_into_a_token_are_omitted_and_recorded(
    world: World, person: NewPerson, engine: Person, table: Table
) -> None:
    restrict(world, table)
    user = person([f"{number:0250d}" for number in range(40)])
    world.grant("select", user, "table", table.uuid)
    assert row_filter(exchanged(world, engine, user), table) is False
    assert '"policy_claims":"omitted"' in last_record(world, "exchange_token")


def test_an_unusable_claim_is_logged_without_its_value(
    world: World, person: NewPerson, engine: Person, table: Table, log: Path
) -> None:
    restrict(world, table)
    user = person(["eu", {"secret-value": 1}])
    world.grant("select", user, "table", table.uuid)
    assert row_filter(exchanged(world, engine, user), table) is False
    written = log.read_text()
    assert "claim.omitted" in written
    assert "secret-value" not in written
