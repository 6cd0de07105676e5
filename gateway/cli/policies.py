# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate policy …``: check, test and bundle the policies."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.group()
def policy() -> None:
    """Check and test the policies, and bundle the bridge to Trino."""


@policy.command("check")
@click.option(
    "--policies",
    type=click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True),
    help="Directory of the policies. Default: the policies that this version contains.",
)
def policy_check(policies: Path | None) -> None:
    """Compile the policies strictly against their input schema, and check the rules of guardrails.

    Reports unused rules, references to missing rules and policy data, and denials and obligations that do not match the
    output schema.
    """
    from gateway.embedded.policies import check_policies
    from gateway.embedded.toolchain import shipped

    sys.exit(check_policies(policies or shipped() / "policies"))


@policy.command("test")
def policy_test() -> None:
    """Run the tests of the policies that this version contains."""
    from gateway.embedded.policies import test_policies

    sys.exit(test_policies())


@policy.command("bundle")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("lakegate-trino.tar.gz"),
    show_default=True,
    help="File to write.",
)
def policy_bundle(output: Path) -> None:
    """Write the bridge to Trino as a bundle for OPA. The same policies give the same file.

    If `lakegate policy check` finds a fault, no bundle is written.
    """
    from gateway.embedded.bundle import bridge_bundle
    from gateway.embedded.errors import StackError
    from gateway.embedded.policies import check_policies
    from gateway.embedded.toolchain import shipped

    if check_policies(shipped() / "policies"):
        raise click.ClickException(
            "The policies are invalid; no bundle was written. Correct the faults that are listed above."
        )
    try:
        packed, revision = bridge_bundle(shipped() / "policies")
        output.write_bytes(packed)
    except (StackError, OSError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{output}: revision {revision}")
