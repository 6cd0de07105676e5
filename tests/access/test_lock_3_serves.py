# SPDX-License-Identifier: Apache-2.0
"""Lock 3: `@serves` makes the route from the operation, once."""

from __future__ import annotations

from typing import ClassVar

import pytest

from gateway.access.operation import OPERATIONS, Operation
from gateway.access.operations.namespaces import LoadNamespace
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.api.serves import OPERATIONS_OF, SERVED, serves

pytestmark = pytest.mark.usefixtures("registers")


async def _handler() -> None:
    """A handler."""


def test_an_operation_is_served_by_one_handler() -> None:
    assert LoadTable in SERVED
    with pytest.raises(TypeError, match="LoadTable served twice"):
        serves(LoadTable)(_handler)


def test_operations_of_different_endpoints_do_not_share_a_handler() -> None:
    with pytest.raises(TypeError, match="LoadTable, DropTable do not share one endpoint"):
        serves(LoadTable, DropTable)
    with pytest.raises(TypeError, match="do not share one endpoint"):
        serves(LoadTable, LoadNamespace)


def test_a_refused_handler_leaves_no_trace() -> None:
    class Fresh(Operation):
        endpoint: ClassVar[str] = LoadTable.endpoint
        open_to_all: ClassVar[bool] = True

    before = dict(SERVED)
    with pytest.raises(TypeError, match="LoadTable served twice"):
        serves(Fresh, LoadTable)(_handler)
    assert before == SERVED


def test_method_path_and_status_come_from_the_operation() -> None:
    for operation, handler in SERVED.items():
        method, path = operation.endpoint.split(" ", 1)
        assert handler.http_methods == {method}
        assert {each.replace(":str", "") for each in handler.paths} == {path, *operation.also_at}
        assert operation in handler.opt[OPERATIONS_OF]
    assert SERVED[DropTable].status_code == DropTable.returns == 204


def test_the_set_of_served_operations_is_the_set_of_declared_ones() -> None:
    assert {operation.__name__ for operation in SERVED} == set(OPERATIONS)
    assert all(OPERATIONS[operation.__name__] is operation for operation in SERVED)


def test_operations_that_share_a_handler_are_no_wider_than_each_other() -> None:
    """The latch is content with any of them, so none may be open to all where another is not."""
    for handler in SERVED.values():
        assert len({operation.open_to_all for operation in handler.opt[OPERATIONS_OF]}) == 1
