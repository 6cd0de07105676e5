# SPDX-License-Identifier: Apache-2.0
"""Edited relationship models and the relations that they compute."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from gateway.access.door.list_visibility import Reaches
from gateway.fga.compiled import compiled_model
from gateway.fga.model_analysis import reaches_of

SUBJECTS = "directly_related_user_types"
FLAGS = ("managed_access", "managed_access_inheritance")


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

    def relations(self, type: str) -> list[str]:
        """Return the names of the relations of a type."""
        return list(self._types[type].get("relations") or ())

    @property
    def reaches(self) -> Reaches:
        return reaches_of(self.model)


def computed(relation: str) -> dict[str, Any]:
    return {"computedUserset": {"relation": relation}}


def above(relation: str, edge: str = "parent") -> dict[str, Any]:
    return {"tupleToUserset": {"tupleset": {"relation": edge}, "computedUserset": {"relation": relation}}}


#: Types with a container of another type or of their own, and the edge that leads there.
_EDGE_OF = {"project": "server", "warehouse": "project", "role": "project", "tag": "project", "data_policy": "project"}
_ABOVE = {
    "column": ("table",),
    "table": ("namespace",),
    "view": ("namespace",),
    "namespace": ("namespace", "warehouse"),
    "warehouse": ("project",),
    "project": ("server",),
}


@st.composite
def edited_models(draw: st.DrawFn, *, edits: int = 2) -> Mapping[str, Any]:
    """Draw a variant of the shipped model that the rules of own models allow: computed relations are changed."""
    edited = Edited()
    for _ in range(draw(st.integers(1, edits))):
        type = draw(st.sampled_from(sorted(_ABOVE)))
        definitions = next(each for each in edited.model["type_definitions"] if each["type"] == type)
        takes = {name for name, about in definitions["metadata"]["relations"].items() if about.get(SUBJECTS)}
        derived = sorted(set(definitions["relations"]) - takes - {"managed_access_inheritance"})
        plain = sorted({*definitions["relations"]} - {*_EDGE_OF.values(), "parent", *FLAGS})
        arm = computed(draw(st.sampled_from(plain)))
        if draw(st.booleans()):
            parents = [set(edited.relations(each)) for each in _ABOVE[type]]
            common = sorted(set.intersection(*parents) - {*_EDGE_OF.values(), "parent", *FLAGS})
            arm = above(draw(st.sampled_from(common)), _EDGE_OF.get(type, "parent"))
        relation = draw(st.sampled_from(derived))
        before = definitions["relations"][relation]
        change = draw(st.sampled_from(["replace", "or", "and", "open"]))
        if change == "replace":
            edited.rule(type, relation, arm)
        elif change == "or":
            edited.also(type, relation, arm)
        elif change == "and":
            edited.rule(type, relation, {"intersection": {"child": [before, arm]}})
        elif "difference" in before:
            edited.rule(type, relation, before["difference"]["base"])
        else:
            edited.rule(type, relation, _without_exclusions(before))
    return edited.model


def _without_exclusions(rewrite: Mapping[str, Any]) -> Mapping[str, Any]:
    if "difference" in rewrite:
        base: Mapping[str, Any] = rewrite["difference"]["base"]
        return base
    return {
        kind: {"child": [_without_exclusions(each) for each in inner["child"]]} if kind in ("union",) else inner
        for kind, inner in rewrite.items()
    }
