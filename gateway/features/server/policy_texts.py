# SPDX-License-Identifier: Apache-2.0
"""Use cases that show the relationship model and the guardrails in use to policy authors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gateway.access.door.permit import Permit
from gateway.access.management_errors import PoliciesInvalid
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.policies import (
    GetGuardrails,
    GetPolicyModel,
    Guardrails,
    ModelRelation,
    ModelType,
    PolicyModel,
    PolicyModule,
    RelationKind,
)
from gateway.db.warehouses.models import active_model
from gateway.features.kit import Kit, UseCases
from gateway.fga.model_text import definition_of
from gateway.opa.bundle import BundleName, policy_bundle
from gateway.opa.policy_files import package_of, policy_files
from gateway.opa.syntax import InvalidPolicies

_GUARDRAILS = "gateway.guardrails"


class PolicyTexts(UseCases):
    """The relationship model, and the Rego modules of the gateway's policies."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._source = kit.policy_source[0]

    async def model(self, permit: Permit[GetPolicyModel]) -> PolicyModel:
        """Return the relationship model that checks use. Raises DecisionEngineUnavailable."""
        id, model = await self._answer_engines.checks.definition()
        async with self._database.read() as connection:
            active = await active_model(connection)
        recorded = active if active is not None and active.model_id == id else None
        return PolicyModel(
            id=id,
            types=[_type(each) for each in model["type_definitions"]],
            model=model,
            version=None if recorded is None else recorded.version,
            content_hash=None if recorded is None else recorded.content_hash,
        )

    async def guardrails(self, permit: Permit[GetGuardrails]) -> Guardrails:
        """Return the Rego modules of the gateway's policies. Raises PoliciesInvalid."""
        try:
            return await asyncio.to_thread(self._read)
        except (InvalidPolicies, OSError):
            raise PoliciesInvalid(
                "The policies in the gateway's directory are invalid. The log of the gateway names the file when OPA "
                "requests the bundle. OPA keeps the policies that it has."
            ) from None

    def _read(self) -> Guardrails:
        files = policy_files(self._source)
        modules = [
            PolicyModule(
                path=path, package=package, guardrail=f"{package}.".startswith(f"{_GUARDRAILS}."), text=content.decode()
            )
            for path, content in sorted(files.items())
            if path.endswith(".rego") and not path.endswith("_test.rego") and not path.startswith("trino/")
            for package in (package_of(path, content),)
        ]
        return Guardrails(revision=policy_bundle(files, BundleName.GATEWAY).revision, modules=modules)


def _type(definition: Mapping[str, Any]) -> ModelType:
    relations = definition.get("relations") or {}
    about = (definition.get("metadata") or {}).get("relations") or {}
    type = str(definition["type"])
    subjects = {name: (about.get(name) or {}).get("directly_related_user_types") or () for name in relations}
    return ModelType(
        type=type,
        relations=[
            _relation(type, name, definition_of(rewrite, subjects[name])) for name, rewrite in sorted(relations.items())
        ],
    )


def _relation(type: str, name: str, definition: str) -> ModelRelation:
    privilege = _privilege(type, name)
    kind: RelationKind = "action" if name.startswith("can_") else "other"
    if privilege is None:
        return ModelRelation(name=name, kind=kind, definition=definition)
    return ModelRelation(
        name=name,
        kind="privilege",
        definition=definition,
        title=privilege.display_name,
        description=privilege.description,
    )


def _privilege(type: str, name: str) -> Privilege | None:
    """Return the privilege that a relation is; None for other relations and for types of an operator's own model."""
    try:
        privileges = GRANTABLE.get(ObjectType(type), ())
    except ValueError:
        return None
    return next((each for each in privileges if each.value == name), None)
