# SPDX-License-Identifier: Apache-2.0
"""The tables of object types, and the statements that are made of those in projects."""

from __future__ import annotations

from gateway.access.nouns.refs import ObjectType
from gateway.db.engine import object_locations
from gateway.db.grants import grants
from gateway.db.schema.objects import IN_PROJECTS, TABLES
from gateway.db.tuples import desired_tuples, held_tuples
from gateway.db.warehouses import drift


def test_every_object_type_has_a_table_with_ids() -> None:
    assert set(TABLES) == set(ObjectType)
    assert all("id" in table.c for table in TABLES.values())


def test_objects_directly_in_projects_are_roles_data_policies_and_tags() -> None:
    assert set(IN_PROJECTS) == {ObjectType.ROLE, ObjectType.DATA_POLICY, ObjectType.TAG}
    assert all("project_id" in table.c for table in IN_PROJECTS.values())


def test_statements_on_edges_and_grants_contain_every_type_in_projects() -> None:
    for type, table in IN_PROJECTS.items():
        assert f"when '{type.value}' then a.relation = 'project'" in desired_tuples._EDGES
        assert f"select '{type.value}' as type, id::text, project_id from {table.name}" in str(held_tuples._OF_PROJECTS)
        for statement in (grants._OF_PRINCIPAL, object_locations._OBJECT_LOCATIONS):
            assert f"left join {table.name} on {table.name}.id = case" in str(statement)
            assert f"{table.name}.project_id" in str(statement)
        assert f"'{type.value}' as object_type" in str(drift._STATEMENTS[table.name])


def test_missing_tuples_are_searched_in_every_source() -> None:
    assert set(drift.SOURCES) == {table.name for table in TABLES.values()} - {"server", "users"} | {"grants"}
