# SPDX-License-Identifier: Apache-2.0
"""The subcommands `lakegate conformance`: check an installed extension against the rules of its kind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import click

_BROKEN = 1


@click.group()
def conformance() -> None:
    """Check an installed extension against the rules of its kind.

    Each rule that holds is printed. Exit code 1: a rule is broken, or the extension cannot be opened; the message says
    which and why.
    """


@conformance.command("secrets")
@click.argument("name")
def check_secrets(name: str) -> None:
    """Check the secret store NAME, as the setting SECRET_BACKEND names it. Its secrets stay as they are."""
    from gateway.assembly.secret_stores import NoSuchSecretStore, open_provided_store
    from gateway.conformance.secrets import SecretSubject, check_secret_store

    try:
        open_provided_store(name)
    except NoSuchSecretStore as missing:
        raise click.ClickException(str(missing)) from None
    _run(check_secret_store(SecretSubject(name, lambda: open_provided_store(name)), passed=_print_passed))


def _print_passed(rule: str) -> None:
    click.echo(f"holds   {rule}")


def _run(checks: Coroutine[Any, Any, None]) -> None:
    """Run a kit. End the command with the broken rule, if there is one."""
    from gateway.conformance.rules import ConformanceError

    try:
        asyncio.run(checks)
    except ConformanceError as error:
        click.echo(f"BROKEN  {error.rule}")
        click.echo(f"        {error.detail}", err=True)
        sys.exit(_BROKEN)
