# SPDX-License-Identifier: Apache-2.0
"""The command `lakegate apply` around the plan: the question, a state that changes meanwhile, files and exit codes."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path

import click.testing
import httpx2
import pytest

from gateway.apply.client import Api
from gateway.cli import main
from gateway.cli.management import error_message

# The package has the command under the name of the module.
command = importlib.import_module("gateway.cli.apply")

FILE = "projects: [{id: shop, name: Shop}]"


class Server:
    """A server with projects only."""

    def __init__(self) -> None:
        self.projects: dict[str, str] = {}

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Return the list of projects, or create one."""
        if request.method == "GET":
            listed = [{"project-id": id, "project-name": name} for id, name in self.projects.items()]
            return httpx2.Response(200, json={"projects": listed})
        body = json.loads(request.content)
        self.projects[body["project-id"]] = body["project-name"]
        return httpx2.Response(201, json={"project-id": body["project-id"]})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """Let the command use a server in memory."""
    server = Server()
    transport = httpx2.MockTransport(server.answer)
    monkeypatch.setattr(command, "client_of", lambda gateway, token: Api("http://gateway", "t", transport=transport))
    return server


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., click.testing.Result]:
    """Return a function that applies a file with options."""
    (tmp_path / "shop.yaml").write_text(FILE)

    def invoke(*options: str) -> click.testing.Result:
        return click.testing.CliRunner().invoke(main, ["apply", "-f", str(tmp_path), *options])

    return invoke


Run = Callable[..., click.testing.Result]


def test_a_plan_with_changes_exits_with_2_and_makes_none(server: Server, run: Run) -> None:
    done = run("--plan")
    assert (done.exit_code, server.projects) == (2, {})
    assert "+ project shop" in done.output
    assert run("--yes").exit_code == 0
    assert (run("--plan").exit_code, server.projects) == (0, {"shop": "Shop"})


def test_a_state_that_changes_during_the_question_is_detected(
    server: Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise changes would be made that the user has not seen."""
    monkeypatch.setattr(command, "_confirm", lambda: server.projects.update(shop="Other"))
    done = run()
    assert done.exit_code == 1
    assert "the state has changed since the plan" in done.output
    assert server.projects == {"shop": "Other"}


def test_confirmed_changes_are_made(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_confirm", lambda: None)
    assert run().exit_code == 0
    assert server.projects == {"shop": "Shop"}


@pytest.mark.parametrize("options", [("--plann",), ("--prune-containers",), ("-f", "absent.yaml")])
def test_errors_exit_with_1_because_2_means_changes(server: Server, run: Run, options: tuple[str, ...]) -> None:
    assert run(*options).exit_code == 1


def test_a_directory_without_files_is_an_error(server: Server, tmp_path: Path) -> None:
    done = click.testing.CliRunner().invoke(main, ["apply", "-f", str(tmp_path), "--plan"])
    assert done.exit_code == 1
    assert "A directory needs files that end with .yaml or .yml" in done.output


@pytest.mark.parametrize("arguments", [["apply", "-f", "{}", "--plan"], ["export"]])
def test_texts_of_the_gateway_do_not_control_the_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    """An error message can repeat a name that another user chose; a carriage return could overwrite the line."""
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    error = {"error": {"type": "Conflict", "message": "name \r\x9b2J\x07", "code": 409}}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(409, json=error))
    monkeypatch.setattr(command, "client_of", lambda gateway, token: Api("http://gateway", "t", transport=transport))
    done = click.testing.CliRunner().invoke(main, [each.format(file) for each in arguments])
    assert done.exit_code == 1 and "Conflict: name" in done.output
    assert all(char.isprintable() or char == "\n" for char in done.output)


def test_an_error_message_for_the_terminal_has_no_control_characters() -> None:
    error = {"error": {"type": "Conflict", "message": "name \r\x9b2J\x07", "code": 409}}
    assert error_message(httpx2.Response(409, json=error)) == "Conflict: name   2J "
