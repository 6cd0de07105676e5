# SPDX-License-Identifier: Apache-2.0
"""Operations that show policy authors the relationship model and the guardrails in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gateway.access.bodies import Answer
from gateway.access.demand import Demand
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import ReadOperation


@dataclass(frozen=True)
class ReadingPolicies(ReadOperation, abstract=True):
    """Base class of operations that read policies. They demand the right that bundles of policies demand."""

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_POLICIES, ServerRef()),)


@dataclass(frozen=True)
class GetPolicyModel(ReadingPolicies):
    """Return the relationship model that checks use."""

    endpoint: ClassVar[str] = "GET /management/v1/policies/model"


@dataclass(frozen=True)
class GetGuardrails(ReadingPolicies):
    """Return the Rego modules of the gateway's policies, with the revision of their bundle."""

    endpoint: ClassVar[str] = "GET /management/v1/policies/guardrails"


RelationKind = Literal["privilege", "action", "other"]


class ModelRelation(Answer, frozen=True, omit_defaults=True):
    """A relation of a type, with its definition in OpenFGA's language.

    A `privilege` can be granted, with `title` and `description`; an `action` is what operations demand.
    """

    name: str
    kind: RelationKind
    definition: str
    title: str | None = None
    description: str | None = None


class ModelType(Answer, frozen=True):
    """An object type of the relationship model."""

    type: str
    relations: list[ModelRelation]


class PolicyModel(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /policies/model`. `id` is that of the model in OpenFGA, `model` its form in OpenFGA's API.

    `version` and `content-hash` are those with which the model was recorded.
    """

    id: str
    types: list[ModelType]
    model: dict[str, Any]
    version: str | None = None
    content_hash: str | None = None


class PolicyModule(Answer, frozen=True):
    """A Rego module. `guardrail` is true for a package below `gateway.guardrails`."""

    path: str
    package: str
    guardrail: bool
    text: str


class Guardrails(Answer, frozen=True):
    """Response of `GET /policies/guardrails`: the modules of the bundle `gateway` without tests, in order of their
    paths.

    `revision` is that of the bundle, which OPA has in its decision log after it loaded these modules.
    """

    revision: str
    modules: list[PolicyModule]
