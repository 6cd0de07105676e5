# SPDX-License-Identifier: Apache-2.0
"""Whose rights an engine reads a view's tables by: nobody can lend out the rights of somebody else. Pure.

Engines keep a view's owner in a property of it, and read what lies behind the view with that one's rights for whoever
may read the view. So the name is a grant of that user's rights. Two rules bind who writes it, or the SQL beside it:

* **Whoever defines the view** has to be the user that Trino's property names (`trino.run-as-owner`), whether the
  settings trust an engine or not: an engine that knows nothing of the gateway reads the property all the same.
* **Owner properties that the settings name** are an engine's to set and nobody else's: the gateway itself decides by
  them (`gateway/access/definer_views.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.access.actor import Actor
from gateway.access.definer_views import owners_in
from gateway.iceberg.errors import ForbiddenException, ViewActionForbidden
from gateway.iceberg.kinds import RUNS_AS
from gateway.iceberg.views import ViewMetadata


class ProtectedPropertyModification(ForbiddenException):
    """The owner of a view is for trusted engines to set, and for nobody else to inherit."""


@dataclass(frozen=True, slots=True)
class ViewOwners:
    """What users are called by engines: by their full id, and by the subject in it where `sole_provider` is the only
    one that vouches for callers. With several the same subject may be somebody else's.

    `protected` are the folded names of what trusted engines keep a view's owner in.
    """

    sole_provider: str | None = None
    protected: frozenset[str] = frozenset()

    def require(self, caller: Actor, after: ViewMetadata, before: ViewMetadata | None = None) -> None:
        """Raise the refusal for a view that would be read with rights that are not the caller's to lend:
        ProtectedPropertyModification or ViewActionForbidden. `before` is the view as it was, None for a new one.
        """
        if self.protected:
            redefined = before is None or before.current_version != after.current_version
            had = {} if before is None else before.properties
            require_owner_kept(caller, self.protected, had, after.properties, redefined=redefined)
        if not is_the_engine(caller):
            self.require_own(caller, after, before)

    def require_own(self, caller: Actor, after: ViewMetadata, before: ViewMetadata | None = None) -> None:
        """Raise ViewActionForbidden for a view that runs as somebody else than the caller, unless it did so `before`,
        for the same name and with the same definition.
        """
        runs_as = after.properties.get(RUNS_AS)
        if runs_as is None or runs_as in self._names_of(caller):
            return
        same = before is not None and before.properties.get(RUNS_AS) == runs_as
        if same and before is not None and before.current_version_id == after.current_version_id:
            return
        raise ViewActionForbidden(
            f"Property {RUNS_AS} names somebody else, whose rights the view would hand out: only they can define a "
            "view that runs as them. Name yourself, or leave it out, so that everybody reads by their own rights."
        )

    def _names_of(self, caller: Actor) -> set[str]:
        provider, _, subject = caller.id.partition("~")
        return {caller.id, subject} if provider == self.sole_provider else {caller.id}


def is_the_engine(actor: Actor) -> bool:
    """Return True for a trusted engine as itself, which keeps the owners of its users' views."""
    return bool(actor.owner_properties) and actor.engine is None


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
