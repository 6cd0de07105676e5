# SPDX-License-Identifier: Apache-2.0
"""Lock 1: an operation that forgot to say what it demands cannot even be written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from gateway.access.demand import Demand
from gateway.access.operation import OPERATIONS, Operation
from gateway.access.relations import Can
from tests.access.world import SERVER

pytestmark = pytest.mark.usefixtures("registers")


def test_an_operation_without_an_endpoint_is_refused() -> None:
    with pytest.raises(TypeError, match="Endless must name its endpoint"):

        class Endless(Operation):
            def demands(self) -> tuple[Demand, ...]:
                return (Demand(Can.READ, SERVER),)

    assert "Endless" not in OPERATIONS


@pytest.mark.parametrize("endpoint", ["", "/x", "GET", "GET x", "get /x", "FETCH /x", "GET /x y", "GET  /x"])
def test_an_endpoint_is_a_method_and_a_path(endpoint: str) -> None:
    with pytest.raises(TypeError, match="must name its endpoint"):
        type("Odd", (Operation,), {"endpoint": endpoint, "open_to_all": True})


def test_an_endpoint_is_not_inherited() -> None:
    class First(Operation):
        endpoint: ClassVar[str] = "GET /first"
        open_to_all: ClassVar[bool] = True

    with pytest.raises(TypeError, match="Second must name its endpoint"):

        class Second(First):
            pass


def test_an_operation_that_demands_nothing_has_to_say_so() -> None:
    with pytest.raises(TypeError, match="Silent must define demands"):

        class Silent(Operation):
            endpoint: ClassVar[str] = "GET /silent"

    assert "Silent" not in OPERATIONS


def test_an_operation_open_to_all_cannot_demand() -> None:
    with pytest.raises(TypeError, match="Both is open to all"):

        class Both(Operation):
            endpoint: ClassVar[str] = "GET /both"
            open_to_all: ClassVar[bool] = True

            def demands(self) -> tuple[Demand, ...]:
                return (Demand(Can.READ, SERVER),)


def test_an_operation_cannot_be_open_to_all_and_to_the_authenticated() -> None:
    with pytest.raises(TypeError, match="Wide is open to all"):

        class Wide(Operation):
            endpoint: ClassVar[str] = "GET /wide"
            open_to_all: ClassVar[bool] = True
            open_to_authenticated: ClassVar[str] = "why not"


def test_a_name_is_taken_once() -> None:
    with pytest.raises(TypeError, match="LoadTable is declared twice"):
        type("LoadTable", (Operation,), {"endpoint": "GET /x", "open_to_all": True})


def test_slots_would_make_a_second_class_behind_the_register_and_are_refused() -> None:
    with pytest.raises(TypeError, match="declared twice"):

        @dataclass(frozen=True, slots=True)
        class Slotted(Operation):
            endpoint: ClassVar[str] = "GET /slotted"
            open_to_all: ClassVar[bool] = True


def test_the_names_of_operations_are_snake_case_and_different() -> None:
    names = [operation.name() for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert OPERATIONS["LoadTable"].name() == "load_table"


def test_what_counts_as_a_catalog_mutation_is_read_off_the_endpoint() -> None:
    mutations = {name for name, operation in OPERATIONS.items() if operation.is_catalog_mutation()}
    assert {"CreateTable", "CommitTable", "DropTable", "CreateNamespace"} <= mutations
    assert mutations.isdisjoint({"LoadTable", "TableExists", "GetConfig", "CreateWarehouse", "WriteTableAssignments"})
