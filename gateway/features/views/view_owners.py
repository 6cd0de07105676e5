# SPDX-License-Identifier: Apache-2.0
"""Ownership of views: a user can only lend its own rights through a view. Pure.

Engines store a view's owner in a property, and read the tables behind the view with the owner's rights, for every
reader of the view. So the property is a grant of that user's rights. Two rules restrict changes of the property and of
the view's SQL:

* **The definer** of a view must be the user in Trino's property (`trino.run-as-owner`), even if the settings trust no
  engine: an engine that is not integrated with the gateway uses the property too.
* **Owner properties that the settings name** are set by trusted engines only: the gateway itself makes decisions by
  them (`gateway/access/decisions/definer_views.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.access.actor import Actor
from gateway.access.decisions.definer_views import owners_in
from gateway.iceberg.errors import ForbiddenException, ViewActionForbidden
from gateway.iceberg.kinds import RUNS_AS
from gateway.iceberg.views import ViewMetadata


class ProtectedPropertyModification(ForbiddenException):
    """Only trusted engines set the owner of a view, and only the owner changes its definition."""


@dataclass(frozen=True, slots=True)
class ViewOwners:
    """The names of users in engines: the full id, and its subject part if `sole_provider` is the only identity
    provider. With several providers, the same subject may belong to different users.

    `protected` are the folded names of the properties in which trusted engines store the owner of a view.
    """

    sole_provider: str | None = None
    protected: frozenset[str] = frozenset()

    def require(self, caller: Actor, after: ViewMetadata, before: ViewMetadata | None = None) -> None:
        """Raise ProtectedPropertyModification or ViewActionForbidden for a view that would be read with rights that the
        caller cannot lend. `before` is the current view, None for a new one.
        """
        if self.protected:
            redefined = before is None or before.current_version != after.current_version
            old_owners = {} if before is None else before.properties
            require_owner_kept(caller, self.protected, old_owners, after.properties, redefined=redefined)
        if not is_the_engine(caller):
            self.require_own(caller, after, before)

    def require_own(self, caller: Actor, after: ViewMetadata, before: ViewMetadata | None = None) -> None:
        """Raise ViewActionForbidden for a view that runs as another user than the caller, unless it did so `before`
        with the same owner and definition.
        """
        runs_as = after.properties.get(RUNS_AS)
        if runs_as is None or runs_as in self._names_of(caller):
            return
        same = before is not None and before.properties.get(RUNS_AS) == runs_as
        if same and before is not None and before.current_version_id == after.current_version_id:
            return
        raise ViewActionForbidden(
            f"Property {RUNS_AS} names another user. Only that user can define a view that runs with their rights. "
            "Set the property to your own user name. Or leave it out; each user then reads with their own rights."
        )

    def _names_of(self, caller: Actor) -> set[str]:
        provider, _, subject = caller.id.partition("~")
        return {caller.id, subject} if provider == self.sole_provider else {caller.id}


def is_the_engine(actor: Actor) -> bool:
    """Return True for a trusted engine that acts for itself; it stores the owners of its users' views."""
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

    `protected` are the folded names of all owner properties. `redefined` is True if the view's definition changes. A
    trusted engine may make any change. A user through one may become the owner, or remove the owner. The owner may
    change the definition. No other caller may do either.
    """
    old_owners, new_owners = owners_in(before, protected), owners_in(after, protected)
    own_name = actor.id.partition("~")[2]
    for name in old_owners.keys() | new_owners.keys():
        through_engine = name.casefold() in actor.owner_properties
        if through_engine and is_the_engine(actor):
            continue
        unchanged = old_owners.get(name) == new_owners.get(name)
        if unchanged and (not redefined or new_owners[name] == own_name):
            continue
        if through_engine and not unchanged and new_owners.get(name, own_name) == own_name:
            continue
        raise ProtectedPropertyModification(
            f"Property {name} determines the user with whose rights the view is read. Only a trusted engine may set "
            "it, and only to the user that it acts for. Only that user may change the view's definition."
        )
