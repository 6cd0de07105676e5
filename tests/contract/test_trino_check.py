# SPDX-License-Identifier: Apache-2.0
"""`lakegate trino check` on a real OPA with the real bundle and a running gateway: one test for each failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli import main
from tests.support.stack.columns import give
from tests.support.stack.trino_bridge import KEY, Bridge, bridged
from tests.support.stack.world import World

Failures = list[tuple[str, str]]


@pytest.fixture(scope="module")
def inspector(world: World) -> Iterator[None]:
    """Grant the service account of the bridge `inspector` and `enforcer`."""
    for privilege in ("inspector", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    yield
    for privilege in ("inspector", "enforcer"):
        world.revoke(privilege, world.etl, "warehouse", world.warehouse)


@pytest.fixture(scope="module")
def bridge(world: World, inspector: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with bridged(world, tmp_path_factory.mktemp("bridge")) as running:
        yield running


def check(url: str, *more: str, key: str | None = KEY, user: str = "admin", catalog: str = "ice") -> tuple[int, str]:
    """Run the command; return its exit code and output."""
    arguments = ["trino", "check", "--opa", url, "--user", user, "--catalog", catalog, *more]
    done = CliRunner().invoke(main, [*arguments, *([] if key is None else ["--key", key])], catch_exceptions=False)
    return done.exit_code, done.output


def failures(output: str) -> Failures:
    """Return the failed steps: (text, remedy)."""
    lines = output.splitlines()
    return [(line[2:], lines[number + 1]) for number, line in enumerate(lines) if line.startswith("✗")]


def test_a_working_bridge_passes_every_step(world: World, bridge: Bridge, ns: str) -> None:
    table = world.table(ns)
    code, output = check(bridge.url, "--table", f"{ns}.{table.name}", "--columns", "id")
    assert (code, failures(output)) == (0, []), output
    assert output.splitlines() == [
        "✓ OPA answers, and accepts this client as Trino",
        "✓ OPA refuses other queries",
        "✓ the variables of the bridge are set and readable",
        "✓ the bridge has a configured token",
        "✓ the gateway answers the bridge about the warehouse of ice",
        "✓ admin may use the catalog ice",
        f"✓ {ns}.{table.name} is listed",
        "✓ admin may select id",
        "✓ row filters: none",
        "✓ masked columns: none",
    ]
    for secret in (KEY, world.etl.token):
        assert secret not in output


def test_a_user_without_rights_gets_the_grant_as_remedy(world: World, bridge: Bridge, ns: str) -> None:
    table = world.table(ns)
    user = world.stranger()
    name = user.id.partition("~")[2]
    code, output = check(bridge.url, "--table", f"{ns}.{table.name}", user=name)
    assert code == 1
    assert [text for text, _ in failures(output)] == [f"{name} may not use the catalog ice"]
    assert "Grant" in failures(output)[0][1]
    give(world, table, "id", user)
    code, output = check(bridge.url, "--table", f"{ns}.{table.name}", user=name)
    assert code == 0, output
    assert f"✓ {name} may select at least one column" in output


def test_an_unreachable_opa_is_named() -> None:
    code, output = check("http://127.0.0.1:9")
    [(text, remedy)] = failures(output)
    assert code == 1 and "OPA does not answer at http://127.0.0.1:9" in text and "policy bundle" in remedy


@pytest.mark.parametrize("key", [None, "another-key"])
def test_a_wrong_key_is_explained(bridge: Bridge, key: str | None) -> None:
    code, output = check(bridge.url, key=key)
    [(text, remedy)] = failures(output)
    assert code == 1 and text == "OPA does not accept this client as Trino"
    assert "LAKEGATE_BRIDGE_ENGINE_KEY" in remedy


def test_an_opa_without_authorization_is_reported(world: World, inspector: None, tmp_path: Path) -> None:
    with bridged(world, tmp_path, "--authorization=off") as bridge:
        code, output = check(bridge.url)
    assert code == 1 and [text for text, _ in failures(output)] == ["OPA answers every client"]
    assert "--authorization=basic" in failures(output)[0][1]


MANY: dict[str, tuple[dict[str, Any], str, str]] = {
    "missing address": ({"LAKEGATE_BRIDGE_URL": ""}, "LAKEGATE_BRIDGE_URL is missing", "environment of OPA"),
    "unreadable catalogs": (
        {"LAKEGATE_BRIDGE_CATALOGS": '{"ice": "demo"}'},
        "LAKEGATE_BRIDGE_CATALOGS is unreadable",
        "environment of OPA",
    ),
    "no token": (
        {"LAKEGATE_BRIDGE_TOKEN": "", "LAKEGATE_BRIDGE_CLIENT_ID": "etl", "LAKEGATE_BRIDGE_CLIENT_SECRET": "x"},
        "LAKEGATE_BRIDGE_TOKEN_ENDPOINT is missing",
        "environment of OPA",
    ),
    "silent gateway": (
        {"LAKEGATE_BRIDGE_URL": "http://127.0.0.1:9"},
        "the gateway does not answer the bridge",
        "LAKEGATE_BRIDGE_URL",
    ),
    "invalid token": (
        {"LAKEGATE_BRIDGE_TOKEN": "no-token"},
        "the gateway refuses the bridge's token: status 401",
        "audience",
    ),
    "unknown warehouse": (
        {"LAKEGATE_BRIDGE_CATALOGS": json.dumps({"ice": "0192d4c6-0000-7000-8000-000000000001"})},
        "the bridge may not query rights in the warehouse of ice: status 40",
        "inspector",
    ),
    "silent provider": (
        {
            "LAKEGATE_BRIDGE_TOKEN": "",
            "LAKEGATE_BRIDGE_TOKEN_ENDPOINT": "http://127.0.0.1:9/token",
            "LAKEGATE_BRIDGE_CLIENT_ID": "etl",
            "LAKEGATE_BRIDGE_CLIENT_SECRET": "x",
        },
        "the identity provider does not answer the bridge",
        "LAKEGATE_BRIDGE_TOKEN_ENDPOINT",
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_each_failure_of_the_bridge_has_a_remedy(world: World, inspector: None, name: str, tmp_path: Path) -> None:
    variables, expected, remedy = MANY[name]
    with bridged(world, tmp_path, **variables) as bridge:
        code, output = check(bridge.url)
    assert code == 1
    [(text, shown)] = failures(output)
    assert text.startswith(expected) and remedy in shown, output


def test_a_refused_client_of_the_bridge_is_explained(world: World, inspector: None, tmp_path: Path) -> None:
    variables: dict[str, Any] = {
        "LAKEGATE_BRIDGE_TOKEN": "",
        "LAKEGATE_BRIDGE_TOKEN_ENDPOINT": world.ready.token_endpoint,
        "LAKEGATE_BRIDGE_CLIENT_ID": "etl",
    }
    with bridged(world, tmp_path, **variables, LAKEGATE_BRIDGE_CLIENT_SECRET="wrong") as bridge:
        code, output = check(bridge.url)
    [(text, remedy)] = failures(output)
    assert code == 1 and text.startswith("the identity provider refuses the bridge: status 401")
    assert "LAKEGATE_BRIDGE_CLIENT_SECRET" in remedy
    secret = world.ready.users["etl"].client_secret
    with bridged(world, tmp_path, **variables, LAKEGATE_BRIDGE_CLIENT_SECRET=secret) as bridge:
        code, output = check(bridge.url)
    assert code == 0 and "✓ the identity provider issues the bridge a token" in output


def test_a_missing_inspector_is_named(world: World, tmp_path: Path) -> None:
    with bridged(world, tmp_path, LAKEGATE_BRIDGE_TOKEN=world.stranger().token) as bridge:
        code, output = check(bridge.url)
    [(text, remedy)] = failures(output)
    assert code == 1 and text.startswith("the bridge may not query rights in the warehouse of ice")
    assert "Grant the bridge's client `inspector`" in remedy


def test_an_unknown_catalog_lists_the_known_ones(bridge: Bridge) -> None:
    code, output = check(bridge.url, catalog="other")
    [(text, remedy)] = failures(output)
    assert code == 1 and text == "the bridge knows no catalog other" and "Catalogs there: ice." in remedy
