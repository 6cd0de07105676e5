# SPDX-License-Identifier: Apache-2.0
"""The cards of object types, and what follows from them."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest

from gateway.access.nouns.card import Card, Resolved, ResolvedInProject
from gateway.access.nouns.cards import CARDS, IN_A_WAREHOUSE, LEVELS, OUTSIDE, policy_operation_name
from gateway.access.nouns.data_policy import DataPolicyRef
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.tag import TagNameRef, TagRef
from gateway.access.operations.grants import GrantedOn
from gateway.api.path_refs import REFS, read_path
from gateway.db.resolver.resolver_statements import STATEMENTS, lookup_of
from gateway.iceberg.errors import BadRequestException
from tests.support.door import world

ID = UUID("00000000-0000-4000-8000-0000000000aa")
REFERENCES: list[Ref] = [
    world.SERVER,
    world.PROJECT,
    world.WAREHOUSE,
    world.WAREHOUSE_BY_NAME,
    world.NAMESPACE,
    world.TABLE,
    world.VIEW,
    world.GENERIC_TABLE,
    world.ROLE,
    world.DATA_POLICY,
    world.TAG,
    world.TAG_BY_NAME,
    world.BOB,
]


def test_every_object_type_has_one_card() -> None:
    assert set(CARDS) == set(ObjectType)


def test_every_card_that_has_references_has_an_example_here() -> None:
    assert {each.type for each in REFERENCES} == {type for type, card in CARDS.items() if card.refs}


@pytest.mark.parametrize("ref", REFERENCES, ids=repr)
def test_a_statement_takes_the_values_of_each_reference(ref: Ref) -> None:
    bound = set(STATEMENTS[lookup_of(ref)].statement.compile().params)
    assert set(ref.lookup()) <= bound


@pytest.mark.parametrize(
    ("kind", "path", "ref"),
    [
        (TagRef, {"tag_id": str(ID)}, TagRef(ID)),
        (TagNameRef, {"warehouse_id": str(ID), "tag_name": "PII"}, TagNameRef(ID, "PII")),
        (RoleRef, {"role_id": str(ID)}, RoleRef(ID)),
        (DataPolicyRef, {"policy_id": str(ID)}, DataPolicyRef(ID)),
        (ProjectRef, {"project_id": "main"}, ProjectRef("main")),
    ],
)
def test_a_path_gives_the_fields_of_a_reference(kind: type[Ref], path: dict[str, str], ref: Ref) -> None:
    assert read_path(kind, path) == ref


def test_a_path_without_a_uuid_where_one_belongs_is_refused() -> None:
    with pytest.raises(BadRequestException, match="tag_id in the path must be a UUID"):
        read_path(TagRef, {"tag_id": "pii"})


def test_every_reference_outside_of_warehouses_is_read_from_paths() -> None:
    assert {ref for type in OUTSIDE for ref in CARDS[type].refs} <= set(REFS)


def test_types_are_inside_of_a_warehouse_outside_or_the_warehouse() -> None:
    assert {
        ObjectType.NAMESPACE,
        ObjectType.TABLE,
        ObjectType.COLUMN,
        ObjectType.VIEW,
        ObjectType.GENERIC_TABLE,
    } == IN_A_WAREHOUSE
    assert set(ObjectType) == IN_A_WAREHOUSE | OUTSIDE | {ObjectType.WAREHOUSE}


def test_a_type_is_one_level_below_its_lowest_parent() -> None:
    for type, card in CARDS.items():
        above = [LEVELS[each] for each in card.parents if each is not type]
        assert LEVELS[type] == (max(above) + 1 if above else 0)


def test_a_row_without_a_project_of_its_own_is_refused() -> None:
    """Otherwise a new object type would be visible to tokens of every project."""

    class Unplaced(Resolved, frozen=True, kw_only=True):
        pass

    with pytest.raises(TypeError, match="Unplaced must state in which project"):
        _ = Unplaced(id=ID).in_project


def test_lists_of_grants_have_the_id_of_an_object_of_every_type() -> None:
    members = GrantedOn.__struct_fields__
    for type, card in CARDS.items():
        if card.privileges and type is not ObjectType.COLUMN:
            assert set(card.id_members) <= set(members), type


def test_ids_of_types_in_projects_are_the_last_members_of_the_object_of_a_grant() -> None:
    names = [
        each for type in ObjectType if issubclass(CARDS[type].row, ResolvedInProject) for each in CARDS[type].id_members
    ]
    assert list(GrantedOn.__struct_fields__[-len(names) :]) == names
    assert {"role_id", "tag_id", "tag_definition_id", "data_policy_id"} <= set(names)


def test_every_privilege_has_texts_for_administrators() -> None:
    categories = {"metadata", "read", "write", "create", "security", "administration"}
    for each in Privilege:
        assert each.display_name and each.description.endswith("."), each
        assert each.category in categories, each


def test_names_on_cards_follow_from_no_rule() -> None:
    for type, card in CARDS.items():
        without: dict[ObjectType, Card] = {**CARDS, type: msgspec.structs.replace(card, policy_operations={})}
        for relation, name in card.policy_operations.items():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("gateway.access.nouns.cards.CARDS", without)
                assert policy_operation_name(type, relation) != name, (type, relation)


@pytest.mark.parametrize(
    ("type", "relation", "name"),
    [
        (ObjectType.PROJECT, Can.CREATE_TAG, "create_tag"),
        (ObjectType.PROJECT, Can.LIST_DATA_POLICIES, "list_data_policies"),
        (ObjectType.TAG, Can.READ, "get_tag"),
        (ObjectType.NAMESPACE, Can.MANAGE_TAGS, "attach_namespace_tag"),
        (ObjectType.VIEW, Can.SET_PROTECTION, "set_view_protection"),
        (ObjectType.TABLE, Can.DROP, "drop_table"),
        (ObjectType.DATA_POLICY, Can.GRANT_EXEMPT, "write_data_policy_assignments"),
    ],
)
def test_names_for_policies_follow_from_action_and_type(type: ObjectType, relation: Can, name: str) -> None:
    assert policy_operation_name(type, relation) == name
