# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate verify-scope`` and ``lakegate live-credentials``.

``verify-scope`` tests that vended credentials stay in their scope. ``live-credentials`` lists those not yet expired.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from gateway.cli.common import DIFFERS, ends_on, quiet_settings, run_on_services

if TYPE_CHECKING:
    from gateway.vending.scope_proof import ProofReport
    from gateway.vending.scope_verdict import ScopeReport


UNDECIDED = 4
"""The exit code of a run that could not show whether the store confines credentials."""

_LOCATIONS = 50


@click.command("verify-scope")
@click.option("--warehouse", required=True, help="Id or name of the warehouse.")
@click.option(
    "--locations",
    type=click.IntRange(1, 10_000),
    default=_LOCATIONS,
    show_default=True,
    help="Number of random locations for which the policies are proven.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random locations.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify_scope(warehouse: str, locations: int, seed: int, as_json: bool) -> None:
    """Prove on the live store that vended credentials of a warehouse cannot leave their scope.

    The canary vends credentials for a temporary folder and attempts to leave it. An evaluator checks the policies for
    random locations. Gateways may serve at the same time; the verdict is stored as that of a periodic run.

    Exit code 0: proven, or the warehouse vends no credentials. Exit code 3: a credential can leave its scope. Exit code
    4: neither could be shown, for example because the store did not respond. Exit code 1: the run failed.
    """
    from gateway import app
    from gateway.features.credentials.scope_canary import NoSuchWarehouse

    settings = quiet_settings("require_encryption_key", "CRITICAL" if as_json else "ERROR")
    with ends_on(NoSuchWarehouse):
        name, report, proof = run_on_services(
            settings, app.verify_scope(settings, warehouse=warehouse, locations=locations, seed=seed)
        )
    click.echo(_json(name, report, proof) if as_json else _text(name, report, proof))
    sys.exit(exit_code(report, proof))


def exit_code(report: ScopeReport, proof: ProofReport | None) -> int:
    """Return the exit code for the results of the canary and the proof."""
    from gateway.vending.scope_verdict import Verdict

    if report.verdict is Verdict.ESCAPED or (proof is not None and proof.violations):
        return DIFFERS
    if report.verdict is Verdict.INCONCLUSIVE or (proof is not None and not proof.proven):
        return UNDECIDED
    return 0


def _json(name: str, report: ScopeReport, proof: ProofReport | None) -> str:
    import msgspec

    shown = {"warehouse": name, "canary": msgspec.to_builtins(report), "proof": msgspec.to_builtins(proof)}
    return json.dumps(shown, indent=2)


def _text(name: str, report: ScopeReport, proof: ProofReport | None) -> str:
    lines = [f"warehouse: {name}", f"canary: {report.verdict} ({report.attempts} attempts)"]
    if report.reason:
        lines.append(f"  reason: {report.reason}")
    lines += [f"  escaped: a {found.level} credential can {found.text}" for found in report.findings]
    lines += [f"  unclear: a {found.level} credential tried to {found.text}" for found in report.unclear]
    if proof is None:
        lines.append("proof: none; this warehouse has no policies of credentials")
    else:
        result = "proven" if proof.proven else "not proven"
        lines.append(f"proof: {result} ({proof.policies} policies, {proof.without_policy} locations without one)")
        lines += [f"  violation: {text}" for text in proof.violations]
    return "\n".join(lines)


@click.command("live-credentials")
@click.option("--warehouse", help="Id or name of the warehouse. Default: all.")
@click.option("--table", help="Id of a table or generic table, or its name `<namespace>.<name>` in the warehouse.")
@click.option(
    "--user", help="Id `<provider>~<subject>` of a user that received the credential, lent its right, or is the engine."
)
def live_credentials(warehouse: str | None, table: str | None, user: str | None) -> None:
    """List the live credentials, oldest first: a line for each, with its fields separated by tabs.

    The fields are: time by which it has expired, user, engine or `-`, level, prefix, session name, table id, id. The
    name of a deleted table is unknown; give its id. The last line on standard error is the number of credentials.
    """
    from gateway import app
    from gateway.features.live_credentials.live_credentials import NotFound

    settings = quiet_settings()
    with ends_on(NotFound):
        found = run_on_services(settings, app.live_credentials(settings, warehouse, table, user))
    for each in found:
        until = each.live_until.isoformat(timespec="seconds")
        names = (each.principal, each.engine or "-", each.level, each.prefix, each.session_name)
        click.echo("\t".join((until, *names, str(each.table_id or each.generic_table_id), str(each.id))))
    click.echo(f"live credentials: {len(found)}", err=True)
