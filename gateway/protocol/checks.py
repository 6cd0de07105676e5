# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints that check permissions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from gateway.protocol.base import Answer, Request
from gateway.protocol.rights import Identity

#: The maximum number of checks in one request.
MAX_CHECKS = 1000


class CheckRequest(Request, frozen=True):
    """Request of `POST /permissions/check`."""

    operation: dict[str, dict[str, Any]]
    identity: Identity | None = None


class CheckAnswer(Answer, frozen=True, omit_defaults=True):
    """Response of `POST /permissions/check`: `allowed` is true if the operation would be allowed. `restricted` is true
    if it is not allowed because row filters or masks restrict the table.
    """

    allowed: bool
    restricted: bool = False


class CheckItem(Request, frozen=True):
    """One check of a batch."""

    operation: dict[str, dict[str, Any]]
    id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    identity: Identity | None = None


class BatchCheckRequest(Request, frozen=True):
    """Request of `POST /action/batch-check`.

    `delegated` is an extension of this server: a caller with `inspector` or `delegate` on the project or warehouse of
    the checks, such as an engine, checks the rights of other principals. Without `delegated`, each check with an
    `identity` needs the right to read the assignments of its object. A caller that could get an answer only with
    `delegated` and does not send it gets 403 `CannotInspectPermissions`, and so does one that sends it without such a
    privilege.

    An action that this server does not have, or not on objects of this type, is not allowed. Unknown members of a check
    are ignored, except in its `operation`: there they could change the question.
    """

    checks: tuple[CheckItem, ...]
    error_on_not_found: bool = False
    delegated: bool = False


class ColumnMask(Answer, frozen=True):
    """The replacement of one column, named as in the schema, as an expression of Trino."""

    column: str
    expression: str


class EngineRestrictions(Answer, frozen=True, omit_defaults=True):
    """The row filter and the masks of a table, as expressions of Trino, for an engine that applies them."""

    row_filter: str | None = None
    column_masks: list[ColumnMask] = []


class CheckResult(Answer, frozen=True, omit_defaults=True):
    """The result of one check. For `read_columns`, `columns` has the names of the allowed columns in the table's
    current schema. If an allowed result has no `columns`, all columns are allowed. With `restrictions`, the engine
    must apply the row filter and the masks; the result then has `columns` too. `restricted` is true if the check is not
    allowed because row filters or masks restrict the table, or because the caller may not see their expressions.
    """

    allowed: bool
    id: str | None = None
    columns: list[str] | None = None
    restrictions: EngineRestrictions | None = None
    restricted: bool = False


class BatchCheckAnswer(Answer, frozen=True):
    """Response of `POST /action/batch-check`: the results, in the order of the checks."""

    results: list[CheckResult]
