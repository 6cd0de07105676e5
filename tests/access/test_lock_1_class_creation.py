# SPDX-License-Identifier: Apache-2.0
"""Lock 1: an operation without demands or a declared reason fails at class creation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from gateway.access.demand import Demand
from gateway.access.nouns.families import PROJECT, TABLE, declare_for_each
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.operation import OPERATIONS, Audience, HttpOperation, Operation, PublicAudience, ReadOperation
from gateway.api.binding import bind
from tests.support.door.world import SERVER

pytestmark = pytest.mark.usefixtures("registers")


def test_an_operation_without_an_endpoint_is_refused() -> None:
    with pytest.raises(TypeError, match="Endless must name its endpoint"):

        class Endless(ReadOperation):
            def demands(self) -> tuple[Demand, ...]:
                return (Demand(Can.READ, SERVER),)

    assert "Endless" not in OPERATIONS


@pytest.mark.parametrize("endpoint", ["", "/x", "GET", "GET x", "get /x", "FETCH /x", "GET /x y", "GET  /x"])
def test_an_endpoint_is_a_method_and_a_path(endpoint: str) -> None:
    with pytest.raises(TypeError, match="must name its endpoint"):
        type("Odd", (ReadOperation,), {"endpoint": endpoint, "open_to": PublicAudience(Audience.ALL)})


def test_an_endpoint_is_not_inherited() -> None:
    class First(ReadOperation):
        endpoint: ClassVar[str] = "GET /first"
        open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)

    with pytest.raises(TypeError, match="Second must name its endpoint"):

        class Second(First):
            pass


def test_an_operation_without_demands_must_declare_it() -> None:
    with pytest.raises(TypeError, match="Silent must define demands"):

        class Silent(ReadOperation):
            endpoint: ClassVar[str] = "GET /silent"

    assert "Silent" not in OPERATIONS


def test_a_public_operation_cannot_have_demands() -> None:
    with pytest.raises(TypeError, match="Both is public"):

        class Both(ReadOperation):
            endpoint: ClassVar[str] = "GET /both"
            open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)

            def demands(self) -> tuple[Demand, ...]:
                return (Demand(Can.READ, SERVER),)


def test_an_operation_without_a_kind_is_refused() -> None:
    for base in (Operation, HttpOperation):
        with pytest.raises(TypeError, match="Vague is of no kind: derive it from ReadOperation"):
            type("Vague", (base,), {"endpoint": "GET /vague", "open_to": PublicAudience(Audience.ALL)})
    assert "Vague" not in OPERATIONS


def test_an_abstract_operation_is_not_registered() -> None:
    class Common(ReadOperation, abstract=True):
        """A base class of several operations."""

    assert "Common" not in OPERATIONS


def test_a_family_declares_one_operation_for_each_target_type() -> None:
    @dataclass(frozen=True)
    class Counting(ReadOperation, abstract=True):
        on: Ref

        def demands(self) -> tuple[Demand, ...]:
            return (Demand(Can.READ, self.on),)

    made = declare_for_each(
        Counting, (TABLE, PROJECT), name="Count{noun}s", endpoint="GET /x/{path}/count", doc="Of {words}."
    )
    assert [each.name() for each in made] == ["count_tables", "count_projects"]
    assert made[1].endpoint == "GET /x/project/{project_id}/count"
    assert made[1].__doc__ == "Of a project."
    assert bind(made[0]).readers[0][0] == "on"
    with pytest.raises(TypeError, match="CountProjects is declared twice"):
        declare_for_each(Counting, (PROJECT,), name="Count{noun}s", endpoint="GET /y/{path}", doc="")


def test_an_operation_name_is_unique() -> None:
    with pytest.raises(TypeError, match="LoadTable is declared twice"):
        type("LoadTable", (ReadOperation,), {"endpoint": "GET /x", "open_to": PublicAudience(Audience.ALL)})


def test_an_operation_with_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="declared twice"):

        @dataclass(frozen=True, slots=True)
        class Slotted(ReadOperation):
            endpoint: ClassVar[str] = "GET /slotted"
            open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)


def test_operation_names_are_snake_case_and_unique() -> None:
    names = [operation.name() for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert OPERATIONS["LoadTable"].name() == "load_table"


def test_the_endpoint_determines_if_an_operation_is_a_catalog_mutation() -> None:
    mutations = {name for name, operation in OPERATIONS.items() if operation.is_catalog_mutation()}
    assert {"CreateTable", "CommitTable", "DropTable", "CreateNamespace"} <= mutations
    assert mutations.isdisjoint({"LoadTable", "TableExists", "GetConfig", "CreateWarehouse", "WriteTableAssignments"})
