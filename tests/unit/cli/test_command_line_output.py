# SPDX-License-Identifier: Apache-2.0
"""Output of the command line: long lists, closed pipes, Ctrl-C, colours, profiles, and the time of the start."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.common import Commands
from gateway.cli.completion import complete_reference
from gateway.cli.exit_codes import ExitCode
from gateway.cli.output import print_rows
from gateway.cli.texts import SECTIONS
from gateway.identity.token_storage import StoredLogin
from tests.support.servers.loopback import Reply, Request, Service, as_json, serving

PAGES, SIZE = 20, 500


def page(request: Request) -> Reply:
    """Answer the list of users with one of its pages."""
    if request.path.endswith("/whoami"):
        return as_json(200, {"id": "oidc~a"})
    number = int(request.query.get("pageToken", ["0"])[0])
    users = [
        {"id": f"oidc~{number}-{each}", "name": "ÄA\x1b[2J\x9b2J\u202e", "user-type": "human"} for each in range(SIZE)
    ]
    further = {} if number + 1 == PAGES else {"next-page-token": str(number + 1)}
    return as_json(
        200, {"users": users, "projects": [{"project-id": "p", "project-name": "P"}], "roles": [], **further}
    )


@pytest.fixture
def gateway() -> Iterator[Service]:
    """Run a server with a long list."""
    with serving(page) as service:
        yield service


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a home directory without profiles and logins."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def environment(gateway: str, **variables: str) -> dict[str, str]:
    """Return the environment of a command at a gateway."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE_")}
    return {**kept, "LAKEGATE__BASE_URI": gateway, "LAKEGATE_TOKEN": "t", **variables}


def run(*arguments: str, **variables: str | None) -> Result:
    """Return the result of a command in this process."""
    return CliRunner().invoke(main, list(arguments), env=variables, catch_exceptions=False)


@pytest.mark.parametrize("form", ["table", "json", "yaml", "csv"])
def test_all_pages_of_a_long_list_are_printed_without_control_characters(gateway: Service, form: str) -> None:
    done = run("users", "list", "--format", form, LAKEGATE__BASE_URI=gateway.url, LAKEGATE_TOKEN="t")
    assert done.exit_code == 0
    assert done.stdout.count("user/oidc~") == PAGES * SIZE
    assert all(each.isprintable() for each in done.stdout.split("\n"))
    assert len(gateway.seen) == PAGES


def test_a_closed_pipe_ends_the_requests_and_is_no_error(gateway: Service) -> None:
    command = f"{sys.executable} -m gateway.cli users list | head -3; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment(gateway.url), capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout.splitlines()[-1] == "0" and len(done.stdout.splitlines()) == 4
    assert done.stderr == ""
    assert len(gateway.seen) < PAGES


def test_ctrl_c_ends_a_command_without_a_traceback() -> None:
    asked, release = threading.Event(), threading.Event()

    def slow(request: Request) -> Reply:
        asked.set()
        release.wait(30)
        return as_json(200, {})

    with serving(slow) as service:
        # A shell starts background commands with SIGINT ignored, and their children inherit that.
        hear = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
        command = [sys.executable, "-c", f"{hear} runpy.run_module('gateway.cli', run_name='__main__')", "whoami"]
        with subprocess.Popen(command, env=environment(service.url), stderr=subprocess.PIPE, text=True) as process:
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        release.set()
    assert (process.returncode, said.strip()) == (ExitCode.INTERRUPTED, "Interrupted.")


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_only_at_a_terminal(gateway: Service, variables: dict[str, str], coloured: bool) -> None:
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "gateway.cli", "whoami"]
    subprocess.run(command, env=environment(gateway.url, **variables), stdout=writer, timeout=100, check=True)
    os.close(writer)
    assert (b"\x1b[1m" in os.read(reader, 10_000)) is coloured
    os.close(reader)
    assert "\x1b" not in run("whoami", LAKEGATE__BASE_URI=gateway.url, LAKEGATE_TOKEN="t").stdout


def test_every_command_is_in_a_section_of_the_help_and_has_a_text() -> None:
    assert isinstance(main, Commands)
    visible = {name for name, command in main.commands.items() if not command.hidden}
    assert visible == {name for names in SECTIONS.values() for name in names}
    text = run("--help").stdout
    assert all(title in text for title in SECTIONS) and "Others" not in text


def test_commands_for_people_load_no_part_of_a_server() -> None:
    script = (
        "import sys\nfrom gateway.cli import main, noun_declarations, grants, questions, tasks\n"
        "from gateway.apply import references\nprint(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    servers = {"litestar", "granian", "sqlalchemy", "asyncpg", "alembic", "aiohttp", "openfga_sdk", "boto3", "obstore"}
    assert not {f"'{each}'" for each in servers} & set(done.stdout.strip("[]\n").split(", "))


def test_a_profile_selects_the_gateway_until_an_address_is_given(gateway: Service, home: Path) -> None:
    with serving(page) as other:
        assert run("profile", "add", "one", f"{gateway.url}/catalog/").exit_code == 0
        assert run("profile", "add", "two", other.url, "--project", "p").exit_code == 0
        token = {"LAKEGATE_TOKEN": "t", "LAKEGATE__BASE_URI": None}
        for arguments, variables, expected in (
            ((), {}, gateway),
            (("--profile", "two"), {}, other),
            ((), {"LAKEGATE__PROFILE": "two"}, other),
            ((), {"LAKEGATE__BASE_URI": other.url}, other),
            (("--profile", "one"), {"LAKEGATE__BASE_URI": other.url}, gateway),
        ):
            before = len(expected.seen)
            assert run(*arguments, "whoami", **{**token, **variables}).exit_code == 0
            assert len(expected.seen) == before + 1, (arguments, variables)
        assert run("--profile", "one", "whoami", "--gateway", other.url, **token).exit_code == 0
        run("--profile", "two", "roles", "list", **token)
        assert other.seen[-1].headers["x-project-id"] == "p"
    listed = json.loads(run("profile", "list", "--json").stdout)
    assert [(each["name"], each["used"]) for each in listed] == [("one", True), ("two", False)]
    assert run("profile", "use", "two").exit_code == 0
    assert run("profile", "remove", "two").exit_code == 0
    assert run("profile", "remove", "two").exit_code == ExitCode.NOT_FOUND
    content = json.loads((home / "lakegate" / "profiles.json").read_text())
    assert content == {"used": None, "profiles": {"one": {"gateway": gateway.url}}}


def test_each_profile_has_a_login_of_its_own(home: Path) -> None:
    files = {
        StoredLogin("https://login", "cli", home, profile=each, keyring=None, warn=print)._file._path
        for each in (None, "one", "two")
    }
    assert len(files) == 3


def test_an_address_on_the_command_line_never_gets_the_login_of_the_used_profile(home: Path) -> None:
    run("profile", "add", "one", "http://one.example", "--issuer", "https://login.example", "--client-id", "cli")
    for variables in ({}, {"LAKEGATE__PROFILE": "one"}):
        refused = run("whoami", "--gateway", "http://127.0.0.1:9", LAKEGATE_TOKEN=None, **variables)
        assert refused.exit_code == ExitCode.NOT_SIGNED_IN and "no provider for the login is known" in refused.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_valid_for_its_shell(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0 and "_LAKEGATE_COMPLETE" in done.stdout
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False).returncode == 0


def test_names_of_objects_are_completed_from_the_gateway(gateway: Service) -> None:
    def completed(words: str, base: str) -> list[str]:
        variables = {
            "_LAKEGATE_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        command = [sys.executable, "-c", "from gateway.cli import main; main(prog_name='lakegate')"]
        done = subprocess.run(
            command, env=environment(base, **variables), capture_output=True, text=True, timeout=100, check=True
        )
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("lakegate grants list wareh", gateway.url) == ["plain,warehouse/"]
    assert completed("lakegate users show oidc~19-49", gateway.url) == [
        f"plain,oidc~19-49{end}" for end in ("", *range(10))
    ]
    # Without an answer nothing is completed, and nothing is printed.
    assert completed("lakegate users show o", "http://127.0.0.1:9") == []


@pytest.mark.parametrize(
    "name", ["x$(id)", "x`id`", "x;id", "x*", "x y", "x'y", "x\\y", "x\ny", "x&", "x>y", "x!y", "~x", "=x"]
)
def test_names_that_a_shell_interprets_are_not_completed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # Bash inserts a completion as it is: a substitution in the name of another user's object would run.
    found = [f"role/{each}" for each in (name, "größe", "x-1")]
    monkeypatch.setattr(sys.modules["gateway.cli.completion"], "_names", lambda context, text: found)
    items = complete_reference(click.Context(main), "", ("role",))
    assert [each.value for each in items] == ["größe", "x-1"]


def test_a_tag_of_a_column_named_by_dots_is_no_tag_of_its_table(gateway: Service) -> None:
    id = "01a227b5-4b7c-7547-a297-8f9a35b9f9ff"
    place = ("--warehouse", id, "--table", id, "--column", "..")
    run("tag", "detach", "pii", *place, LAKEGATE__BASE_URI=gateway.url, LAKEGATE_TOKEN="t")
    assert [each.path.partition(f"table/{id}")[2] for each in gateway.seen] == ["/column/%2E%2E/tags/pii"]


def test_no_cell_of_a_csv_file_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("=1+1", "+1", " =1", "@a", "-a", "\uff1d1", "a=1", "a-b")
    print_rows("csv", ("name", "count"), [{"name": each, "count": -1} for each in names])
    found = [row["name"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert found == ["'=1+1", "'+1", "' =1", "'@a", "'-a", "'\uff1d1", "a=1", "a-b"]
