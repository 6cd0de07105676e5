# SPDX-License-Identifier: Apache-2.0
"""Determine the data policies (row filters, masks) that restrict a caller, and check that an engine can enforce them.

PostgreSQL has the policies and the values that they compare, and OpenFGA decides which policies apply to the caller. If
a result is missing, the caller is restricted: nothing in this module turns a failure into a yes. Warehouses without
data policies cause no calls here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.actor import Actor, ActorKind
from gateway.access.decisions.engine_trust import trusted_tables
from gateway.access.door.engines import Engines
from gateway.access.door.questions import pin_of
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import (
    Excerpt,
    Governed,
    NewTable,
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
)
from gateway.access.operation import Operation
from gateway.access.ports import Question, Resolver
from gateway.access.restrictions.bound_restrictions import BoundRestrictions, PolicyStanding, PolicyVerdict
from gateway.access.restrictions.column_restrictions import Judged
from gateway.obligations.binding import PolicyProblem
from gateway.obligations.data_policies import (
    AppliesTo,
    AttributeSource,
    BoundPolicy,
    PrincipalAttributes,
    attributes_of,
)
from gateway.obligations.guardrail_policies import policies_of, without_policies

_EXCERPTS_AT_A_TIME: Final = 16
_GENERIC: Final = (
    "no engine can apply data policies to a generic table, so the data is refused to every principal that one "
    "restricts. The owner of the policy can grant `exempt`, and tables in a namespace without policies are not refused"
)


class DataRestrictions:
    """Resolves the data policies of tables for one caller.

    `alert` is called with the policies that could not be applied as written, and with those that test other claims than
    `kept_claims`. It must not wait. With `kept_claims` None, claims are not checked.
    """

    def __init__(
        self,
        resolver: Resolver,
        engines: Engines,
        alert: Callable[[Sequence[PolicyProblem]], None] | None = None,
        kept_claims: frozenset[str] | None = None,
    ) -> None:
        self._resolver = resolver
        self._engines = engines
        self._alert = alert
        self._bound = BoundRestrictions()
        self._kept_claims = kept_claims

    async def settle(
        self,
        actor: Actor,
        operations: Sequence[Operation],
        judged: Sequence[Judged],
        resolution: Resolution,
        own_roles: Sequence[str],
    ) -> list[Judged]:
        """Return the results, with the effect of data policies on each table that they can apply to.

        Data policies apply only to operations that concern data (`Operation.enforced_at`). `own_roles` are the roles of
        the caller itself, without those that its user has beside an assumed role. Raises DecisionEngineUnavailable.
        """
        if actor.kind is ActorKind.SYSTEM:
            return list(judged)
        # Rows of operations with equal guardrail policies are read together. Most operations have no such policies, so
        # they form one group.
        groups: dict[tuple[BoundPolicy, ...], dict[UUID, Governed]] = {}
        stated: list[tuple[BoundPolicy, ...]] = []
        for operation, one in zip(operations, judged, strict=True):
            own, rows = _concerned(one, operation.new_table()) if operation.enforced_at() is not None else ((), {})
            stated.append(own)
            if rows:
                groups.setdefault(own, {}).update(rows)
        found = {
            own: await self.verdicts(actor, list(rows.values()), resolution, own_roles, guardrails=own)
            for own, rows in groups.items()
        }
        settled: list[Judged] = []
        for operation, one, own in zip(operations, judged, stated, strict=True):
            applied = operation.enforced_at() is not None and own in found
            settled.append(_with_verdicts(one, own, found[own]) if applied else one)
        return settled

    async def verdicts(
        self,
        actor: Actor,
        rows: Sequence[Governed],
        resolution: Resolution,
        own_roles: Sequence[str],
        *,
        other: Resolution | None = None,
        guardrails: Sequence[BoundPolicy] = (),
    ) -> dict[UUID, PolicyVerdict]:
        """Return the effect of data policies on each row, by the row's id. Rows to which no policy is bound are left
        out.

        If `actor` is another principal than the caller of `resolution`, `other` is a later resolution about it, and its
        roles are `own_roles`. `guardrails` apply to the actor on each table of `rows`. Raises
        DecisionEngineUnavailable.
        """
        inputs = await self._resolver.policy_inputs(rows)
        acting = actor if other else resolution.acting(actor)
        bound = {row.id: known.bound for row in rows if (known := inputs.get(row.id)) is not None}
        exempt, applying = await self._applying(acting, bound, other or resolution, is_caller=other is None)
        unproven = _unproven(acting, bound, rows, resolution) if other is None else {}
        applying |= unproven if acting.asked_by is None else {}
        concerned = [
            row
            for row in rows
            if isinstance(row, ResolvedTable)
            and row.id in bound
            and (guardrails or row.id in unproven or applying[row.id])
        ]
        trusted = await trusted_tables(self._engines, actor, concerned, resolution)
        # For a table that is read through a view, an engine that may read the table without the view is trusted to name
        # the right view and owner.
        applying |= {id: some for id, some in unproven.items() if id not in trusted}
        if guardrails:
            applying |= {row.id: (*applying[row.id], *guardrails) for row in concerned}
        restricted = [row for row in rows if row.id not in bound or applying[row.id]]
        tables = [row for row in restricted if isinstance(row, ResolvedTable) and row.id in bound]
        limiting = {id: frozenset(each.policy.id for each in some) for id, some in applying.items()}
        found = {
            row.id: PolicyVerdict(
                str(row.id),
                exempt=exempt.intersection(each.policy.id for each in bound.get(row.id, ()))
                - limiting.get(row.id, exempt),
                applying=limiting.get(row.id),
            )
            for row in rows
            if row.id not in bound or bound[row.id] or applying[row.id]
        }
        # No engine can enforce a policy that cannot be read, or that concerns an object without known columns.
        found |= {row.id: _inexpressible(found[row.id], row, applying.get(row.id, ())) for row in restricted}
        attributes = await self._attributes(acting, tables, applying, own_roles)
        attributes = msgspec.structs.replace(
            attributes,
            # Only the caller has a token in this request. The claims of all other principals are unknown.
            claims=acting.policy_claims if other is None else (),
            complete=not _groups_unknown(acting, is_caller=other is None),
        )
        async for id, excerpt in self._excerpts([row.id for row in tables]):
            policies = inputs[id]
            if policies is not None:
                verdict = replace(found[id], trusted=id in trusted)
                found[id] = await self._bound.bind(verdict, applying[id], policies, attributes, excerpt)
        problems = [problem for verdict in found.values() for problem in verdict.problems]
        if self._kept_claims is not None:
            problems += [each for row in tables for each in _unkept_claims(row.id, applying[row.id], self._kept_claims)]
        if problems and self._alert is not None:
            self._alert(problems)
        return found

    async def standing(self, actor: Actor, policies: Mapping[str, AppliesTo], resolution: Resolution) -> PolicyStanding:
        """Return which of these data policies restrict the caller of `resolution`, and which the caller manages.

        If an engine only asserted the caller, all of them restrict it. None restricts the system. Raises
        DecisionEngineUnavailable.
        """
        if actor.kind is ActorKind.SYSTEM:
            return PolicyStanding(frozenset(), frozenset(policies))
        acting = resolution.acting(actor)
        restricting = await self.restricting(acting, policies, resolution, is_caller=True)
        questions = [Question(Can.BIND, _key(id)) for id in policies]
        answers = await self._engines.check(acting, questions, resolution.now, pin_of(resolution))
        managed = frozenset(id for id, yes in zip(policies, answers, strict=True) if yes)
        return PolicyStanding(restricting, managed)

    async def restricting(
        self, acting: Actor, policies: Mapping[str, AppliesTo], resolution: Resolution, *, is_caller: bool
    ) -> frozenset[str]:
        """Return which of these data policies restrict the actor that `resolution` is about.

        If an engine only asserted the actor, all of them do. Raises DecisionEngineUnavailable.
        """
        if acting.asked_by is not None or not acting.subject_proven:
            return frozenset(policies)
        _, applying = await self._restricting(acting, policies, resolution, is_caller=is_caller)
        return applying

    async def _applying(
        self, acting: Actor, bound: Mapping[UUID, Sequence[BoundPolicy]], resolution: Resolution, *, is_caller: bool
    ) -> tuple[frozenset[str], dict[UUID, tuple[BoundPolicy, ...]]]:
        """Return (ids of the policies that the caller is exempt from, the policies that apply to the caller by the
        row's id).
        """
        policies = {each.policy.id: each.policy.applies_to for some in bound.values() for each in some}
        exempt, applying = await self._restricting(acting, policies, resolution, is_caller=is_caller)
        return exempt, {id: tuple(each for each in some if each.policy.id in applying) for id, some in bound.items()}

    async def _restricting(
        self, acting: Actor, policies: Mapping[str, AppliesTo], resolution: Resolution, *, is_caller: bool
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return (ids of the policies that the caller is exempt from, ids of the policies that apply to the caller).

        While a caller acts as a role, only the role's exemptions count, but policies about the user still apply. A user
        whose groups are unknown counts as a subject of a policy if any group would make the user one.
        """
        subjects = [id for id, applies_to in policies.items() if applies_to is not AppliesTo.EVERYONE]
        questions = [Question(Can.SKIP_POLICY, _key(id)) for id in policies]
        questions += [Question(Can.BE_SUBJECT, _key(id)) for id in subjects]
        if not questions:
            return frozenset(), frozenset()
        answers = await self._engines.check(acting, questions, resolution.now, pin_of(resolution))
        yes = {question for question, answer in zip(questions, answers, strict=True) if answer}
        if acting.assumed_role is not None and acting.id and subjects:
            user = msgspec.structs.replace(acting, assumed_role=None, within=None)
            again = [Question(Can.BE_SUBJECT, _key(id)) for id in subjects]
            of_user = await self._engines.check(user, again, resolution.now, None)
            yes |= {question for question, answer in zip(again, of_user, strict=True) if answer}
        exempt = frozenset(id for id in policies if Question(Can.SKIP_POLICY, _key(id)) in yes)
        unsure = [id for id in subjects if id not in exempt and Question(Can.BE_SUBJECT, _key(id)) not in yes]
        if unsure and _groups_unknown(acting, is_caller=is_caller):
            by_group = await self._resolver.subjects_by_group(unsure, acting.provider)
            yes |= {Question(Can.BE_SUBJECT, _key(id)) for id in by_group}
        everyone = policies.keys() - set(subjects)
        return exempt, frozenset(
            id for id in policies if id not in exempt and (id in everyone or Question(Can.BE_SUBJECT, _key(id)) in yes)
        )

    async def _attributes(
        self,
        acting: Actor,
        tables: Sequence[ResolvedTable],
        applying: Mapping[UUID, Sequence[BoundPolicy]],
        own_roles: Sequence[str],
    ) -> PrincipalAttributes:
        """Return the attributes of the caller that the policies of these tables test. All tables are of one project.

        A caller that acts as a role has only the values of that role.
        """
        definitions = [each.policy.definition for row in tables for each in applying[row.id]]
        names = sorted(frozenset().union(*(attributes_of(each, AttributeSource.MAPPING) for each in definitions)))
        by_group = () if acting.assumed_role is not None else acting.group_roles
        roles = tuple(sorted({*own_roles, *by_group}))
        user = "" if acting.assumed_role is not None else acting.id
        project_id = tables[0].warehouse.project_id if tables else ""
        mappings = await self._resolver.mapped_values(project_id, names, user, roles) if names else ()
        return PrincipalAttributes(principal=acting.id, roles=roles, mappings=tuple(mappings))

    async def _excerpts(self, ids: Sequence[UUID]) -> AsyncIterator[tuple[UUID, Excerpt]]:
        for first in range(0, len(ids), _EXCERPTS_AT_A_TIME):
            for id, excerpt in (await self._resolver.excerpts(ids[first : first + _EXCERPTS_AT_A_TIME])).items():
                yield id, excerpt


def _concerned(judged: Judged, new_table: str | None) -> tuple[tuple[BoundPolicy, ...], dict[UUID, Governed]]:
    """Return (the policies of guardrails, the rows that data policies or guardrails may restrict) for one operation.

    `new_table` is the name of the table that the operation creates in its namespace. Guardrails name columns without a
    table, so their policies are returned only if the operation concerns one table.
    """
    answers, policy, _ = judged
    if not policy.allow:
        return (), {}
    seen = [answer.row for answer in answers if answer.visible]
    tables: dict[UUID, Governed] = {row.id: row for row in seen if isinstance(row, ResolvedTable)}
    is_single = len(tables) == 1 and not any(isinstance(row, ResolvedView) for row in seen)
    own = policies_of(policy.obligations) if is_single else ()
    rows: dict[UUID, Governed] = {row.id: row for row in seen if isinstance(row, Governed) and is_governed(row)}
    if new_table is not None:
        rows = {
            id: NewTable(namespace=row, name=new_table) if isinstance(row, ResolvedNamespace) else row
            for id, row in rows.items()
        }
    return own, rows | tables if own else rows


def _with_verdicts(judged: Judged, own: Sequence[BoundPolicy], found: Mapping[UUID, PolicyVerdict]) -> Judged:
    """Return the results with the verdicts.

    Verdicts replace the obligations of guardrails that could be bound. Obligations that no engine could enforce stay,
    so that they refuse the operation.
    """
    answers, policy, undelegated = judged
    answers = [
        replace(answer, policies=found.get(row.id)) if isinstance(row := answer.row, Governed) else answer
        for answer in answers
    ]
    verdicts = [answer.policies for answer in answers if isinstance(answer.row, ResolvedTable)]
    if own and all(each is not None and not each.inexpressible for each in verdicts):
        policy = msgspec.structs.replace(policy, obligations=without_policies(policy.obligations))
    return answers, policy, undelegated


def is_governed(row: Governed) -> bool:
    """Return True if data policies may apply to tables in the row's warehouse."""
    return row.warehouse.data_policy_revision is not None


def _inexpressible(verdict: PolicyVerdict, row: Governed, applying: Sequence[BoundPolicy]) -> PolicyVerdict:
    """Return the verdict with the mark that no engine can enforce the restrictions.

    For a generic table it has the reason.
    """
    if not isinstance(row, ResolvedGenericTable):
        return replace(verdict, inexpressible=True)
    ids = sorted({each.policy.id for each in applying})
    problems = tuple(PolicyProblem(id, verdict.object_id, f"generic-table: {_GENERIC}") for id in ids)
    return replace(verdict, inexpressible=True, reason=_GENERIC, problems=problems)


def _unproven(
    acting: Actor, bound: Mapping[UUID, Sequence[BoundPolicy]], rows: Sequence[Governed], resolution: Resolution
) -> dict[UUID, tuple[BoundPolicy, ...]]:
    """Return, by row, all bound policies if the caller is only asserted by its engine, or is the owner of a view.

    Another asserted user could be exempt, or no subject of the policies. The canaries of open probes are left out: they
    show what the engine does for each of its users.
    """
    if acting.subject_proven and acting.asked_by is None:
        return {}
    probes, now = resolution.probes, resolution.now
    canaries = {row.id for row in rows if isinstance(row, ResolvedTable) and probes.is_canary(row, now)}
    return {id: tuple(some) for id, some in bound.items() if id not in canaries}


def _groups_unknown(acting: Actor, *, is_caller: bool) -> bool:
    """Return True if the principal may be in groups that the gateway does not know.

    It is False for a role without a user.
    """
    return bool(acting.id) and (not is_caller or acting.groups_unknown)


def _unkept_claims(table_id: UUID, applying: Iterable[BoundPolicy], kept: frozenset[str]) -> Iterator[PolicyProblem]:
    """Yield a problem for each claim that these policies test and that no identity provider's setting lists."""
    for each in applying:
        for path in sorted(attributes_of(each.policy.definition, AttributeSource.CLAIM) - kept):
            yield PolicyProblem(
                each.policy.id,
                str(table_id),
                f"no identity provider keeps the claim {path!r}, so tests with it are false: name it in the setting "
                "POLICY_CLAIMS of a provider, or use a mapping table",
            )


def _key(policy_id: str) -> ObjectKey:
    return ObjectKey(ObjectType.DATA_POLICY, policy_id)
