# SPDX-License-Identifier: Apache-2.0
"""Find the extensions of installed packages: authorizers, secret stores, event sinks, verifiers and storages.

A package provides an extension as an entry point, as the packaging standard describes
(https://packaging.python.org/en/latest/specifications/entry-points/). The group is the kind of the extension. The name
is the one in the settings. The entry point refers to a function that opens the extension. docs/extensions.md describes
each kind.
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
    """Return the names of the entry points of a group in installed packages, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=str(group))}))


def modules_of_extensions(group: ExtensionGroup) -> Mapping[str, str]:
    """Return {name: module} for the entry points of a group in installed packages. No module is imported."""
    return {entry.name: entry.module for entry in entry_points(group=group.value)}


def find_extension(group: ExtensionGroup | str, name: str, *, built_in: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Return the function that opens the extension `name`. Only the package that provides it is imported.

    Raises NoSuchExtension. Its message has all available names, including `built_in`, which need no package.
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
    except Exception as error:  # a package can raise any error, and the operator needs the package's name
        raise NoSuchExtension(f"The extension {name!r} ({entry.value}) cannot be imported: {error!r}.") from error
    if not callable(found):
        raise NoSuchExtension(f"The extension {name!r} ({entry.value}) must be a function, and is not callable.")
    opened: Callable[..., Any] = found
    return opened
