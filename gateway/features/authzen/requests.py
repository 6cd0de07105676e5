# SPDX-License-Identifier: Apache-2.0
"""Convert AuthZEN bodies to operations. An invalid body raises an error with status 400. Pure.

What the mapping does not know, an unknown type, action or id, is no error: the answer is a no, or an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from gateway.access.actor import Actor
from gateway.access.authzen_mapping import AuthZenMapping
from gateway.access.decisions.policy import Asserted
from gateway.access.management_errors import TooManyChecks
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.operations.authzen import (
    MOST_RESULTS,
    AccessQuestion,
    PageRequest,
    SearchActions,
    SearchResources,
    SearchSubjects,
)
from gateway.access.operations.authzen_bodies import (
    ActionSearchRequest,
    Entity,
    EvaluatedAction,
    EvaluationAnswer,
    EvaluationContext,
    EvaluationError,
    EvaluationRequest,
    EvaluationsRequest,
    ResourceSearchRequest,
    SearchedEntity,
    SearchPage,
    Semantic,
    SubjectSearchRequest,
)
from gateway.access.operations.checks import MAX_CHECKS
from gateway.access.principals import other_principal
from gateway.features.grants.check_requests import MAX_PRINCIPALS
from gateway.iceberg.codec import canonical
from gateway.iceberg.errors import BadRequestException

MAX_ASSERTED: Final = 16_384
"""The greatest size in bytes of the properties and the context of one evaluation."""

MAX_ASSERTED_TOGETHER: Final = 262_144
"""The same for all evaluations of a batch. Policies receive each evaluation with its own."""

#: The relation of a search without results. It is never evaluated.
_NO_RELATION: Final = Can.GET_METADATA


@dataclass(frozen=True, slots=True)
class ParsedBatch:
    """The questions of a batch, and for each of its evaluations the index of its question or the reason for none."""

    asked: tuple[AccessQuestion, ...]
    places: tuple[int | EvaluationError | None, ...]

    def answers(self, decisions: Sequence[bool], semantic: Semantic) -> list[EvaluationAnswer]:
        """Return the answer of each evaluation. The answers end after the first no or yes if `semantic` says so."""
        last = {"deny_on_first_deny": False, "permit_on_first_permit": True}.get(semantic)
        answers: list[EvaluationAnswer] = []
        for place in self.places:
            if isinstance(place, EvaluationError):
                answers.append(EvaluationAnswer(decision=False, context=EvaluationContext(error=place)))
            else:
                answers.append(EvaluationAnswer(decision=place is not None and decisions[place]))
            if answers[-1].decision is last:
                break
        return answers


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of bodies by the mapping of the deployment, for one caller."""

    mapping: AuthZenMapping
    caller: Actor

    def question(self, request: EvaluationRequest) -> AccessQuestion | None:
        """Return the question of an evaluation; None if the mapping does not have a part of it.

        Raises BadRequestException if a part is missing.
        """
        subject, (action, of_action) = _entity("subject", request.subject), _action(request.action)
        resource = _entity("resource", request.resource)
        asserted = _asserted(
            subject.properties, of_action, resource.properties, {} if request.context is UNSET else request.context
        )
        found = self._on(resource, action)
        principal = self.mapping.principal(subject.type, subject.id)
        if found is None or principal is None:
            return None
        return AccessQuestion(*found, other_principal(principal, self.caller), asserted)

    def batch(self, request: EvaluationsRequest) -> ParsedBatch:
        """Return the questions of a batch. An evaluation that lacks a part has the reason in place of a question.

        Raises TooManyChecks for too many evaluations or principals, and BadRequestException for too much asserted data.
        """
        if len(request.evaluations) > MAX_CHECKS:
            raise TooManyChecks(
                f"The request contains {len(request.evaluations)} evaluations; at most {MAX_CHECKS} are allowed. Send "
                "them in several requests."
            )
        asked: list[AccessQuestion] = []
        places: list[int | EvaluationError | None] = []
        for each in request.evaluations:
            try:
                question = self.question(_with_defaults(each, request))
            except BadRequestException as wrong:
                places.append(EvaluationError(status=400, message=wrong.message))
                continue
            places.append(None if question is None else len(asked))
            asked += [] if question is None else [question]
        if len({each.principal for each in asked}) > MAX_PRINCIPALS:
            raise TooManyChecks(
                f"The evaluations of one request may name at most {MAX_PRINCIPALS} different subjects. Send them in "
                "several requests."
            )
        if sum(len(msgspec.json.encode(each.asserted)) for each in asked) > MAX_ASSERTED_TOGETHER:
            raise BadRequestException(
                f"The properties and contexts of all evaluations must have at most {MAX_ASSERTED_TOGETHER} bytes."
            )
        return ParsedBatch(tuple(asked), tuple(places))

    def subjects(self, request: SubjectSearchRequest) -> SearchSubjects:
        """Return the operation of a subject search. Raises BadRequestException if a part is missing."""
        type, properties = _searched("subject", request.subject)
        (action, of_action), resource = _action(request.action), _entity("resource", request.resource)
        asserted = _asserted(properties, of_action, resource.properties, request.context)
        of_type = self.mapping.subjects.get(type)
        found = None if of_type is None else self._on(resource, action)
        on, relation = found or (None, _NO_RELATION)
        return SearchSubjects(_page(request.page), asserted, on, relation, type, of_type)

    def resources(self, request: ResourceSearchRequest) -> SearchResources:
        """Return the operation of a resource search. Raises BadRequestException if a part is missing."""
        subject, (action, of_action) = _entity("subject", request.subject), _action(request.action)
        type, properties = _searched("resource", request.resource)
        asserted = _asserted(subject.properties, of_action, properties, request.context)
        mapped, principal = self.mapping.types.get(type), self.mapping.principal(subject.type, subject.id)
        page = _page(request.page)
        if mapped is None or action not in mapped.actions or principal is None:
            return SearchResources(page, asserted, type, None, _NO_RELATION)
        other = other_principal(principal, self.caller)
        return SearchResources(page, asserted, type, mapped.type, mapped.actions[action], other, mapped.within)

    def actions(self, request: ActionSearchRequest) -> SearchActions:
        """Return the operation of an action search. Raises BadRequestException if a part is missing."""
        subject, resource = _entity("subject", request.subject), _entity("resource", request.resource)
        asserted = _asserted(subject.properties, {}, resource.properties, request.context)
        mapped, principal = self.mapping.types.get(resource.type), self.mapping.principal(subject.type, subject.id)
        on = None if mapped is None or principal is None else mapped.reference(resource.id)
        actions = () if mapped is None else tuple(sorted(mapped.actions.items()))
        return SearchActions(_page(request.page), asserted, on, actions, other_principal(principal, self.caller))

    def _on(self, resource: _Whole, action: str) -> tuple[Ref, Can] | None:
        """Return (object, relation) of a resource and an action; None if the mapping does not have both."""
        mapped = self.mapping.types.get(resource.type)
        relation = None if mapped is None else mapped.actions.get(action)
        on = None if mapped is None else mapped.reference(resource.id)
        return None if on is None or relation is None else (on, relation)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A subject or resource with its type and id."""

    type: str
    id: str
    properties: Mapping[str, Any]


def _entity(name: str, given: Entity | UnsetType) -> _Whole:
    if given is UNSET:
        raise _missing(name)
    if given.type is UNSET:
        raise _missing(f"{name}.type")
    if given.id is UNSET:
        raise _missing(f"{name}.id")
    return _Whole(given.type, given.id, given.properties)


def _searched(name: str, given: SearchedEntity | UnsetType) -> tuple[str, Mapping[str, Any]]:
    """Return (type, properties) of the entity that is searched."""
    if given is UNSET:
        raise _missing(name)
    if given.type is UNSET:
        raise _missing(f"{name}.type")
    return given.type, given.properties


def _action(given: EvaluatedAction | UnsetType) -> tuple[str, Mapping[str, Any]]:
    """Return (name, properties) of an action."""
    if given is UNSET:
        raise _missing("action")
    if given.name is UNSET:
        raise _missing("action.name")
    return given.name, given.properties


def _missing(member: str) -> BadRequestException:
    return BadRequestException(f"The request lacks `{member}`.")


def _with_defaults(member: EvaluationRequest, request: EvaluationsRequest) -> EvaluationRequest:
    """Return the member with the defaults of its batch. A member that states a part replaces it whole."""
    return EvaluationRequest(
        subject=request.subject if member.subject is UNSET else member.subject,
        action=request.action if member.action is UNSET else member.action,
        resource=request.resource if member.resource is UNSET else member.resource,
        context=request.context if member.context is UNSET else member.context,
    )


def _asserted(
    subject: Mapping[str, Any], action: Mapping[str, Any], resource: Mapping[str, Any], context: Mapping[str, Any]
) -> Asserted:
    """Return what the asker states. Raises BadRequestException if it is too large or nested too deeply."""
    asserted = Asserted(subject=subject, action=action, resource=resource, context=context)
    try:
        text = msgspec.json.encode(asserted)
    except RecursionError:
        raise BadRequestException("Malformed request: the properties are nested too deeply.") from None
    if len(text) > MAX_ASSERTED:
        raise BadRequestException(
            f"The properties and the context of one evaluation must have at most {MAX_ASSERTED} bytes together."
        )
    canonical(text)
    return asserted


def _page(page: SearchPage) -> PageRequest:
    """Return the page of a search. A larger limit than `MOST_RESULTS` is reduced to it. Raises BadRequestException."""
    if page.limit is UNSET:
        return PageRequest(MOST_RESULTS, page.token)
    if page.limit < 1:
        raise BadRequestException("`page.limit` must be a positive whole number.")
    return PageRequest(min(page.limit, MOST_RESULTS), page.token)
