# SPDX-License-Identifier: Apache-2.0
"""Who may say as whom a view is read: the property by which engines remember its owner is protected. Pure.

Whoever could set it to somebody else would read with that one's rights; and whoever could change what the view *says*
while it keeps its owner would, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.access.actor import Actor
from gateway.access.passages import owners_in
from gateway.iceberg.errors import ForbiddenException


class ProtectedPropertyModification(ForbiddenException):
    """The owner of a view is for trusted engines to set, and for nobody else to inherit."""


def is_the_engine(actor: Actor) -> bool:
    """Whether a trusted engine comes as itself: it keeps the owners of its users' views."""
    return bool(actor.owner_properties) and actor.engine_by_name and actor.engine is None


def require_owner_kept(
    actor: Actor,
    protected: frozenset[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    redefined: bool,
) -> None:
    """Raise ProtectedPropertyModification unless `actor` may change a view's properties from `before` to `after`.

    `protected` are the folded names of all owner properties, `redefined` says whether the view's definition changes. A
    trusted engine itself may do all of it. A user through one may become the owner, or take the owner away. Whoever is
    the owner may change the definition. Nobody else touches either.
    """
    had, has = owners_in(before, protected), owners_in(after, protected)
    own = actor.id.partition("~")[2]
    for name in had.keys() | has.keys():
        through_engine = name.casefold() in actor.owner_properties
        if through_engine and is_the_engine(actor):
            continue
        kept = had.get(name) == has.get(name)
        if kept and (not redefined or has[name] == own):
            continue
        if through_engine and not kept and has.get(name, own) == own:
            continue
        raise ProtectedPropertyModification(
            f"{name} says with whose rights the view is read: only a trusted engine may set it, to the user it acts "
            "for, and only that user may change what the view says"
        )
