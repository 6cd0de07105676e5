# SPDX-License-Identifier: Apache-2.0
"""`lakegate client`: the text of grants with limits, and arguments that are refused without a request."""

from __future__ import annotations

import httpx2
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.cli.clients import grant_line, limits_line
from gateway.cli.management import Management, gateway_address

WAREHOUSE = {"type": "warehouse", "warehouse-id": "w1", "project-id": "p1"}


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"administrators": True}, "limits: none"),
        ({"administrators": False}, "limits: for every user, never administrators"),
        (
            {"administrators": False, "users": ["oidc~a"], "roles": ["r1"], "networks": ["10.0.0.0/8"]},
            "limits: for oidc~a, members of role r1, never administrators, from 10.0.0.0/8",
        ),
        ({"administrators": True, "networks": ["10.0.0.0/8"]}, "limits: for every user, from 10.0.0.0/8"),
    ],
)
def test_limits_are_shown_as_text(limits: dict[str, object], text: str) -> None:
    assert limits_line(limits) == text


def test_grant_line_has_expiry_and_limits_and_no_control_characters() -> None:
    grant = {
        "privilege": "delegate",
        "resource": WAREHOUSE,
        "expires-at": "2026-01-01T00:00:00Z",
        "acts-for": {"administrators": False, "users": ["oidc~a\x1b[31m"]},
    }
    assert grant_line(grant) == (
        "delegate on warehouse w1, until 2026-01-01T00:00:00Z; limits: for oidc~a [31m, never administrators"
    )
    assert grant_line({"privilege": "inspector", "resource": WAREHOUSE}) == "inspector on warehouse w1"


def test_limits_without_delegate_are_refused_before_any_request() -> None:
    """A forgotten `--grant delegate` would otherwise look like a limited engine."""
    arguments = ["oidc~e", "--name", "e", "--grant", "inspector", "--on", "project", "--for-user", "oidc~a"]
    done = CliRunner().invoke(main, ["client", "register", *arguments, "--gateway", "http://127.0.0.1:1"])
    assert done.exit_code == 2
    assert "need --grant delegate" in done.output


def test_registering_again_does_not_remove_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grant without limits would let the engine act for every user."""
    sent: list[tuple[str, str]] = []
    grant = {"privilege": "delegate", "principal": {"user": "oidc~trino"}, "acts-for": {"administrators": False}}

    def send(self: Management, method: str, path: str, **_: object) -> httpx2.Response:
        sent.append((method, path))
        if method == "GET":
            return httpx2.Response(200, json={"grants": [grant]})
        return httpx2.Response(200, json={"user-type": "application"})

    monkeypatch.setattr(Management, "send", send)
    command = ["client", "register", "oidc~trino", "--name", "trino", "--grant", "delegate", "--on", "project"]
    options = ["--gateway", "http://gateway", "--token", "token"]
    assert CliRunner().invoke(main, [*command, *options]).exit_code == 0
    for limits in ({"users": ["oidc~a"]}, {"roles": ["r1"]}, {"networks": ["10.0.0.0/8"]}):
        sent.clear()
        grant["acts-for"] = {"administrators": False, **limits}
        refused = CliRunner().invoke(main, [*command, *options])
        assert refused.exit_code == 1
        assert "would widen it" in refused.output
        assert sent == [("GET", "/project/grants")], "nothing may be changed"
    sent.clear()
    assert CliRunner().invoke(main, [*command, *options, "--for-user", "oidc~b"]).exit_code == 0
    assert ("POST", "/project/grants") in sent


@pytest.mark.parametrize("given", ["https://lake.example", "https://lake.example/", "https://lake.example/catalog/"])
def test_the_address_of_the_catalog_is_one_of_the_gateway(given: str) -> None:
    """Engines have `/catalog` in their configuration, from which users copy the address."""
    assert gateway_address(given) == "https://lake.example"
    assert gateway_address("https://example.com/lake/catalog") == "https://example.com/lake"
