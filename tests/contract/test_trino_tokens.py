# SPDX-License-Identifier: Apache-2.0
"""`lakegate trino tokens` with the requests of Trino, a real identity provider and a running gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from gateway.cli import main
from tests.support.stack.exchanging import ACCESS_TOKEN, EXCHANGE, JWT, delegating, unsigned
from tests.support.stack.trino_tokens import token_service
from tests.support.stack.world import Person, World


@pytest.fixture(scope="module")
def service(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with token_service(world.ready, tmp_path_factory.mktemp("tokens"), "etl") as running:
        yield running


def _post(url: str, bearer: str | None = None, **form: str) -> httpx.Response:
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    return httpx.post(url, data=form, headers=headers, trust_env=False, timeout=60)


def _own(world: World, url: str) -> str:
    client = world.ready.users["etl"]
    form = {"client_id": client.client_id, "client_secret": client.client_secret, "scope": "catalog"}
    answer = _post(url, grant_type="client_credentials", **form)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def _renewed(url: str, token: str) -> httpx.Response:
    more: dict[str, Any] = {"subject_token_type": ACCESS_TOKEN, "scope": "catalog"}
    return _post(url, token, grant_type=EXCHANGE, subject_token=token, **more)


def test_trino_renews_its_token_and_acts_for_a_user(world: World, service: tuple[str, Path], ns: str) -> None:
    url, log = service
    own = _own(world, url)
    renewed = _renewed(url, own)
    assert renewed.status_code == 200 and renewed.json()["access_token"] != own
    token = renewed.json()["access_token"]
    table, user = world.table(ns), world.stranger()
    world.grant("select", user, "table", table.uuid)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        name = unsigned(user.id.partition("~")[2])
        actor = {"actor_token": own, "actor_token_type": ACCESS_TOKEN, "scope": "catalog"}
        sent = {"grant_type": EXCHANGE, "subject_token": name, "subject_token_type": JWT, **actor}
        exchanged = _post(url, own, **sent)
        assert exchanged.status_code == 200, exchanged.text
        acting = Person("engine", user.id, exchanged.json()["access_token"], world.base)
        assert acting.get(table.path).status_code == 200
    for secret in (own, token, world.ready.users["etl"].client_secret, acting.token):
        assert secret not in log.read_text()


def test_a_user_gets_no_token_of_the_engine(world: World, service: tuple[str, Path]) -> None:
    url, _ = service
    user = world.stranger()
    assert _renewed(url, user.token).status_code == 401
    client = world.ready.users["etl"]
    wrong = _post(url, grant_type="client_credentials", client_id=client.client_id, client_secret="guessed")
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("listen", ["0.0.0.0:8283", "10.0.0.1:8283", "localhost:8283", "127.0.0.1", "127.0.0.1:0"])
def test_the_service_listens_on_loopback_only(listen: str) -> None:
    arguments = ["--listen", listen, "--gateway", "http://g/catalog", "--token-endpoint", "http://p/token"]
    done = CliRunner().invoke(main, ["trino", "tokens", *arguments, "--credential", "trino:s"])
    assert done.exit_code == 2 and "--listen must be a loopback address" in done.output
