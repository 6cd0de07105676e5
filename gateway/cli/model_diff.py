# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate model diff``: compare what two relationship models mean, for CI."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.changed_access import print_changed_access
from gateway.cli.common import DIFFERS, ends_on, trust
from gateway.cli.models import about_models, opened_models

if TYPE_CHECKING:
    from gateway.fga.model_diff import Acknowledgement, ModelDiff
    from gateway.settings import Settings

ACTIVE = "active"
PACKAGED = "packaged"
#: The form of OpenFGA's ids of models (ULIDs).
_ID = re.compile("[0-9A-HJKMNP-TV-Z]{26}")

FILE = click.Path(dir_okay=False, exists=True, path_type=Path)


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--acknowledged", type=FILE, help="File with the lines that may widen access, one implication a line.")
@click.option(
    "--database", is_flag=True, help="Also print which principals gain and lose what, by the recorded grants."
)
@click.option(
    "--depth", default=2, show_default=True, type=click.IntRange(1, 6), help="Number of nested namespaces to compare."
)
def model_diff(old: str, new: str, form: str, acknowledged: Path | None, database: bool, depth: int) -> None:
    """Print which granted relations imply which relations in only one of two models.

    OLD and NEW are directories with `fga.mod`, `packaged` for the model of this version, `active` for the model that
    checks use, or the id of a recorded model. A line with `+` gives access that OLD does not give. A line with `-`
    takes access away.

    `--database` evaluates both models on all recorded grants. It prints who gains and loses what on which object, with
    the grants that are the reason, and is complete or an error. With `--format json` each line is a JSON object.

    Exit code 3 if access widens without a line in the file of acknowledgements, or if such a line is stale.
    """
    from gateway.fga.implications import TooComplex
    from gateway.fga.model_diff import acknowledge, compare_models

    with ends_on(TooComplex, OSError, UnicodeDecodeError):
        before, after = named_model(old), named_model(new)
        diff = compare_models(before, after, depth)
        lines = None if acknowledged is None else acknowledged.read_text(encoding="utf-8").splitlines()
    verdict = acknowledge(diff, lines)
    click.echo(_as_json(diff, verdict, indent=not database) if form == "json" else _as_text(diff))
    if database:
        print_changed_access(before, after, as_json=form == "json")
    for line in verdict.stale:
        click.echo(f"stale acknowledgement: {line}", err=True)
    if verdict.missing:
        click.echo(
            f"{len(verdict.missing)} implications widen access without an acknowledgement. If this is intended, write "
            "each of these lines (without `+`) into the file of `--acknowledged`.",
            err=True,
        )
    sys.exit(0 if verdict.exact else DIFFERS)


def named_model(name: str) -> dict[str, Any]:
    """Return a model by its name on the command line: a directory, `packaged`, `active`, or the id of a recorded model.

    A fault ends the command with a message.
    """
    from gateway.fga.compile import without_origins
    from gateway.fga.compiled import compiled_model
    from gateway.fga.model_source import InvalidModel, source_model

    if name == PACKAGED:
        packaged: dict[str, Any] = without_origins(compiled_model())
        return packaged
    if name == ACTIVE or _ID.fullmatch(name):
        return about_models(lambda settings: _recorded(settings, name))
    with ends_on(InvalidModel, OSError):
        return source_model(Path(name).resolve())


async def _recorded(settings: Settings, name: str) -> dict[str, Any]:
    """Return the active model, or the recorded model with this id."""
    from gateway.fga.compiled import without_empties
    from gateway.fga.model import read_model

    async with opened_models(settings) as models:
        active, recorded = await models.known()
    at, wanted = settings.openfga, active.model_id if active is not None and name == ACTIVE else name
    for each in recorded:
        if each.model_id == wanted:
            key = at.api_key.reveal() if at.api_key else None
            stored = await read_model(at.endpoint, key, each.store_id, each.model_id, ca_bundle=trust().bundle)
            model: dict[str, Any] = without_empties(stored)
            return model
    raise click.ClickException(f"No model {name} is recorded; list the models with `lakegate model status`.")


def _as_text(diff: ModelDiff) -> str:
    lines = [f"+ {each}" for each in diff.widened] + [f"- {each}" for each in diff.narrowed]
    return "\n".join([*lines, f"{len(diff.widened)} implications more, {len(diff.narrowed)} fewer"])


def _as_json(diff: ModelDiff, verdict: Acknowledgement, *, indent: bool) -> str:
    import msgspec

    fields = {**msgspec.structs.asdict(diff), "unacknowledged": verdict.missing, "stale": verdict.stale}
    encoded = msgspec.json.encode(fields)
    return (msgspec.json.format(encoded, indent=2) if indent else encoded).decode()
