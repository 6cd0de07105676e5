# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate policy …`` and ``lakegate init policies``: create, check, test and bundle the policies."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gateway.cli.common import ends_on

_DIRECTORY = click.Path(file_okay=False, path_type=Path, resolve_path=True)


@click.group()
def policy() -> None:
    """Check and test the policies, and write them as bundles for OPA."""


@policy.command("check")
@click.argument("directory", type=_DIRECTORY, required=False)
@click.option("--policies", type=_DIRECTORY, help="The same as DIRECTORY.")
def policy_check(directory: Path | None, policies: Path | None) -> None:
    """Compile the policies strictly against their input schema, and check the rules of guardrails.

    DIRECTORY is a policy repository (`lakegate init policies`); its policies are checked together with those of this
    version. Default: the policies that this version contains.

    Reports unused rules, references to missing rules and policy data, and denials and obligations that do not match the
    output schema.
    """
    from lakegate.local.policies import check_policies

    sys.exit(check_policies(directory or policies))


@policy.command("test")
@click.argument("directory", type=_DIRECTORY, required=False)
def policy_test(directory: Path | None) -> None:
    """Run the tests of the policy repository DIRECTORY. Default: those of the policies that this version contains."""
    from lakegate.local.policies import test_policies

    sys.exit(test_policies(directory))


@policy.command("bundle")
@click.option(
    "--directory",
    type=_DIRECTORY,
    help="Policy repository, or complete directory of policies. Default: the policies that this version contains.",
)
@click.option(
    "--for",
    "name",
    type=click.Choice(["gateway", "trino"]),
    default="trino",
    show_default=True,
    help="The OPA that loads the bundle: that of the gateway, or that of Trino.",
)
@click.option(
    "--signing-key",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the private key (PEM), for HS256 with the secret. Without it the bundle is not signed.",
)
@click.option(
    "--signing-algorithm",
    type=click.Choice(["RS256", "ES256", "HS256"]),
    default="RS256",
    show_default=True,
    help="Algorithm of the signature.",
)
@click.option(
    "--no-check",
    is_flag=True,
    help="Do not run `lakegate policy check`. The functions and documents that the rules use are checked all the same.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write. Default: lakegate-gateway.tar.gz or lakegate-trino.tar.gz.",
)
def policy_bundle(
    directory: Path | None,
    name: str,
    signing_key: Path | None,
    signing_algorithm: str,
    no_check: bool,
    output: Path | None,
) -> None:
    """Write policies as a bundle for OPA. The same policies and key give the same file, except with ES256.

    If `lakegate policy check` finds a fault, no bundle is written.
    """
    from gateway import settings
    from gateway.opa.bundle import BundleName, InvalidSigningKey, SigningAlgorithm, SigningKey
    from gateway.opa.bundle import policy_bundle as build
    from gateway.opa.policy_files import policy_files
    from gateway.opa.syntax import InvalidPolicies
    from lakegate.local.errors import StackError
    from lakegate.local.policies import check_policies, policy_source

    if not no_check and check_policies(directory):
        raise click.ClickException(
            "The policies are invalid; no bundle was written. Correct the faults that are listed above."
        )
    written = output or Path(f"lakegate-{name}.tar.gz")
    try:
        key = SigningKey(SigningAlgorithm(signing_algorithm), signing_key.read_text()) if signing_key else None
        built = build(policy_files(policy_source(settings.load(), directory)), BundleName(name), key)
        written.write_bytes(built.content)
    except InvalidSigningKey as invalid:
        raise click.ClickException(f"{signing_key}: {invalid}") from None
    except (InvalidPolicies, StackError, settings.SettingsError, OSError, UnicodeDecodeError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{written}: revision {built.revision}")


@click.group("init")
def init() -> None:
    """Create a directory to start from."""


@init.command("policies")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def init_policies(directory: Path) -> None:
    """Create a policy repository in DIRECTORY: a guardrail with tests, policy data, and a CI workflow."""
    from lakegate.local.errors import StackError
    from lakegate.local.policy_repository import create_repository

    with ends_on(StackError):
        for file in create_repository(directory):
            click.echo(str(file))
    click.echo(
        f"Check it with `lakegate policy check {directory}`, and try it with `lakegate up --policies {directory}`."
    )


@init.command("model")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def init_model(directory: Path) -> None:
    """Create an own relationship model in DIRECTORY: a copy of this version's model with tests, and a CI workflow.

    DIRECTORY may be a policy repository.
    """
    from lakegate.local.errors import StackError
    from lakegate.local.policy_repository import create_model

    with ends_on(StackError):
        for file in create_model(directory):
            click.echo(str(file))
    click.echo(f"Check it with `lakegate model check {directory}`, and test it with `lakegate model test {directory}`.")
