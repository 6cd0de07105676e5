# SPDX-License-Identifier: Apache-2.0
"""The commands `list`, `show`, `create`, `rename` and `delete` of every kind of objects, such as ``lakegate tables``.

`gateway.cli.noun_declarations` declares the kinds. A group is built when it is called: other commands start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.catalog_client import YES, ReferenceType, confirm_by_name, with_finder
from gateway.cli.management import printable
from gateway.cli.output import print_object, print_rows, with_format

if TYPE_CHECKING:
    from gateway.apply.references import Finder, Reference
    from gateway.cli.noun_cards import NounCard

#: The groups, with their help. Each has the name of its kind in the plural.
GROUPS: Final = {
    "projects": "List and change projects.",
    "warehouses": "List and change warehouses.",
    "namespaces": "List and change namespaces of a warehouse.",
    "tables": "List and change tables.",
    "views": "List and change views.",
    "generic-tables": "List and change generic tables: files of other formats.",
    "roles": "List and change roles, and their members.",
    "users": "List and change users.",
    "tags": "List and change tags, and attach them.",
    "data-policies": "List and change data policies: masks of columns and row filters.",
    "mapping-tables": "List and change mapping tables.",
}


#: Names here of commands that have another name in their own group.
_STANDARD_NAMES: Final = {"define": "create"}


class NounGroup(click.Group):
    """The commands of one kind of objects. `further` are commands that only this kind has."""

    def __init__(self, name: str, further: click.Group | None = None) -> None:
        super().__init__(name, help=GROUPS[name])
        self._further: Mapping[str, click.Command] = {} if further is None else further.commands
        self._built = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        self._build()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name."""
        self._build()
        return super().get_command(ctx, cmd_name)

    def _build(self) -> None:
        """Add the commands at the first use."""
        if self._built:
            return
        self._built = True
        from gateway.cli.noun_declarations import CARDS

        card = CARDS[self.name or ""]
        for name, command in self._further.items():
            self.add_command(command, _STANDARD_NAMES.get(name, name))
        self.add_command(_list(card))
        self.add_command(_show(card))
        for build in (_create, _rename, _delete):
            if (added := build(card)) is not None:
                self.add_command(added)


def _list(card: NounCard) -> click.Command:
    @click.command("list", help=card.list_help)
    @with_format
    @with_finder
    def run(finder: Finder, form: str, within: Reference | None = None) -> None:
        rows = (
            {"name": str(card.reference(address)), "id": id, **card.listed(row)}
            for address, id, row in card.rows(finder, within)
        )
        print_rows(form, ("name", "id", *card.columns), rows, empty=f"There are no {card.plural} that you can see.")

    if card.containers:
        required = ReferenceType(*card.containers)
        run.params.insert(0, click.Argument(["within"], type=required, metavar=card.container_form))
    return run


def _named(card: NounCard) -> Callable[[Any], Any]:
    """Return the argument that names an object of the kind."""
    return click.argument("reference", type=ReferenceType(card.kind), metavar=card.form)


def _show(card: NounCard) -> click.Command:
    @click.command("show", help=f"Show one of the {card.plural}.\n\n{card.example('show')}")
    @_named(card)
    @with_format
    @with_finder
    def run(reference: Reference, finder: Finder, form: str) -> None:
        address = finder.find(reference)
        print_object(form, card.shown(finder, address, full=form in ("json", "yaml")))

    return run


def _create(card: NounCard) -> click.Command | None:
    if card.new is None:
        return None
    new = card.new

    @click.command("create", help=f"{new.help}\n\n{new.example}")
    @_named(card)
    @with_format
    @with_finder
    def run(reference: Reference, finder: Finder, form: str, **options: Any) -> None:
        made = card.create(finder, reference, {name: value for name, value in options.items() if value})
        if form == "table":
            click.echo(f"created {printable(str(reference))}{f': {made}' if made else ''}")
        else:
            print_object(form, {"name": str(reference), "id": made})

    run.params[1:1] = [each() for each in new.options]
    return run


def _rename(card: NounCard) -> click.Command | None:
    if card.rename is None:
        return None

    @click.command("rename", help=f"Rename one of the {card.plural}.\n\n{card.example('rename', card.renamed)}")
    @_named(card)
    @click.argument("new")
    @with_finder
    def run(reference: Reference, new: str, finder: Finder) -> None:
        card.rename_to(finder, finder.find(reference), new)
        click.echo(f"renamed {printable(str(reference))} to {printable(new)}")

    return run


def _delete(card: NounCard) -> click.Command | None:
    if not card.deletable:
        return None

    @click.command("delete", help=f"Delete one of the {card.plural}. {card.consequence}\n\n{card.example('delete')}")
    @_named(card)
    @YES
    @with_finder
    def run(reference: Reference, yes: bool, finder: Finder, **options: Any) -> None:
        address = finder.find(reference)
        confirm_by_name(str(reference), f"This deletes {reference}. {card.consequence}", yes=yes)
        card.delete(finder, address, {name: "true" for name, given in options.items() if given})
        click.echo(f"deleted {printable(str(reference))}")

    run.params[1:1] = [click.Option([f"--{name}"], is_flag=True, help=help) for name, help in card.delete_flags.items()]
    return run
