# SPDX-License-Identifier: Apache-2.0
"""Operations that check permissions without taking the action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Request
from gateway.access.demand import Demand, Facts
from gateway.access.nouns.cards import ACTIONS, VISIBLE_BY
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import NamespaceRef, Ref, TabularRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import Audience, PublicAudience, QuestionOperation
from gateway.access.operations.actions import Identity
from gateway.access.tuples import Principal
from gateway.iceberg.errors import BadRequestException

#: From this number of visibility checks in one namespace on, the right to see the whole namespace is checked once.
_A_LIST = 10


class UnknownAction(BadRequestException, type="BadRequestException"):
    """This server does not have this action, or not on objects of this type."""


@dataclass(frozen=True)
class Check:
    """A check of `relation` on `on` for `principal` (the caller if None). Policies receive `facts`.

    `id` is the id that the client gave the check. `or_on` is a view with the same name, if `on` is a table: tables and
    views share one name space, and an engine checks before it knows the type of the object.

    With `runs_as_owner` a view without an owner is not allowed. Engines request this before they read a view with the
    rights of another view's owner: those rights must not apply below a view without an owner (`docs/trino.md`).

    With `append` the checked change only adds rows. With `applies_restrictions` the engine applies the row filter and
    the masks of the result as Trino expressions.
    """

    on: Ref
    relation: Can
    principal: Principal | None = None
    facts: Facts = field(default_factory=dict, hash=False)
    id: str | None = None
    or_on: Ref | None = None
    runs_as_owner: bool = False
    append: bool = False
    applies_restrictions: bool = False

    def __post_init__(self) -> None:
        """Raise UnknownAction if the model does not define the relation on this type.

        Otherwise OpenFGA would return an error, which the caller would receive as an outage.
        """
        for on in self.may_mean:
            known = ACTIONS[on.type]
            if self.relation not in known:
                raise UnknownAction(
                    f"The action {self.relation} does not apply to a {on.type}. Possible actions: "
                    f"{', '.join(sorted(known))}"
                )

    @property
    def may_mean(self) -> tuple[Ref, ...]:
        """The objects that the check may be about: one, or two if the name could be that of a table or of a view."""
        return (self.on,) if self.or_on is None else (self.on, self.or_on)


@dataclass(frozen=True)
class CheckPermission(QuestionOperation):
    """Check one permission of the caller, or of another principal.

    Callers may check themselves. A check of another principal needs the right to read the assignments of the object.
    """

    endpoint: ClassVar[str] = "POST /management/v1/permissions/check"
    # Read-only, although the method is POST: the operation only answers a question.
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own rights; a question about another principal demands can_read_assignments"
    )
    check: Check

    def demands(self) -> tuple[Demand, ...]:
        if self.check.principal is None:
            return ()
        return (Demand(Can.READ_ASSIGNMENTS, self.check.on),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.check.on,)

    def audit_details(self) -> Mapping[str, str]:
        return asked_about((self.check,))


@dataclass(frozen=True)
class BatchCheck(QuestionOperation):
    """Check many permissions in one request, each of the caller or of another principal.

    An engine sends a `delegated` batch for its users. It may check every principal if it holds can_inspect on the
    warehouse or project of the check. The demands are optional, because a check that the caller may not make is refused
    alone.
    """

    endpoint: ClassVar[str] = "POST /management/v1/action/batch-check"
    # Read-only, although the method is POST: the operation only answers questions.
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED,
        "checks about the caller; each check about another principal demands can_read_assignments or can_inspect",
    )
    checks: tuple[Check, ...]
    error_on_not_found: bool = False
    delegated: bool = False

    def __post_init__(self) -> None:
        """Raise BadRequestException for options that exclude each other.

        A delegated check must be about a project or about an object in a warehouse, because inspectors are appointed
        there. It must not disclose which objects exist.
        """
        if self.delegated and self.error_on_not_found:
            raise BadRequestException("`error-on-not-found` and `delegated` cannot both be true.")
        if self.delegated and any(each.principal is not None and hub_of(each.on) is None for each in self.checks):
            raise BadRequestException(
                "In a delegated batch, each check with an `identity` must name a project, or an object in a warehouse."
            )
        if self.error_on_not_found and any(each.or_on is not None for each in self.checks):
            raise BadRequestException("`error-on-not-found` cannot be true in a batch with a `tabular` check.")
        if not self.delegated and any(each.or_on is not None and each.principal is not None for each in self.checks):
            raise BadRequestException(
                "A `tabular` check with the `identity` of another principal needs `delegated: true`, which needs "
                "the privilege `inspector` or `delegate`."
            )

    def demands(self) -> tuple[Demand, ...]:
        demands: dict[Demand, None] = {}
        for check in self.checks:
            hub = hub_of(check.on) if self.delegated and check.principal is not None else None
            if hub is not None:
                demands[Demand(Can.INSPECT, hub, required=False)] = None
                continue
            if check.principal is not None:
                demands[Demand(Can.READ_ASSIGNMENTS, check.on, required=False)] = None
            visible_by = VISIBLE_BY.get(check.on.type)
            if visible_by is not None and (check.principal is not None or self.error_on_not_found):
                demands[Demand(visible_by, check.on, required=False)] = None
        return tuple(demands)

    def further_refs(self) -> tuple[Ref, ...]:
        named = dict.fromkeys(on for check in self.checks for on in check.may_mean)
        return tuple(named | dict.fromkeys(namespace for _, namespace in self.lists()))

    def questions(self) -> int:
        return max(1, len(self.checks) + len(self.demands()))

    def lists(self) -> dict[tuple[Principal | None, NamespaceRef], list[int]]:
        """Return the indexes of visibility checks by (principal, namespace). The checks of one pair form a list."""
        found: dict[tuple[Principal | None, NamespaceRef], list[int]] = {}
        for index, check in enumerate(self.checks):
            if check.relation is Can.INCLUDE_IN_LIST and isinstance(check.on, TabularRef) and check.on.named:
                namespace = NamespaceRef(check.on.warehouse_id, check.on.identifier.namespace)
                found.setdefault((check.principal, namespace), []).append(index)
        return {of: indexes for of, indexes in found.items() if len(indexes) >= _A_LIST}

    def facts(self) -> Facts:
        return {"checks": len(self.checks), "delegated": self.delegated}

    def audit_details(self) -> Mapping[str, str]:
        return asked_about(self.checks)


class _AboutPrincipal(Protocol):
    """A question about a principal, or about the caller if it is None."""

    @property
    def principal(self) -> Principal | None: ...


def asked_about(checks: Sequence[_AboutPrincipal]) -> Mapping[str, str]:
    """Return the other principals of the checks as a JSON list.

    A separator would not do, because ids may contain any character.
    """
    others = {f"{each.principal.type}:{each.principal.id}" for each in checks if each.principal is not None}
    return {"asked_about": msgspec.json.encode(sorted(others)).decode()} if others else {}


def hub_of(ref: Ref) -> WarehouseRef | ProjectRef | None:
    """Return the warehouse or project on which can_inspect allows checks of rights on `ref`; None if there is none."""
    if isinstance(ref, ProjectRef):
        return ref
    warehouse: UUID | None = getattr(ref, "warehouse_id", None)
    return None if warehouse is None else WarehouseRef(warehouse)


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
