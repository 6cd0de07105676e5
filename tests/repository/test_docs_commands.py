# SPDX-License-Identifier: Apache-2.0
"""Parse every shell command of the documentation by the program it calls, or name the test that runs it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest
import yaml

from gateway import settings
from gateway.cli import main
from gateway.settings.env import PREFIX
from tests.support.docs_commands import ROOT, Block, blocks, commands, inline

_SCRIPTS = [block for block in blocks() if block.script]
#: A word of a synopsis that stands for a value.
_PLACEHOLDER = re.compile(r"^\[(.+)\]$")
#: Programs with subcommands: how a command in the running text begins.
_INLINE = re.compile(r"^(?:\.venv/bin/)?(?:make|lakegate|python|pytest) [\w-]")


def _make(arguments: Sequence[str], strict: bool) -> None:
    """Check that `make` knows the target and accepts the variables."""
    subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, capture_output=True, timeout=60)


def _lakegate(arguments: Sequence[str], strict: bool) -> None:
    """Check that the command line accepts the words. In the running text, values may be missing."""
    command: click.Command = main
    words = list(arguments)
    context = main.make_context("lakegate", words, resilient_parsing=not words)
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None, name
        command = found
        if isinstance(command, click.Group) and not words:
            return
        try:
            context = command.make_context(name, list(words), parent=context)
        except (click.BadParameter, click.BadOptionUsage) as error:
            # `lakegate authz reconcile --restored` names an option, `revoke ID` has a placeholder.
            partial = not isinstance(error, click.BadParameter) or isinstance(error, click.MissingParameter)
            if strict or not (partial or any(word.isupper() for word in words)):
                raise
            return
        words = [*context._protected_args, *context.args] if isinstance(command, click.Group) else []


def _python(arguments: Sequence[str], strict: bool) -> None:
    """Check that the module, and tests that are named, exist."""
    if "-c" in arguments:
        compile(arguments[arguments.index("-c") + 1], "documentation", "exec")
        return
    module, *rest = arguments[arguments.index("-m") + 1 :]
    assert importlib.util.find_spec(module) is not None, module
    if module == "pytest":
        _pytest(rest, strict)


def _pytest(arguments: Sequence[str], strict: bool) -> None:
    """Check that pytest finds tests at the paths that are named."""
    for path, _, name in (word.partition("::") for word in arguments if word.startswith("tests/")):
        assert (ROOT / path).exists(), path
        assert f"def {name}" in (ROOT / path).read_text() if name else True, name


def _kubectl(arguments: Sequence[str], strict: bool) -> None:
    """Check that the keys of the secret are settings, or the one that OpenFGA reads."""
    known = {row.variable for row in settings.rows()}
    keys = [
        word.removeprefix("--from-file=").partition("=")[0] for word in arguments if word.startswith("--from-file=")
    ]
    assert keys
    assert {PREFIX + key for key in keys} - {PREFIX + "OPENFGA_DATASTORE_URI"} <= known


def _helm(arguments: Sequence[str], strict: bool) -> None:
    """Check that the chart exists and has the values."""
    chart = ROOT / arguments[2]
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for each in (arguments[at + 1] for at, word in enumerate(arguments) if word == "--set"):
        found = values
        for name in each.partition("=")[0].split("."):
            assert name in found, each
            found = found[name]


def _aws(arguments: Sequence[str], strict: bool) -> None:
    """Check that the operation exists, and that it has exactly these parameters or needs no others."""
    from botocore.session import get_session

    service, operation, *options = arguments
    shape = get_session().get_service_model(service).operation_model(operation.title().replace("-", "")).input_shape
    assert shape is not None
    given = {word.removeprefix("--").title().replace("-", "") for word in options if word.startswith("--")}
    assert set(shape.required_members) <= given <= set(shape.members)


def _file(name: str) -> Callable[[Sequence[str], bool], None]:
    def exists(arguments: Sequence[str], strict: bool) -> None:
        assert (ROOT / name).is_file(), name

    return exists


def _elsewhere(test: str) -> Callable[[Sequence[str], bool], None]:
    """Check that this test runs the command."""

    def named(arguments: Sequence[str], strict: bool) -> None:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(), test

    return named


def _plain(arguments: Sequence[str], strict: bool) -> None:
    """Accept a standard program around a command that is checked."""


#: The check of each program. An unlisted program fails, so that a new one gets a check.
_CHECKS: dict[str, Callable[[Sequence[str], bool], None]] = {
    "make": _make,
    "lakegate": _lakegate,
    "python": _python,
    "python3": _python,
    "pytest": _pytest,
    "kubectl": _kubectl,
    "helm": _helm,
    "aws": _aws,
    # The same flags by OPA itself.
    "opa": _elsewhere("tests/policies/test_docs_opa.py::test_opa_accepts_every_documented_option"),
    "pip": _elsewhere("tests/e2e/test_wheel.py::programs"),
    "vault": _elsewhere("tests/unit/secret_stores/test_vault.py::test_the_documented_policy_is_the_one_of_the_tests"),
    # Containers are not available to the tests: tests/unit/deploy reads the files.
    "docker": _file("deploy/compose.yaml"),
    "./make-env": _elsewhere(
        "tests/unit/deploy/test_compose.py::test_make_env_writes_distinct_secrets_and_replaces_none"
    ),
    "pg_dump": _elsewhere("tests/integration/test_backup.py::documented"),
    "pg_restore": _elsewhere("tests/integration/test_backup.py::documented"),
    "createdb": _elsewhere("tests/integration/test_backup.py::documented"),
    "curl": _elsewhere("tests/contract/test_docs_requests.py::test_every_documented_request_has_a_test"),
    **dict.fromkeys(("cd", ".", "set", "grep", "tr", "sed", "openssl", "printf", "base64"), _plain),
}


def _checked(words: Sequence[str], *, strict: bool) -> None:
    program = words[0].removeprefix(".venv/bin/")
    assert program in _CHECKS, f"no test checks {program}: add one to {Path(__file__).name}"
    _CHECKS[program]([_PLACEHOLDER.sub(r"\1", word) for word in words[1:]], strict)


def test_code_blocks_of_a_page_are_found() -> None:
    assert len(_SCRIPTS) > 40


@pytest.mark.parametrize("block", _SCRIPTS, ids=str)
def test_a_block_of_commands_is_valid_for_bash(block: Block) -> None:
    ran = subprocess.run(["bash", "-n"], input=block.script, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


@pytest.mark.parametrize("block", [block for block in _SCRIPTS if block.page != "docs/guide.md"], ids=str)
def test_each_command_of_a_block_is_accepted_by_its_program(block: Block) -> None:
    for words in commands(block.script):
        _checked(words, strict=True)


@pytest.mark.parametrize("code", sorted({code for _, code in inline() if _INLINE.match(code)}))
def test_a_command_in_the_running_text_is_accepted_by_its_program(code: str) -> None:
    # A placeholder in angle brackets would parse as a redirection.
    for words in commands(re.sub(r"<[\w -]+>", "PLACEHOLDER", code)):
        _checked(words, strict=False)


@pytest.mark.parametrize(
    "command",
    [
        "make no-such-target",
        "lakegate no-such-command",
        "lakegate policy no-such-command",
        "lakegate migrate --no-such-option",
        "lakegate secrets scim-token issue",
        "python -m tests.no_such_module",
        "python -m pytest tests/no_such_file.py",
        "helm install lake deploy/helm --set no.such=value",
        "kubectl create secret generic lakegate --from-file=NO_SUCH_SETTING=file",
        "no-such-program",
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    [words] = commands(command)
    with pytest.raises((AssertionError, click.ClickException, subprocess.CalledProcessError)):
        _checked(words, strict=True)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a b # c\nd", [["a", "b"], ["d"]]),
        ("X=1 a | b && c; d", [["a"], ["b"], ["c"], ["d"]]),
        ("a \\\n  b > file\nc", [["a", "b"], ["c"]]),
        ("x=$(a b)\nc 'd # e'", [["a", "b"], ["c", "d # e"]]),
    ],
)
def test_a_script_is_split_into_its_commands(script: str, expected: list[list[str]]) -> None:
    assert commands(script) == expected
