# SPDX-License-Identifier: Apache-2.0
"""Every error response of the gateway maps to the intended exception of a Java client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gateway.api.errors  # noqa: F401 - declares errors of its own
from gateway.iceberg.errors import CatalogError, CommitStateUnknownException, InternalServerError
from tests.support.stack import java_errors as java
from tests.support.stack.java_errors import JavaException, Kind, java_error

pytestmark = pytest.mark.generated  # the kit enumerates the protocol


@pytest.mark.parametrize(
    ("kind", "code", "type", "expected"),
    [
        (Kind.TABLE, 404, "NoSuchTableException", java.NoSuchTableException),
        (Kind.TABLE, 404, "NoSuchNamespaceException", java.NoSuchNamespaceException),
        (Kind.TABLE, 404, "NotFoundException", java.NotFoundException),
        (Kind.TABLE, 404, "", java.NoSuchTableException),
        (Kind.CREATE_TABLE, 404, "NoSuchTableException", java.NoSuchNamespaceException),
        (Kind.COMMIT, 404, "NoSuchNamespaceException", java.NoSuchTableException),
        (Kind.VIEW, 404, "NoSuchNamespaceException", java.NoSuchNamespaceException),
        (Kind.COMMIT_VIEW, 404, "", java.NoSuchViewException),
        (Kind.CONFIG, 404, "NoSuchWarehouseException", java.NoSuchWarehouseException),
        (Kind.CONFIG, 404, "", java.RESTException),
        (Kind.CREATE_TABLE, 409, "CommitFailedException", java.AlreadyExistsException),
        (Kind.COMMIT, 409, "AlreadyExistsException", java.CommitFailedException),
        (Kind.DROP_NAMESPACE, 409, "", java.NamespaceNotEmptyException),
        (Kind.NAMESPACE, 422, "", java.RESTException),
        (Kind.COMMIT, 503, "", java.CommitStateUnknownException),
        (Kind.TABLE, 503, "", java.ServiceUnavailableException),
        (Kind.VIEW, 400, "IllegalArgumentException", java.IllegalArgumentException),
        (Kind.VIEW, 400, "EmptyView", java.BadRequestException),
        (Kind.TABLE, 429, "", java.RESTException),
    ],
)
def test_status_code_type_and_operation_determine_the_java_exception(
    kind: Kind, code: int, type: str, expected: type[JavaException]
) -> None:
    assert java_error(kind, code, type, "text").__class__ is expected


def _errors(above: type[CatalogError] = CatalogError) -> Iterator[type[CatalogError]]:
    for each in above.__subclasses__():
        yield each
        yield from _errors(each)


@pytest.mark.parametrize("kind", [Kind.COMMIT, Kind.COMMIT_VIEW])
def test_only_an_unknown_commit_outcome_raises_commit_state_unknown(kind: Kind) -> None:
    """A wrong class would make the client keep the files of a failed commit, or delete those of a successful one."""
    unknown = {
        error
        for error in _errors()
        if isinstance(java_error(kind, error.code, error.type, ""), java.CommitStateUnknownException)
        and error.code != 503  # Mutations return it as 429: `gateway.api.errors.catalog_error`.
    }
    assert {CommitStateUnknownException, InternalServerError} <= unknown
    assert all(error.code == 500 for error in unknown)


def test_every_error_type_of_java_has_its_expected_status_code() -> None:
    codes = {error.type: error.code for error in _errors()}
    for name, code in {
        "IllegalArgumentException": 400,
        "NoSuchWarehouseException": 404,
        "NoSuchNamespaceException": 404,
        "NoSuchTableException": 404,
        "NoSuchViewException": 404,
        "NotFoundException": 404,
        "AlreadyExistsException": 409,
        "CommitFailedException": 409,
        "NamespaceNotEmptyException": 409,
        "CommitStateUnknownException": 500,
    }.items():
        assert codes[name] == code, name
