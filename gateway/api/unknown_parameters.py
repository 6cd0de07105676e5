# SPDX-License-Identifier: Apache-2.0
"""Refuse query parameters of the management API that an endpoint does not read.

Query parameters select and limit. Without a filter that the server does not know, a list would contain everything, and
a change would do more than the client means. So the request fails, except for parameters that have no effect there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from gateway.access.operation import HttpOperation
from gateway.iceberg.errors import BadRequestException

_MANAGEMENT: Final = "/management/"

#: Without effect where the whole list is one answer.
_PAGING: Final = frozenset({"pageToken", "pageSize"})

#: Without effect where the path contains the id of an object, which lies in one project.
_PROJECT: Final = frozenset({"projectId", "project-id"})


def refuse_unknown_parameters(
    operations: Iterable[type[HttpOperation]], declared: Collection[str], given: Iterable[str]
) -> None:
    """Raise 400 if `given` has a parameter that an endpoint of the management API neither reads nor may ignore."""
    path = next((each.paths()[0] for each in operations), "")
    if not path.startswith(_MANAGEMENT):
        return
    ignored = _PAGING | _PROJECT if "{" in path else _PAGING
    unknown = sorted(set(given) - ignored - set(declared))
    if unknown:
        possible = ", ".join(sorted(set(declared))) or "none"
        raise BadRequestException(
            f"Unknown query parameter {unknown[0][:64]!r}: it would have no effect. Parameters of this "
            f"endpoint: {possible}."
        )
