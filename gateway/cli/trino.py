# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate trino …``: check the OPA beside Trino as Trino uses it, and serve tokens to Trino."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.trino_tokens import tokens

if TYPE_CHECKING:
    import ssl

_SECONDS = 30.0


@click.group()
def trino() -> None:
    """Check the connection between Trino, the OPA beside it, and the gateway, and serve tokens to Trino."""


trino.add_command(tokens)


@trino.command("check")
@click.option("--opa", required=True, help="Address of the OPA beside Trino, as in access-control.properties.")
@click.option("--key", envvar="LAKEGATE_BRIDGE_ENGINE_KEY", help="The secret in Trino's addresses of that OPA.")
@click.option("--user", required=True, help="A user of Trino.")
@click.option("--catalog", required=True, help="A catalog of Trino.")
@click.option("--table", help="A table of the catalog: SCHEMA.TABLE.")
@click.option("--columns", default="", help="Columns of the table, with commas between them.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates to trust, if not the system's.")
@click.option(
    "--cert", type=click.Path(path_type=Path), help="Trino's client certificate and its key, in one PEM file."
)
def trino_check(
    opa: str,
    key: str | None,
    user: str,
    catalog: str,
    table: str | None,
    columns: str,
    ca_file: Path | None,
    cert: Path | None,
) -> None:
    """Query the OPA beside Trino about a user, and explain each failure. Nothing is changed.

    The exit code is 1 if a step failed.
    """
    import httpx2

    from gateway.embedded.trino_check import BridgeCheck, Question

    schema, dot, name = (table or "").rpartition(".")
    if table is not None and not (dot and schema and name):
        raise click.UsageError("--table must be SCHEMA.TABLE")
    named = tuple(each.strip() for each in columns.split(",") if each.strip())
    question = Question(user=user, catalog=catalog, table=(schema, name) if table else None, columns=named)
    failed = False
    with httpx2.Client(base_url=opa, timeout=_SECONDS, trust_env=False, verify=_tls(ca_file, cert)) as http:
        for finding in BridgeCheck(http, key, question).run():
            click.echo(f"{'✓' if finding.passed else '✗'} {finding.text}")
            if not finding.passed:
                failed = True
                click.echo(f"  {finding.remedy}")
    sys.exit(int(failed))


def _tls(ca_file: Path | None, cert: Path | None) -> ssl.SSLContext:
    """Return the TLS configuration. Unusable files end the command with a message."""
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_file)
        if cert is not None:
            context.load_cert_chain(cert)
    except (OSError, ssl.SSLError) as error:
        raise click.ClickException(f"the certificates cannot be used: {error}") from None
    return context
