# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate model prove``: prove that no principal gains a right by another relationship model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gateway.cli.common import DIFFERS, ends_on
from gateway.cli.model_diff import named_model

if TYPE_CHECKING:
    from gateway.fga.model_proof import SynthesizedWorld


@click.command("prove")
@click.argument("old")
@click.argument("new")
@click.option("--namespaces", default=2, show_default=True, type=click.IntRange(1, 5), help="Namespaces in a world.")
@click.option("--roles", default=2, show_default=True, type=click.IntRange(0, 5), help="Roles in a world.")
@click.option(
    "--seconds", default=300, show_default=True, type=click.IntRange(min=1), help="Limit of the solver's time."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def model_prove(old: str, new: str, namespaces: int, roles: int, seconds: int, form: str) -> None:
    """Prove that NEW gives no principal a right that OLD does not give, or print tuples that show the opposite.

    OLD and NEW are named as for `lakegate model diff`. The proof covers every world with one user, the given numbers of
    namespaces and roles, one object of each other type, and any tuples between them.

    Needs the solver Z3: `pip install 'lakegate[prove]'`. Exit code 3 if a principal gains a right.
    """
    try:
        from gateway.fga.model_proof import Bounds, Undecided, gained
    except ModuleNotFoundError as missing:
        if missing.name != "z3":
            raise
        raise click.ClickException(
            "The solver Z3 is missing; install it with `pip install 'lakegate[prove]'`."
        ) from None
    from gateway.fga.evaluation import UnknownRule

    bounds = Bounds(namespaces, roles)
    with ends_on(Undecided, UnknownRule):
        world = gained(named_model(old), named_model(new), bounds, seconds=seconds)
    within = (
        f"{namespaces} namespaces, {roles} roles, one user and one object of each other type, each with at most one "
        "container"
    )
    if form == "json":
        click.echo(_as_json(world, namespaces, roles, within))
    elif world is None:
        click.echo(f"proven: no principal gains a right (within {within})")
    else:
        click.echo(f"{world.user} gains {world.relation} on {world.object} with these tuples (user, relation, object):")
        for each in world.tuples:
            expires = " (with an expiry)" if each.until is not None else ""
            click.echo(f"  {each.user} {each.relation} {each.object}{expires}")
        click.echo(f"(searched within {within})")
    sys.exit(0 if world is None else DIFFERS)


def _as_json(world: SynthesizedWorld | None, namespaces: int, roles: int, within: str) -> str:
    import msgspec

    tuples = [
        {"user": each.user, "relation": each.relation, "object": each.object, "expires": each.until is not None}
        for each in (() if world is None else world.tuples)
    ]
    shown = world and {"user": world.user, "relation": world.relation, "object": world.object, "tuples": tuples}
    fields = {"proven": world is None, "bounds": within, "namespaces": namespaces, "roles": roles, "world": shown}
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()
