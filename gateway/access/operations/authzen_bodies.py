# SPDX-License-Identifier: Apache-2.0
"""Bodies of the AuthZEN Authorization API 1.0. Names are in snake case, and unknown members are ignored.

Members that the specification requires are optional here, because an evaluation in a batch may lack them: its answer is
then no. `gateway.features.authzen.requests` refuses them elsewhere.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Semantic = Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"]


class AuthZenBody(msgspec.Struct, frozen=True, kw_only=True):
    """A body of this API, or a part of one."""


class Entity(AuthZenBody, frozen=True):
    """A subject or a resource. A guardrail may read its `properties`."""

    type: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    properties: dict[str, Any] = {}


class SearchedEntity(AuthZenBody, frozen=True):
    """A subject or a resource that is searched: only its type is known."""

    type: str | UnsetType = UNSET
    properties: dict[str, Any] = {}


class EvaluatedAction(AuthZenBody, frozen=True):
    """An action. A guardrail may read its `properties`."""

    name: str | UnsetType = UNSET
    properties: dict[str, Any] = {}


class EvaluationRequest(AuthZenBody, frozen=True):
    """Request of `POST /access/v1/evaluation`, or one member of a batch."""

    subject: Entity | UnsetType = UNSET
    action: EvaluatedAction | UnsetType = UNSET
    resource: Entity | UnsetType = UNSET
    context: dict[str, Any] | UnsetType = UNSET


class EvaluationsOptions(AuthZenBody, frozen=True):
    """Options of a batch. The two semantics other than `execute_all` end the answer at the first no or yes."""

    evaluations_semantic: Semantic = "execute_all"


class EvaluationsRequest(EvaluationRequest, frozen=True):
    """Request of `POST /access/v1/evaluations`. The other members are defaults of each evaluation.

    Without `evaluations`, the request is a single evaluation.
    """

    evaluations: tuple[EvaluationRequest, ...] = ()
    options: EvaluationsOptions = EvaluationsOptions()


class EvaluationError(AuthZenBody, frozen=True):
    """The reason why a member of a batch was not evaluated."""

    status: int
    message: str


class EvaluationContext(AuthZenBody, frozen=True):
    """The context of a decision."""

    error: EvaluationError


class EvaluationAnswer(AuthZenBody, frozen=True):
    """Response of `POST /access/v1/evaluation`."""

    decision: bool
    context: EvaluationContext | UnsetType = UNSET


class EvaluationsAnswer(AuthZenBody, frozen=True):
    """Response of `POST /access/v1/evaluations`: `evaluations` in the order of the request, or a single `decision`."""

    evaluations: list[EvaluationAnswer] | UnsetType = UNSET
    decision: bool | UnsetType = UNSET


class SearchPage(AuthZenBody, frozen=True):
    """The page that a search request selects."""

    limit: int | UnsetType = UNSET
    token: str = ""


class SubjectSearchRequest(AuthZenBody, frozen=True):
    """Request of `POST /access/v1/search/subject`."""

    subject: SearchedEntity | UnsetType = UNSET
    action: EvaluatedAction | UnsetType = UNSET
    resource: Entity | UnsetType = UNSET
    context: dict[str, Any] = {}
    page: SearchPage = SearchPage()


class ResourceSearchRequest(AuthZenBody, frozen=True):
    """Request of `POST /access/v1/search/resource`."""

    subject: Entity | UnsetType = UNSET
    action: EvaluatedAction | UnsetType = UNSET
    resource: SearchedEntity | UnsetType = UNSET
    context: dict[str, Any] = {}
    page: SearchPage = SearchPage()


class ActionSearchRequest(AuthZenBody, frozen=True):
    """Request of `POST /access/v1/search/action`."""

    subject: Entity | UnsetType = UNSET
    resource: Entity | UnsetType = UNSET
    context: dict[str, Any] = {}
    page: SearchPage = SearchPage()


class FoundEntity(AuthZenBody, frozen=True):
    """A subject or a resource that a search found."""

    type: str
    id: str


class FoundAction(AuthZenBody, frozen=True):
    """An action that a search found."""

    name: str


class NextPage(AuthZenBody, frozen=True):
    """`next_token` is the token of the next page, empty on the last one."""

    next_token: str


class FoundEntitiesAnswer(AuthZenBody, frozen=True):
    """Response of a search for subjects or resources."""

    results: list[FoundEntity]
    page: NextPage


class FoundActionsAnswer(AuthZenBody, frozen=True):
    """Response of `POST /access/v1/search/action`."""

    results: list[FoundAction]
    page: NextPage


class AuthZenConfiguration(AuthZenBody, frozen=True):
    """Response of `GET /.well-known/authzen-configuration`."""

    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str
    search_subject_endpoint: str
    search_resource_endpoint: str
    search_action_endpoint: str
