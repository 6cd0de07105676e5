# SPDX-License-Identifier: Apache-2.0
"""Determine the user with whose rights the tables below a view are read. Pure.

Engines that support definer views (Trino) read them with the rights of their owner, and store the owner's name in a
property of the view. The property counts only for engines that the settings trust, and only they may set it
(`gateway/features/views/views.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.access.actor import Actor
from gateway.access.nouns.resolved import Excerpt, ResolvedView
from gateway.access.tuples import is_valid_in_tuples
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.excerpts import properties_in
from gateway.iceberg.kinds import RUNS_AS


class AmbiguousViewOwner(BadRequestException):
    """The view's properties contain several owners, or an id that no user can have."""


def owners_in(properties: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    """Return the owner properties among `properties`, with names as they are spelled there. `names` are case-folded."""
    return {name: value for name, value in properties.items() if name.casefold() in names}


def runs_as(excerpt: Excerpt) -> str | None:
    """Return the user with whose rights Trino reads the view's contents, as spelled in the view. Return None if no user
    is set.

    Trino reads exactly this property, in this letter case, whether the settings trust an engine or not.
    """
    return properties_in(excerpt.text).get(RUNS_AS) or None


def owner_of(view: ResolvedView, excerpt: Excerpt, caller: Actor) -> str | None:
    """Return the id of the user whose rights count below the view. Return None if the view has no owner.

    The user is of the caller's own provider. `excerpt` has the view's properties. Raises AmbiguousViewOwner for several
    owners, and for an owner that is not a valid user id.
    """
    found = owners_in(properties_in(excerpt.text), frozenset(caller.owner_properties))
    if not found:
        return None
    named = set(found.values())
    if len(named) > 1:
        raise AmbiguousViewOwner(
            f"The owner properties of view {view.identifier.dotted} name more than one user. Set them all to the "
            "same user."
        )
    (name,) = named
    owner = f"{caller.id.partition('~')[0]}~{name}"
    if name != name.strip() or not name or not name.isprintable() or not is_valid_in_tuples(owner):
        raise AmbiguousViewOwner(
            f"The owner property of view {view.identifier.dotted} is not a valid user name. It must be the name of "
            "one user, without blanks at its ends or control characters."
        )
    return owner
