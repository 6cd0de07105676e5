# SPDX-License-Identifier: Apache-2.0
"""Probes of engines over HTTP: verdicts, the results that are refused, and the trust that follows from a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.stack.engine_probes import opened, passed, path_of, posted, shown, state
from tests.support.stack.world import World, error_triple


@pytest.fixture(autouse=True)
def unprobed(world: World) -> Iterator[None]:
    """Remove all probes and the engine's grants, before and after the test."""

    def clean() -> None:
        world.sql("delete from engine_probes")
        world.strip(world.etl)

    clean()
    yield
    clean()


def test_passed_probe_is_listed_until_it_expires(world: World) -> None:
    challenge = opened(world, world.etl)
    assert challenge["namespace"] == ["lakegate_probe"]
    assert challenge["table"].startswith("canary_")
    assert "open-until" in state(world, world.etl)
    passed(world, world.etl)
    assert (state(world, world.etl)["verdict"], state(world, world.etl)["trusted"]) == ("passed", True)
    world.sql("update engine_probes set valid_until = clock_timestamp() - interval '1 second'")
    assert state(world, world.etl)["verdict"] == "passed"


@pytest.mark.parametrize("output", ["", "no rows", "hidden"])
def test_output_with_a_hidden_value_or_without_the_shown_ones_fails(world: World, output: str) -> None:
    challenge = opened(world, world.etl)
    raw = shown(challenge) + challenge["rows"][1]["hidden"] if output == "hidden" else output
    answer = posted(world, challenge, raw)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["verdict"], answer.json()["trusted"]) == ("failed", False), answer.text
    kept = json.dumps(answer.json()) + str(world.sql("select challenge, detail from engine_probes"))
    assert not any(value in kept for row in challenge["rows"] for value in row.values() if isinstance(value, str))


def test_result_is_accepted_once_and_only_for_the_latest_probe(world: World) -> None:
    first, second = opened(world, world.etl), opened(world, world.etl)
    assert error_triple(posted(world, first, shown(first)))[:2] == (409, "EngineProbeNotOpen")
    assert posted(world, second, "").json()["verdict"] == "failed"
    again = posted(world, second, shown(second))
    assert error_triple(again)[:2] == (409, "EngineProbeNotOpen"), "a failed probe must not be repaired by a replay"
    assert state(world, world.etl)["verdict"] == "failed"


def test_result_after_the_end_of_the_probe_is_refused(world: World) -> None:
    challenge = opened(world, world.etl)
    world.sql(
        "update engine_probes set challenge = jsonb_set(challenge, '{expires-at}', to_jsonb($1::text))",
        "2020-01-01T00:00:00Z",
    )
    assert error_triple(posted(world, challenge, shown(challenge)))[:2] == (409, "EngineProbeNotOpen")
    assert "verdict" not in state(world, world.etl)


def test_probe_of_another_warehouse_is_unknown(world: World) -> None:
    challenge = opened(world, world.etl)
    world.sql("update engine_probes set challenge = jsonb_set(challenge, '{id}', to_jsonb(gen_random_uuid()::text))")
    assert error_triple(posted(world, challenge, shown(challenge)))[:2] == (409, "EngineProbeNotOpen")


def test_only_principals_that_may_grant_enforcer_open_list_and_finish_probes(world: World) -> None:
    challenge = opened(world, world.etl)
    world.grant("enforcer", world.etl, "warehouse", world.warehouse)
    world.grant("delegate", world.etl, "warehouse", world.warehouse)
    for person in (world.etl, world.carol):
        answers = (
            person.post(path_of(world), {"engine": world.trino.id if hasattr(world, "trino") else "oidc~trino"}),
            person.get(path_of(world)),
            posted(world, challenge, shown(challenge), by=person),
        )
        assert all(each.status_code == 404 for each in answers), [each.text for each in answers]
    assert "verdict" not in state(world, world.etl)


def test_engine_cannot_vouch_for_itself_even_if_it_may_grant(world: World) -> None:
    world.grant("security_admin", world.etl, "project", world.project)
    own = world.etl.post(path_of(world), {"engine": world.etl.id})
    assert error_triple(own)[:2] == (403, "OwnProbeForbidden")
    challenge = opened(world, world.etl)
    stolen = posted(world, challenge, shown(challenge), by=world.etl)
    assert error_triple(stolen)[:2] == (403, "OwnProbeForbidden")
    assert posted(world, challenge, shown(challenge)).json()["self-test"] == "passed", "a refusal must not close it"


def test_result_of_another_principal_is_refused(world: World) -> None:
    world.grant("security_admin", world.steward, "project", world.project)
    try:
        challenge = opened(world, world.etl)
        stolen = posted(world, challenge, shown(challenge), by=world.steward)
        assert error_triple(stolen)[:2] == (403, "OwnProbeForbidden")
    finally:
        world.strip(world.steward)


def test_repeated_request_with_its_key_returns_the_same_probe(world: World) -> None:
    headers = {"Idempotency-Key": "0195d5a6-0000-7000-8000-00000000f019"}
    first = world.admin.post(path_of(world), {"engine": world.etl.id}, headers=headers)
    again = world.admin.post(path_of(world), {"engine": world.etl.id}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201), again.text
    assert first.json() == again.json()


def test_passed_self_test_changes_no_state(world: World) -> None:
    challenge = opened(world, world.etl)
    answer = posted(world, challenge, shown(challenge))
    assert answer.json()["self-test"] == "passed", answer.text
    assert "verdict" not in answer.json() and "open-until" not in answer.json()
    posted(world, opened(world, world.etl), "")
    challenge = opened(world, world.etl)
    answer = posted(world, challenge, shown(challenge))
    assert (answer.json()["self-test"], answer.json()["verdict"]) == ("passed", "failed")
    assert answer.json()["trusted"] is False, "a self-test must not restore the trust"


def test_gateway_reads_only_at_an_address_of_its_settings(world: World) -> None:
    challenge = opened(world, world.etl)
    assert "user" not in challenge and "control" not in challenge
    refused = world.admin.post(f"{path_of(world)}/{challenge['id']}/run", {})
    assert error_triple(refused)[:2] == (409, "EngineAddressUnknown")
    assert "verdict" not in state(world, world.etl)


def test_grantor_of_the_engine_does_not_run_its_probe(world: World) -> None:
    world.grant("enforcer", world.etl, "warehouse", world.warehouse)
    challenge = opened(world, world.etl)
    refused = world.admin.post(f"{path_of(world)}/{challenge['id']}/run", {})
    assert error_triple(refused)[:2] == (403, "OwnProbeForbidden")
