# SPDX-License-Identifier: Apache-2.0
"""Find the extensions of installed packages: authorizers, secret stores, event sinks, verifiers and storages.

A package provides an extension as an entry point, as the packaging standard describes
(https://packaging.python.org/en/latest/specifications/entry-points/). The group is its kind, the name is the one that
the settings use, and the entry point refers to a function that opens it. docs/extensions.md describes each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import entry_points
from typing import Any


class ExtensionGroup(StrEnum):
    """The groups of entry points that this gateway reads."""

    AUTHORIZERS = "lakegate.authorizers"
    SECRETS = "lakegate.secrets"
    EVENTS = "lakegate.events"
    VERIFIERS = "lakegate.verifiers"
    STORAGE = "lakegate.storage"


class NoSuchExtension(Exception):
    """No installed package provides the extension, several do, or it cannot be opened."""


def names_of_extensions(group: ExtensionGroup | str) -> tuple[str, ...]:
    """Return the names that installed packages provide in a group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=str(group))}))


def modules_of_extensions(group: ExtensionGroup) -> Mapping[str, str]:
    """Return the names that installed packages provide in a group, each with the module that an import would run."""
    return {entry.name: entry.module for entry in entry_points(group=group.value)}


def find_extension(group: ExtensionGroup | str, name: str, *, built_in: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Return the function that opens the extension `name`. Only the package with this name is imported.

    Raises NoSuchExtension, with all names that exist (`built_in` are those without a package).
    """
    (entry, *others) = tuple(entry_points(group=str(group), name=name)) or (None,)
    if entry is None:
        known = ", ".join(sorted({*built_in, *names_of_extensions(group)})) or "none"
        raise NoSuchExtension(
            f"No extension of the group {group} has the name {name!r}. Known names: {known}. Use one of them, or "
            "install the package that provides it."
        )
    if others:
        raise NoSuchExtension(f"Several installed packages provide {name!r} in the group {group}. Remove all but one.")
    try:
        found = entry.load()
    except Exception as error:  # a package's own code runs here: whatever it raises, the operator needs its name
        raise NoSuchExtension(f"The extension {name!r} ({entry.value}) cannot be imported: {error!r}.") from error
    if not callable(found):
        raise NoSuchExtension(f"The extension {name!r} ({entry.value}) is no function that opens it.")
    opened: Callable[..., Any] = found
    return opened
