# SPDX-License-Identifier: Apache-2.0
"""Answer permission checks, with the same decision that a real request would get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.decisions.definer_views import runs_as
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.door.permit import Permit
from gateway.access.management_errors import CannotInspectPermissions
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, Resolution, ResolvedTable, ResolvedView
from gateway.access.operations.checks import (
    BatchCheck,
    BatchCheckAnswer,
    Check,
    CheckAnswer,
    CheckPermission,
    CheckResult,
    hub_of,
)
from gateway.access.principals import actor_of
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.features.grants.partial_checks import (
    CONCERNS_DATA,
    REFUSED,
    RestrictedAnswer,
    first_checks,
    hidden,
    restricted_answer,
)
from gateway.features.kit import UseCases
from gateway.obligations.data_policies import BoundPolicy
from gateway.obligations.projections import RestrictionNotExpressible, columns_of


class Checks(UseCases):
    """Use cases of `POST /permissions/check` and `POST /action/batch-check`."""

    async def check(self, permit: Permit[CheckPermission]) -> CheckAnswer:
        """Return whether both OpenFGA and OPA would allow the action. For an object that does not exist the result is
        no.
        """
        check = permit.operation.check
        (allowed,) = await self._door.hypothetical_checks.evaluate(
            permit, [_hypothetical_check(check, permit.actor, permit.resolution)]
        )
        allowed = allowed and check.on not in await self._ownerless(permit, [check])
        names: list[str] | None = None
        if not allowed and check.relation is Can.READ_COLUMNS:
            (fields,) = await self._door.hypothetical_checks.readable_columns(
                permit, [(_about(check, permit.actor), check.on)]
            )
            row = permit.resolution.get(check.on)
            ids = [row.id] if fields and isinstance(row, ResolvedTable) else []
            async for _, excerpt in self._door.hypothetical_checks.excerpts(ids):
                names = _names(excerpt, fields)
                allowed = bool(names)
        named = {} if names is None else {0: names}
        restricted = await self._restricted(permit, {0: check} if allowed else {}, named, {})
        # The response of this endpoint cannot contain restrictions, so a check with restrictions is answered with
        # False.
        answer = restricted.get(0) or RestrictedAnswer(allowed)
        allowed = answer.allowed and answer.restrictions is None
        return CheckAnswer(allowed=allowed, restricted=answer.restricted or answer.restrictions is not None)

    async def batch(self, permit: Permit[BatchCheck]) -> BatchCheckAnswer:
        """Return one result per check, in the order of the request.

        A check about another principal requires `can_read_assignments` on the object. Without it, a visible object
        raises CannotInspectPermissions. An object that the caller cannot see is treated like one that does not exist:
        not allowed, or with `error-on-not-found` the same 404. The response does not reveal which of the two it is.

        In a delegated batch, a caller with `inspector` or `delegate` gets results about any principal, even on objects
        that the caller cannot see. For checks that these privileges do not cover the result is no. If they cover no
        check at all, the batch raises CannotInspectPermissions, because the delegation is misconfigured. It raises the
        same error if such a caller does not send `delegated`: all results would be no, whatever the principal may do.
        """
        operation = permit.operation
        if operation.delegated and not _inspects_somewhere(permit):
            raise CannotInspectPermissions(
                "A delegated check needs `inspector` or `delegate` on the project or warehouse of its object. A "
                "security administrator of the project can grant them."
            )
        answerable = [self._may_be_answered(permit, check) for check in operation.checks]
        if not operation.delegated:
            unanswered = [check for check, yes in zip(operation.checks, answerable, strict=True) if not yes]
            await self._require_not_inspected(permit, unanswered)
        seen_whole = await self._seen_whole(permit, answerable)
        hypothetical = [_hypothetical_check(check, permit.actor, permit.resolution) for check in operation.checks]
        left = [index for index, is_answerable in enumerate(answerable) if is_answerable and index not in seen_whole]
        unseen = await self._invisible(permit, hypothetical, left)
        left = [index for index in left if index not in unseen]
        answers, guardrails = await self._answers(permit, hypothetical, left)
        columns = await self._columns(permit, [index for index in left if not answers[index]])
        allowed = [
            index in seen_whole or answers.get(index, False) or index in columns
            for index in range(len(operation.checks))
        ]
        ownerless = await self._ownerless(permit, list(compress(operation.checks, allowed)))
        yes = {index: check for index, check in enumerate(operation.checks) if allowed[index]}
        restricted = await self._restricted(permit, yes, columns, guardrails)
        results = []
        for index, check in enumerate(operation.checks):
            answer = restricted.get(index) or RestrictedAnswer(allowed[index], columns.get(index))
            results.append(
                CheckResult(
                    allowed=answer.allowed and not (check.runs_as_owner and check.on in ownerless),
                    id=check.id,
                    columns=answer.columns,
                    restrictions=answer.restrictions,
                    restricted=answer.restricted,
                )
            )
        return BatchCheckAnswer(results=results)

    async def _answers(
        self, permit: Permit[BatchCheck], hypothetical: Sequence[HypotheticalCheck], left: Sequence[int]
    ) -> tuple[dict[int, bool], dict[int, tuple[BoundPolicy, ...]]]:
        """Evaluate the checks with the indexes `left`. Return, by index, (results, row filters and masks of guardrails
        that `_restricted` applies).

        If a guardrail has a row filter or mask, a check that does not concern data of a table is not allowed.
        """
        stated: dict[int, tuple[BoundPolicy, ...]] = {}
        some = [hypothetical[index] for index in left]
        answers = dict(zip(left, await self._door.hypothetical_checks.evaluate(permit, some, stated), strict=True))
        guardrails = {left[at]: policies for at, policies in stated.items() if policies}
        for index in guardrails:
            answers[index] = answers[index] and permit.operation.checks[index].relation in CONCERNS_DATA
        return answers, guardrails

    async def _restricted(
        self,
        permit: Permit[CheckPermission] | Permit[BatchCheck],
        allowed: Mapping[int, Check],
        columns: Mapping[int, list[str]],
        guardrails: Mapping[int, tuple[BoundPolicy, ...]],
    ) -> dict[int, RestrictedAnswer]:
        """Return {index: result} for allowed checks about data of tables with data policies.

        `columns` has the names of the readable columns, for checks that column grants allow. A check is not allowed if
        its result has expressions that the caller may not see.
        """
        about = {
            index: (_about(check, permit.actor), _meant(check, permit.resolution), guardrails.get(index, ()))
            for index, check in allowed.items()
            if check.relation in CONCERNS_DATA
        }
        verdicts = await self._door.hypothetical_checks.policy_verdicts(permit, list(about.values()))
        found = {index: verdict for index, verdict in zip(about, verdicts, strict=True) if verdict is not None}
        answers = {index: restricted_answer(allowed[index], each, columns.get(index)) for index, each in found.items()}
        expressed = {index: found[index] for index, answer in answers.items() if answer.restrictions is not None}
        return answers | dict.fromkeys(await self._secret(permit, allowed, expressed, guardrails), REFUSED)

    async def _secret(
        self,
        permit: Permit[CheckPermission] | Permit[BatchCheck],
        checks: Mapping[int, Check],
        expressed: Mapping[int, PolicyVerdict],
        guardrails: Mapping[int, tuple[BoundPolicy, ...]],
    ) -> set[int]:
        """Return the indexes of the verdicts whose filter and mask expressions the caller may not see.

        Literals of policies and mapped values of other principals can be confidential. Enforcers need them: the engine
        that acts for the caller, and an inspector that holds `enforcer` on the table (the bridge of a Trino that
        enforces restrictions). Any other caller must manage all policies. Expressions of guardrails are for
        enforcers only.
        """
        left = {index: each for index, each in expressed.items() if not each.trusted}
        inspected = {
            index: ObjectKey(ObjectType.TABLE, each.object_id)
            for index, each in left.items()
            if _is_inspected(permit.operation, checks[index])
        }
        enforces = await self._held(permit, Can.ENFORCE, inspected.values())
        secret = {index for index in left if inspected.get(index) not in enforces}
        policies = {
            index: [
                ObjectKey(ObjectType.DATA_POLICY, one.policy.id)
                for one in inputs.bound
                if one.policy.id not in left[index].exempt
            ]
            for index in secret.difference(guardrails)
            if (inputs := left[index].inputs) is not None
        }
        readable = await self._held(permit, Can.UPDATE, [key for some in policies.values() for key in some])
        return secret - {index for index, some in policies.items() if readable.issuperset(some)}

    async def _held(
        self, permit: Permit[CheckPermission] | Permit[BatchCheck], relation: Can, objects: Iterable[ObjectKey]
    ) -> frozenset[ObjectKey]:
        """Return those of `objects` on which the caller holds the relation."""
        keys = list(dict.fromkeys(objects))
        answers = await self._door.hypothetical_checks.related(permit, permit.actor, relation, keys)
        return frozenset(compress(keys, answers))

    async def _require_not_inspected(self, permit: Permit[BatchCheck], unanswered: Sequence[Check]) -> None:
        """Raise CannotInspectPermissions if the caller is an inspector for one of the checks, and would need
        `delegated` for a result.
        """
        hubs = {hub_of(check.on) for check in unanswered if check.principal is not None}
        keys = [_key_of_hub(hub) for hub in hubs if hub is not None]
        if await self._held(permit, Can.INSPECT, keys):
            raise CannotInspectPermissions(
                'This caller holds `inspector` or `delegate` and checks other principals. Send `"delegated": true` '
                "beside `checks`: without it the answer needs the right to read the assignments of each object."
            )

    async def _columns(self, permit: Permit[BatchCheck], refused: Sequence[int]) -> dict[int, list[str]]:
        """Return {index: names of readable columns} for refused checks of `can_read_columns`. Checks without readable
        columns are left out.

        Names are in the order of the schema. Tables whose columns cannot be determined are left out, and so are checks
        without a readable column.
        """
        checks = permit.operation.checks
        unanswered = [index for index in refused if checks[index].relation is Can.READ_COLUMNS]
        if not unanswered:
            return {}
        about = [(_about(checks[index], permit.actor), checks[index].on) for index in unanswered]
        readable = dict(
            zip(unanswered, await self._door.hypothetical_checks.readable_columns(permit, about), strict=True)
        )
        by_table: dict[UUID, list[int]] = {}
        for index, fields in readable.items():
            if fields and isinstance(row := permit.resolution.get(checks[index].on), ResolvedTable):
                by_table.setdefault(row.id, []).append(index)
        found: dict[int, list[str]] = {}
        async for id, excerpt in self._door.hypothetical_checks.excerpts(list(by_table)):
            named = {index: _names(excerpt, readable[index]) for index in by_table[id]}
            found |= {index: names for index, names in named.items() if names}
        return found

    async def _invisible(
        self, permit: Permit[BatchCheck], hypothetical: Sequence[HypotheticalCheck], left: Sequence[int]
    ) -> frozenset[int]:
        """Return the indexes of the caller's own checks on objects that the caller cannot see
        (`partial_checks.hidden`).
        """
        checks = permit.operation.checks
        own = {at: (hypothetical[at].relation, hypothetical[at].on) for at in left if checks[at].principal is None}
        first = first_checks(own)
        answers = await self._door.hypothetical_checks.holds(permit, first) if first else []
        return hidden(own, first, answers)

    async def _ownerless(
        self, permit: Permit[CheckPermission] | Permit[BatchCheck], allowed: Sequence[Check]
    ) -> set[Ref]:
        """Return the views in the allowed checks that need an owner and have none. Reads the properties of the
        views.
        """
        unanswered = {check.on for check in allowed if check.runs_as_owner}
        ids = {ref: row.id for ref in unanswered if isinstance(row := permit.resolution.get(ref), ResolvedView)}
        owned = {
            id async for id, excerpt in self._door.hypothetical_checks.excerpts(list(ids.values())) if runs_as(excerpt)
        }
        return {ref for ref in unanswered if ids.get(ref) not in owned}

    async def _seen_whole(self, permit: Permit[BatchCheck], answerable: Sequence[bool]) -> frozenset[int]:
        """Return the indexes of checks that need no query of their own, because one query about a list answers many of
        them.

        Their principal holds `can_list_everything` on the namespace, and the object exists. As for a real list, OPA
        receives one query about the list and none about its rows.
        """
        whole: list[list[int]] = []
        unanswered = []
        for (principal, namespace), indexes in permit.operation.lists().items():
            some = [index for index in indexes if answerable[index]]
            if some:
                whole.append([index for index in some if _is_visible(permit, permit.operation.checks[index])])
                about = permit.actor if principal is None else actor_of(principal)
                unanswered.append(HypotheticalCheck(about, Can.LIST_EVERYTHING, namespace))
        answers = await self._door.hypothetical_checks.evaluate(permit, unanswered) if unanswered else []
        return frozenset(index for there, yes in zip(whole, answers, strict=True) if yes for index in there)

    @staticmethod
    def _may_be_answered(permit: Permit[BatchCheck], check: Check) -> bool:
        """Return whether the caller may get a result of the check.

        Raises CannotInspectPermissions. If `error-on-not-found` is set, raises the 404 of an absent object.
        """
        if permit.operation.delegated and check.principal is not None:
            hub = hub_of(check.on)
            return hub is not None and permit.holds(Can.INSPECT, hub)
        strict = permit.operation.error_on_not_found
        if check.principal is None and not strict:
            # Absent objects are checked like existing ones, so that the response time does not reveal which of them
            # exist.
            return True
        there = _is_visible(permit, check)
        if there and check.principal is not None and permit.holds(Can.READ_ASSIGNMENTS, check.on):
            return True
        visible_by = VISIBLE_BY.get(check.on.type)
        needs_visibility = check.principal is not None or strict
        seen = there and (not needs_visibility or visible_by is None or permit.holds(visible_by, check.on))
        if not seen and strict:
            raise not_found(check.on)
        if seen and check.principal is not None:
            raise CannotInspectPermissions(
                f"The rights of {check.principal.id} on this {check.on.type} are visible only to principals that may "
                'read its assignments, and to inspectors in a batch with `"delegated": true`. Ask a principal that '
                "may grant privileges on it."
            )
        return seen


def _hypothetical_check(check: Check, caller: Actor, resolution: Resolution) -> HypotheticalCheck:
    """Build the hypothetical check on the object of `check`. If the name can mean several objects, use the first that
    exists.

    If none exists, use the first one. For `can_read_columns`, `can_read_data` is checked first: a principal that reads
    the whole table reads every column.
    """
    on = _meant(check, resolution)
    relation = Can.READ_DATA if check.relation is Can.READ_COLUMNS else check.relation
    return HypotheticalCheck(_about(check, caller), relation, on, check.facts)


def _is_inspected(operation: CheckPermission | BatchCheck, check: Check) -> bool:
    """Return True if an engine checks a right of one of its users. Results about other principals needed
    `can_inspect`.
    """
    return isinstance(operation, BatchCheck) and operation.delegated and check.principal is not None


def _key_of_hub(hub: WarehouseRef | ProjectRef) -> ObjectKey:
    if isinstance(hub, ProjectRef):
        return ObjectKey(ObjectType.PROJECT, hub.project_id)
    return ObjectKey(ObjectType.WAREHOUSE, str(hub.warehouse_id))


def _meant(check: Check, resolution: Resolution) -> Ref:
    return next((each for each in check.may_mean if resolution.get(each) is not None), check.on)


def _about(check: Check, caller: Actor) -> Actor:
    return caller if check.principal is None else actor_of(check.principal)


def _names(excerpt: Excerpt, fields: frozenset[int]) -> list[str]:
    """Return the names of the columns with the field ids `fields` in the current schema.

    A name is left out if an unreadable column has or had it in any schema.
    """
    try:
        return columns_of(excerpt.text).readable_by_name(fields)
    except RestrictionNotExpressible:
        return []


def _is_visible(permit: Permit[BatchCheck], check: Check) -> bool:
    return any(permit.resolution.get(each) is not None for each in check.may_mean)


def _inspects_somewhere(permit: Permit[BatchCheck]) -> bool:
    """Return True if no check is about another principal, or the caller holds `can_inspect` for at least one check."""
    hubs = {hub_of(check.on) for check in permit.operation.checks if check.principal is not None}
    return not hubs or any(hub is not None and permit.holds(Can.INSPECT, hub) for hub in hubs)
