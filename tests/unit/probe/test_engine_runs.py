# SPDX-License-Identifier: Apache-2.0
"""Runs of engines for probes: what is sent to Trino, and which failures are results."""

from __future__ import annotations

import sys

import click
import pytest

from gateway.cli.engines import EngineNotReached, Trino, by_command, by_reader, statements
from tests.support.engines.trino_pages import trino


def test_trino_gets_every_statement_as_the_user_and_errors_are_output() -> None:
    with trino() as (url, received):
        output = Trino(url, "lake", "probe").run("lakegate_probe.canary_1")
    assert [user for user, _ in received] == ["probe"] * len(received)
    assert [text for _, text in received] == list(statements('"lake"."lakegate_probe"."canary_1"'))
    assert output.split("\n")[:2] == ["v1", "v2"]
    assert "value h1" in output, "messages can show hidden values"


def test_trino_that_is_down_or_overloaded_is_no_result() -> None:
    with trino(status=503) as (url, _), pytest.raises(EngineNotReached):
        Trino(url, "lake", "probe").run("lakegate_probe.canary_1")
    with pytest.raises(EngineNotReached):
        Trino(url, "lake", "probe").run("lakegate_probe.canary_1")


def test_reader_without_a_gateway_is_no_result() -> None:
    with pytest.raises(EngineNotReached):
        by_reader("http://127.0.0.1:9", "lake", "token", "oidc~probe")("lakegate_probe.canary_1")


def test_command_gets_the_table_and_not_the_token_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEGATE_TOKEN", "operator")
    shown = "import os; print(*(v for k, v in sorted(os.environ.items()) if k.startswith('LAKEGATE_')))"
    output = by_command(f'{sys.executable} -c "{shown}"', "lake", "oidc~probe")("lakegate_probe.canary_1")
    assert output.split() == ["lakegate_probe.canary_1", "oidc~probe", "lake"]


@pytest.mark.parametrize(("code", "reached"), [(0, True), (1, True), (75, False)])
def test_failing_command_is_a_result_unless_it_could_not_reach_the_engine(code: int, reached: bool) -> None:
    run = by_command(f"{sys.executable} -c \"import sys; print('x', file=sys.stderr); sys.exit({code})\"", "w", "u")
    if reached:
        assert run("n.t").strip() == "x", "standard error is output too"
    else:
        with pytest.raises(EngineNotReached):
            run("n.t")


def test_unknown_or_empty_command_is_no_result() -> None:
    with pytest.raises(EngineNotReached):
        by_command("/no/such/command", "w", "u")("n.t")
    with pytest.raises(click.UsageError):
        by_command(" ", "w", "u")
