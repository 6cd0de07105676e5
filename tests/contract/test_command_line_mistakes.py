# SPDX-License-Identifier: Apache-2.0
"""Mistakes of users on the command line: each ends with a message, the remedy and the documented exit code.

`run` fails the test for an exception that would reach the user as a traceback.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from gateway.cli.exit_codes import ExitCode
from gateway.identity.oauth_client import Tokens
from gateway.identity.token_storage import StoredLogin
from lakegate.local import jdk
from tests.support.lakegate_command import run_lakegate
from tests.support.rows import parts
from tests.support.servers.certificates import authority
from tests.support.servers.loopback import Reply, Request, serving
from tests.support.stack.command_line import run
from tests.support.stack.world import World, unique

_HTML: Reply = (200, {"content-type": "text/html"}, b"<html>Welcome</html>")


def _html(request: Request) -> Reply:
    return _HTML


@pytest.fixture(scope="module")
def warehouse(world: World) -> str:
    """Return the name of the warehouse of the stack."""
    return str(world.admin.get(f"/management/v1/warehouse/{world.warehouse}").json()["name"])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home directory without logins and profiles."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


COMMANDS = [("whoami",), ("tables", "list", "demo"), ("access", "requests"), ("warehouse", "show", "demo")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_token_names_the_login(world: World, command: tuple[str, ...]) -> None:
    result = run(world, *command, LAKEGATE_TOKEN="not.a.token")
    assert (result.exit_code, result.stdout) == (ExitCode.NOT_SIGNED_IN, "")
    assert "Log in again with `lakegate login`" in result.stderr and "Error id: " in result.stderr


def test_an_expired_token_names_the_login(world: World) -> None:
    expired = world.person_with(unique("late"), exp=int(time.time()) - 3600)
    result = run(world, "whoami", by=expired)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN and "lakegate login" in result.stderr


def test_a_missing_login_names_the_ways_to_log_in(world: World) -> None:
    result = run(world, "whoami", LAKEGATE_TOKEN=None)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN and "LAKEGATE_TOKEN" in result.stderr
    known: dict[str, Any] = {
        "LAKEGATE__UI__OPENID_PROVIDER_URI": "https://login.example",
        "LAKEGATE__UI__OPENID_CLIENT_ID": "cli",
    }
    result = run(world, "whoami", LAKEGATE_TOKEN=None, **known)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN and "log in with `lakegate login`" in result.stderr


def test_an_expired_login_names_the_login(world: World, home: Path) -> None:
    at = ("https://login.example", "cli")
    StoredLogin(*at, home / "lakegate" / "logins", keyring=None, warn=print).store(Tokens("access", 0.0, None))
    known: dict[str, Any] = {"LAKEGATE__UI__OPENID_PROVIDER_URI": at[0], "LAKEGATE__UI__OPENID_CLIENT_ID": at[1]}
    result = run(world, "whoami", LAKEGATE_TOKEN=None, **known)
    assert result.exit_code == ExitCode.NOT_SIGNED_IN and "your login has expired" in result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_port_names_the_address(world: World, command: tuple[str, ...]) -> None:
    with parts.closed_port() as port:
        result = run(world, *command, "--gateway", f"http://127.0.0.1:{port}")
    assert result.exit_code == ExitCode.NO_ANSWER, result.output
    assert "Check that the gateway runs, and its address" in result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_another_server_is_not_taken_for_a_gateway(world: World, command: tuple[str, ...]) -> None:
    with serving(_html) as server:
        result = run(world, *command, "--gateway", server.url)
    assert result.exit_code == ExitCode.NO_ANSWER, result.output
    assert "Check the address" in result.stderr and "<html>" not in result.stderr


@pytest.mark.parametrize("address", ["localhost:8181", "ftp://lake", "http://", "http://a b", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(world: World, address: str) -> None:
    result = run(world, "whoami", "--gateway", address)
    assert result.exit_code == ExitCode.USAGE and "such as https://lake.example.com" in result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_untrusted_certificate_names_the_setting(world: World, tmp_path: Path, command: tuple[str, ...]) -> None:
    with serving(_html, tls=authority(tmp_path / "ca").server("127.0.0.1")) as server:
        address = server.url.replace("http:", "https:")
        result = run(world, *command, "--gateway", address)
    assert result.exit_code == ExitCode.NO_ANSWER, result.output
    assert "name the file of its authority in SSL_CERT_FILE" in result.stderr


def test_tls_to_a_server_without_it_names_the_other_address(world: World) -> None:
    result = run(world, "whoami", "--gateway", world.base.replace("http:", "https:"))
    assert result.exit_code == ExitCode.NO_ANSWER and "try http:// in the address" in result.stderr


def test_a_wrong_name_names_the_object_and_what_to_check(world: World, warehouse: str) -> None:
    for command, object in (
        (("tables", "show", f"{warehouse}/hr.nowhere"), f"table/{warehouse}/hr.nowhere"),
        (("tables", "list", "nowhere"), "warehouse/nowhere"),
        (("grant", "select", f"warehouse/{warehouse}", "--to", "role/nobody"), "role/nobody"),
        (("can", "read_data", f"view/{warehouse}/a.b"), f"view/{warehouse}/a.b"),
        (("users", "show", "nobody@example.com"), "user/nobody@example.com"),
        (("undrop", f"table/{warehouse}/hr.gone"), f"table/{warehouse}/hr.gone"),
        (("tasks", "list", "--warehouse", "nowhere"), "warehouse/nowhere"),
        (("roles", "list", "--project", "nowhere"), "project/nowhere"),
    ):
        result = run(world, *command)
        assert result.exit_code == ExitCode.NOT_FOUND, (command, result.output)
        assert object in result.stderr and "Check the name" in result.stderr


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("tabels", "list"), "'tables'"),
        (("tables", "lst"), "Did you mean 'list'?"),
        (("tables", "list", "demo", "--fromat", "json"), "Did you mean '--format'?"),
        (("tables", "list"), "Missing argument 'WAREHOUSE[/NAMESPACE]'"),
        (("tables", "show", "people"), "table/WAREHOUSE/NAMESPACE.NAME"),
        (("grant", "select", "people", "--to", "role/a"), "such as table/demo/hr.people"),
        (("grant", "select", "server", "--to", "table/demo/a.b"), "is no principal"),
        (("can", "read_data", "user/oidc~bob"), "has no actions of its own"),
        (("tables", "create", "demo/hr.t", "--column", "id"), "NAME:TYPE"),
        (("grant", "select", "server", "--to", "user/a~b", "--for", "soon"), "Write 2d, 8h"),
        (("whoami", "--profile", "nowhere"), "there is no profile 'nowhere'"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_mistyped_command_gets_the_right_form(world: World, command: tuple[str, ...], hint: str) -> None:
    result = run(world, *command)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert hint in result.stderr


def test_a_refusal_names_the_right_the_id_and_the_request(world: World, ns: str, warehouse: str) -> None:
    reader, table = world.stranger(), world.table(ns)
    world.grant("describe", reader, "namespace", world.namespace_id(ns))
    result = run(world, "tables", "delete", f"{warehouse}/{ns}.{table.name}", "--yes", by=reader)
    assert result.exit_code == ExitCode.REFUSED, result.output
    assert "TableActionForbidden" in result.stderr and "lakegate request" in result.stderr
    assert "Error id: " in result.stderr
    denial = result.stderr.partition("denial=")[2].split(".")[0].split()[0]
    explained = run(world, "explain", "--denial", denial, by=reader)
    assert explained.exit_code == 0 and "decision: denied" in explained.stdout


def test_unreadable_and_invalid_files_are_named_with_the_line(world: World, tmp_path: Path) -> None:
    missing, invalid, binary = (tmp_path / name for name in ("missing.yaml", "invalid.yaml", "binary.yaml"))
    invalid.write_text("version: 1\nprojects: [")
    binary.write_bytes(b"\xff\xfe\x00")
    for file in (missing, invalid, binary, tmp_path / "empty"):
        result = run(world, "apply", "-f", str(file), "--yes")
        assert result.exit_code == ExitCode.FAILED, result.output
        assert file.name in result.stderr
    assert "line 2" in run(world, "apply", "-f", str(invalid)).stderr


def test_damaged_profiles_are_named_with_the_remedy(world: World, home: Path) -> None:
    (home / "lakegate").mkdir()
    (home / "lakegate" / "profiles.json").write_text("{")
    result = run(world, "whoami")
    assert result.exit_code == ExitCode.FAILED and "Correct or remove it" in result.stderr


def test_a_missing_java_names_the_packages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk, "_PLACES", ())
    result = run(world, "pipeline", "run", "--config", "nowhere.json", PATH="", JAVA_HOME=None)
    assert result.exit_code == ExitCode.FAILED and "Spark needs Java 17 or 21" in result.stderr


@pytest.mark.parametrize("command", [("migrate",), ("audit", "verify")], ids=" ".join)
def test_a_missing_database_and_a_wrong_password_are_told_apart(world: World, command: tuple[str, ...]) -> None:
    url = urlsplit(world.ready.postgres)
    wrong = urlunsplit(url._replace(netloc=f"{url.username}:wrong-secret@{url.hostname}:{url.port}"))
    with parts.closed_port() as port:
        closed = urlunsplit(url._replace(netloc=f"{url.username}:wrong-secret@127.0.0.1:{port}"))
        ran = {
            address: run_lakegate(
                *command,
                environment={
                    "PATH": "/usr/bin:/bin",
                    "LAKEGATE__PG_DATABASE_URL_WRITE": address,
                    "LAKEGATE__PG_ENCRYPTION_KEY": "k" * 32,
                    "LAKEGATE__OPENFGA__ENDPOINT": world.ready.openfga.url,
                    "LAKEGATE__OPENFGA__API_KEY": world.ready.openfga.token or "",
                },
            )
            for address in (closed, wrong)
        }
    for done in ran.values():
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stderr and "wrong-secret" not in done.stderr
    assert "nothing listens" in ran[closed].stderr
    assert "password" in ran[wrong].stderr
