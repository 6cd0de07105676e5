# SPDX-License-Identifier: Apache-2.0
"""Lists read only the rows of grants if the model permits it, as the shipped model does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from gateway.access.door.list_visibility import TRAVERSE, Reaches, all_by_grants
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import TRAVERSE_REASONS
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.tuples import READ_COLUMNS
from gateway.fga.client import FgaClient
from gateway.fga.compiled import compiled_model
from gateway.fga.model_analysis import FollowedReaches, inherited_of, reaches_of
from tests.support.model_edits import Edited, above, computed

T = ObjectType
LISTED = (T.PROJECT, T.WAREHOUSE, T.NAMESPACE, T.TABLE, T.VIEW, T.GENERIC_TABLE)
ANY_USER = {"type": "user", "wildcard": {}}


def test_in_the_shipped_model_only_recorded_grants_show_a_row() -> None:
    """Otherwise lists of that type must check every row."""
    reaches = reaches_of(compiled_model())
    assert set(reaches) == set(LISTED)
    for type, reach in reaches.items():
        derived = {READ_COLUMNS} if type is T.TABLE else set()
        assert reach.own <= {each.value for each in GRANTABLE[type]} | derived
        assert reach.below == (type in (T.PROJECT, T.WAREHOUSE, T.NAMESPACE))
    tabular = {"describe", "select", "modify", "approve_changes", "ownership"}
    assert reaches[T.TABLE].own == tabular | {READ_COLUMNS}
    assert reaches[T.VIEW].own == reaches[T.GENERIC_TABLE].own == tabular
    assert reaches[T.NAMESPACE].own == tabular | {"create"}
    assert reaches[T.WAREHOUSE].own == tabular | {"create", "manage_storage", "auditor"}
    assert not reaches[T.TABLE].above and not reaches[T.VIEW].above and not reaches[T.NAMESPACE].above
    assert reaches[T.PROJECT].above == {"admin", "operator", "auditor"}
    assert reaches[T.WAREHOUSE].above == {
        "project_admin", "security_admin", "data_admin", "describe", "select", "create", "modify", "approve_changes",
        "operator", "auditor",
    }  # fmt: skip


def test_relations_that_show_a_whole_namespace_are_known_or_reported_unknown() -> None:
    """A search reads objects below granted namespaces; an unknown relation would omit rows."""
    reaches = reaches_of(compiled_model())
    shown = frozenset({"describe", "select", "create", "modify", "approve_changes", "ownership"})
    assert reaches[T.NAMESPACE].inside == shown
    assert {reach.inside for type, reach in reaches.items() if type is not T.NAMESPACE} == {None}
    more = Edited().also("namespace", "can_list_everything", computed("manage_tags")).reaches
    assert more[T.NAMESPACE].inside == shown | {"manage_tags"}
    other = Edited().also("namespace", "can_list_everything", computed("managed_access")).reaches
    assert other[T.NAMESPACE].inside is None


def test_task_visibility_follows_target_grants_or_is_reported_unknown() -> None:
    """A list of tasks reads tasks of granted objects; an unknown relation would omit tasks."""
    leaves = (T.TABLE, T.VIEW, T.GENERIC_TABLE)
    shipped = reaches_of(compiled_model())
    assert {type for type, reach in shipped.items() if reach.tasks} == set(leaves)
    assert Edited().also("view", "can_get_tasks", computed("manage_tags")).reaches[T.VIEW].tasks
    for edited in (
        Edited().also("table", "can_get_tasks", above("traverse")),
        Edited().also("table", "can_get_tasks", above("manages_tags")),
        Edited().rule("table", "can_get_tasks", {"somethingNew": {}}),
    ):
        assert edited.reaches[T.TABLE].own, "lists of tables must still use grants"
        assert [edited.reaches[type].tasks for type in leaves] == [False, True, True]


@pytest.mark.parametrize(
    ("edited", "things", "tasks"),
    [
        (Edited(), True, True),
        (Edited().also("table", "can_get_tasks", above("traverse")), True, False),
        (Edited().also("generic_table", "can_include_in_list", above("traverse")), False, False),
        (Edited().also("namespace", "can_list_everything", computed("managed_access")), False, False),
        (Edited().subject("namespace", "traverse", {"type": "role", "wildcard": {}}), False, False),
    ],
)
async def test_a_warehouse_list_uses_grants_only_if_every_relation_is_known(
    edited: Edited, things: bool, tasks: bool
) -> None:
    async def in_use() -> Reaches:
        return edited.reaches

    assert await all_by_grants(in_use) is things
    assert await all_by_grants(in_use, tasks=True) is tasks


def test_every_privilege_that_shows_a_leaf_shows_its_ancestors() -> None:
    """Otherwise a list of namespaces could omit one with a visible table."""
    reaches = reaches_of(compiled_model())
    for type in (T.WAREHOUSE, T.NAMESPACE, T.TABLE, T.VIEW):
        # Column grants show the ancestors of the table.
        assert reaches[type].own - {READ_COLUMNS} <= {each.value for each in TRAVERSE_REASONS}


def test_each_certain_relation_alone_shows_the_row() -> None:
    for reach in reaches_of(compiled_model()).values():
        assert reach.certain == reach.own | ({TRAVERSE} if reach.below else set())
    only_both = {"intersection": {"child": [computed("describe"), computed("modify")]}}
    [reach] = [Edited().rule("table", "can_include_in_list", only_both).reaches[T.TABLE]]
    assert reach.own and not reach.certain


@pytest.mark.parametrize(
    ("edited", "lost"),
    [
        (Edited().subject("table", "describe", ANY_USER), {T.TABLE}),
        (Edited().subject("view", "select", {"type": "table", "relation": "describes"}), {T.VIEW}),
        (Edited().subject("namespace", "traverse", {"type": "role", "wildcard": {}}), {T.NAMESPACE}),
        # Visibility follows from a relation of the parent that does not see everything.
        (Edited().also("table", "can_include_in_list", above("traverse")), {T.TABLE}),
        (Edited().also("table", "can_include_in_list", above("manages_tags")), {T.TABLE}),
        # Describe no longer implies full visibility, so its holders are not known in advance.
        (
            Edited().rule("namespace", "can_list_everything", computed("modifies")),
            {T.TABLE, T.VIEW, T.GENERIC_TABLE, T.NAMESPACE},
        ),
        (Edited().also("warehouse", "can_include_in_list", computed("managed_access")), {T.WAREHOUSE}),
        (Edited().also("project", "describes", computed("server")), {T.PROJECT, T.WAREHOUSE}),
        (Edited().rule("table", "can_include_in_list", {"somethingNew": {}}), {T.TABLE}),
        # The namespace of a table is no longer known from its row.
        (Edited().also("table", "parent", computed("ownership")), {T.TABLE}),
        # Role membership is no longer recorded.
        (Edited().also("role", "assignee", above("describes", "project")), set(LISTED)),
        (Edited().subject("role", "assignee", ANY_USER), set(LISTED)),
    ],
)
def test_a_model_with_other_visibility_relations_disables_grant_based_lists(
    edited: Edited, lost: set[ObjectType]
) -> None:
    assert set(LISTED) - set(edited.reaches) == lost


def test_an_exclusion_only_narrows_a_relation() -> None:
    less = {"difference": {"base": computed("describes"), "subtract": computed("manage_tags")}}
    assert Edited().rule("table", "can_include_in_list", less).reaches[T.TABLE].own == {
        "describe", "select", "modify", "approve_changes", "ownership"
    }  # fmt: skip


def test_an_additional_visibility_privilege_is_included() -> None:
    reaches = Edited().also("table", "can_include_in_list", computed("manage_tags")).reaches
    assert "manage_tags" in reaches[T.TABLE].own & reaches[T.TABLE].certain


def test_the_inherited_relation_is_read_from_the_parent_rewrite() -> None:
    model = compiled_model()
    assert inherited_of(model, T.TABLE, "can_get_metadata", T.NAMESPACE) == "describes"
    assert inherited_of(model, T.TABLE, "can_read_data", T.NAMESPACE) == "selects"
    assert inherited_of(model, T.TABLE, "can_drop", T.NAMESPACE) == "modifies"
    assert inherited_of(model, T.VIEW, "can_get_metadata", T.NAMESPACE) == "describes"
    assert inherited_of(model, T.TABLE, "can_include_in_list", T.NAMESPACE) == "describes", "not the rarer `audits`"
    assert inherited_of(model, T.NAMESPACE, "can_get_metadata", T.WAREHOUSE) == "describes"
    assert inherited_of(model, T.TABLE, "can_get_metadata", T.WAREHOUSE) is None, "a table has no edge to a warehouse"
    assert inherited_of(model, T.TABLE, "no_such", T.NAMESPACE) is None
    assert inherited_of(model, T.WAREHOUSE, "can_use", T.PROJECT) is None, "the edge to the project has another name"


@pytest.mark.parametrize(
    "rewrite",
    [
        {"difference": {"base": above("describes"), "subtract": computed("managed_access")}},
        {"intersection": {"child": [above("describes"), computed("select")]}},
        above("describes", "elsewhere"),
        above("can_nothing"),
    ],
)
def test_an_insufficient_parent_rewrite_gives_no_inherited_relation(rewrite: dict[str, Any]) -> None:
    edited = Edited().rule("table", "describes", {"union": {"child": [{"this": {}}, rewrite]}})
    assert inherited_of(edited.model, T.TABLE, "can_get_metadata", T.NAMESPACE) is None


@pytest.mark.parametrize("subject", [{"type": "namespace", "condition": "unexpired"}, {"type": "user"}])
def test_a_conditional_parent_edge_gives_no_inherited_relation(subject: dict[str, Any]) -> None:
    edited = Edited()
    edited._types["table"]["metadata"]["relations"]["parent"]["directly_related_user_types"] = [subject]
    assert inherited_of(edited.model, T.TABLE, "can_get_metadata", T.NAMESPACE) is None


class Serving:
    """A client of a server with one model."""

    model_id = "m"

    def __init__(self, model: Mapping[str, Any]) -> None:
        self._model = model

    async def get(self, path: str, kind: Any) -> Any:
        assert path == "/authorization-models/m"
        return kind(authorization_model=self._model)


def follow(edited: Edited) -> FollowedReaches:
    return FollowedReaches(cast(FgaClient, Serving(edited.model)))


async def test_select_on_a_column_suffices_only_to_read_it() -> None:
    reaches = follow(Edited())
    assert await reaches.enough("m", Can.READ_DATA, T.COLUMN, "select")
    assert not await reaches.enough("m", Can.READ_DATA, T.COLUMN, "parent")
    assert not await reaches.enough("m", Can.READ_DATA, T.TABLE, "select"), (
        "select on a table does not suffice for data in this model"
    )
    assert not await reaches.enough("m", Can.GET_METADATA, T.COLUMN, "select")
    assert not await reaches.enough("other", Can.READ_DATA, T.COLUMN, "select"), (
        "the result of another model must be ignored"
    )


async def test_select_on_a_column_is_insufficient_in_a_stricter_model() -> None:
    select = {"computedUserset": {"relation": "selects"}}
    both = {"intersection": {"child": [select, {"computedUserset": {"relation": "select"}}]}}
    less = {"difference": {"base": select, "subtract": {"computedUserset": {"relation": "select"}}}}
    for rewrite in (both, less):
        reaches = follow(Edited().rule("column", "can_read_data", rewrite))
        assert not await reaches.enough("m", Can.READ_DATA, T.COLUMN, "select")


async def test_a_list_visibility_relation_suffices_once_the_model_was_read() -> None:
    reaches = follow(Edited())
    assert not await reaches.enough("m", Can.INCLUDE_IN_LIST, T.TABLE, "select")
    await reaches()
    assert await reaches.enough("m", Can.INCLUDE_IN_LIST, T.TABLE, "select")
    assert not await reaches.enough("m", Can.INCLUDE_IN_LIST, T.COLUMN, "select")
