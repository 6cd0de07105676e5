# SPDX-License-Identifier: Apache-2.0
"""Whose rights an engine reads a view's tables by: nobody can lend out the rights of somebody else.

Trino reads what lies behind a view with this property as the user it names, for whoever may read the view. So the name
is a grant of that user's rights, and who writes it, or the SQL beside it, has to be that user.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.access.actor import Actor
from gateway.iceberg.errors import ViewActionForbidden
from gateway.iceberg.kinds import RUNS_AS
from gateway.iceberg.views import ViewMetadata


@dataclass(frozen=True, slots=True)
class ViewOwners:
    """What users are called by engines: by their full id, and by the subject in it where `sole_provider` is the only
    one that vouches for callers. With several the same subject may be somebody else's.
    """

    sole_provider: str | None = None

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
