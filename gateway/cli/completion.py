# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate completion``, and the completion of names of objects from the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

#: Seconds that a completion waits for a response.
_PATIENCE: Final = 3.0
#: Texts that no shell interprets. Bash inserts completions as they are, and other users choose names.
_PLAIN: Final = re.compile(r"\w[\w./@%+=:,~-]*")
_SHELLS: Final = ("bash", "zsh", "fish")
_INSTALL: Final = {
    "bash": 'eval "$(lakegate completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(lakegate completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "lakegate completion fish > ~/.config/fish/completions/lakegate.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell. It completes commands, options and names of objects.

    Example: eval "$(lakegate completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(f"# {_INSTALL[shell]}")
    click.echo(found(context.find_root().command, {}, "lakegate", "_LAKEGATE_COMPLETE").source())


def complete_reference(context: click.Context, text: str, kinds: tuple[str, ...]) -> list[CompletionItem]:
    """Return the references that begin with the text: kinds, then names from the gateway.

    Without a login or an answer there are none: a completion must not print an error. Names with characters that a
    shell interprets are left out.
    """
    from gateway.apply.references import KINDS_OF_REFERENCES

    start, slash, _ = text.partition("/")
    if not slash and not kinds:
        return [CompletionItem(f"{kind}/") for kind in KINDS_OF_REFERENCES if kind.startswith(text)]
    with suppress(Exception):
        shown = text if start in KINDS_OF_REFERENCES or not kinds else f"{kinds[0]}/{text}"
        cut = 0 if shown == text else len(kinds[0]) + 1
        found = (each[cut:] for each in _names(context, shown) if each.startswith(shown))
        return [CompletionItem(each) for each in found if _PLAIN.fullmatch(each)]
    return []


def _names(context: click.Context, text: str) -> Iterator[str]:
    """Yield the references of the innermost list that the text reaches."""
    from gateway.apply.references import Finder, Reference, parse_reference
    from gateway.apply.state import Kind
    from gateway.cli.catalog_client import client_of
    from gateway.cli.noun_declarations import CARDS

    given = context.params
    with client_of(given.get("gateway"), given.get("token"), seconds=_PATIENCE) as api:
        finder = Finder(api, given.get("project"))
        kind, _, rest = text.partition("/")
        card = next(each for each in CARDS.values() if each.kind == kind)
        if not card.containers:
            yield from (str(card.reference(address)) for address, _, _ in card.rows(finder, None))
            return
        warehouse, slash, path = rest.partition("/")
        if not slash:
            for address, _, _ in finder.rows(Kind.WAREHOUSE, finder.project()):
                yield f"{kind}/{parse_reference(f'warehouse/{address.name}')}".replace("/warehouse/", "/") + "/"
            return
        on = Reference(Kind.WAREHOUSE, (), warehouse)
        namespace, dot, _ = path.rpartition(".")
        if kind == Kind.NAMESPACE or not dot:
            for address, _, _ in finder.rows(Kind.NAMESPACE, finder.find(on)):
                found = str(Reference(Kind(kind), address.levels, warehouse))
                yield found if kind == Kind.NAMESPACE else f"{found}."
            return
        within = parse_reference(f"namespace/{warehouse}/{namespace}")
        yield from (str(card.reference(address)) for address, _, _ in card.rows(finder, within))
