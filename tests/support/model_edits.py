# SPDX-License-Identifier: Apache-2.0
"""Edited relationship models and the relations that they compute."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from gateway.access.door.list_visibility import Reaches
from gateway.fga.compiled import compiled_model
from gateway.fga.model_analysis import reaches_of


class Edited:
    """The shipped model, for modification."""

    def __init__(self) -> None:
        self.model: dict[str, Any] = copy.deepcopy(compiled_model())
        self._types = {each["type"]: each for each in self.model["type_definitions"]}

    def rule(self, type: str, relation: str, rewrite: Mapping[str, Any]) -> Edited:
        """Define the relation again, without new subject types."""
        self._types[type]["relations"][relation] = rewrite
        self._types[type]["metadata"]["relations"].setdefault(relation, {})
        return self

    def also(self, type: str, relation: str, rewrite: Mapping[str, Any]) -> Edited:
        """Add an alternative to the relation."""
        before = self._types[type]["relations"][relation]
        return self.rule(type, relation, {"union": {"child": [before, rewrite]}})

    def subject(self, type: str, relation: str, subject: Mapping[str, Any]) -> Edited:
        """Add a subject type to the relation."""
        about = self._types[type]["metadata"]["relations"].setdefault(relation, {})
        about.setdefault("directly_related_user_types", []).append(dict(subject))
        return self

    @property
    def reaches(self) -> Reaches:
        return reaches_of(self.model)


def computed(relation: str) -> dict[str, Any]:
    return {"computedUserset": {"relation": relation}}


def above(relation: str, edge: str = "parent") -> dict[str, Any]:
    return {"tupleToUserset": {"tupleset": {"relation": edge}, "computedUserset": {"relation": relation}}}
