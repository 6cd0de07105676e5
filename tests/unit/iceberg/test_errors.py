# SPDX-License-Identifier: Apache-2.0
"""Errors: the wire type is the class name, and the messages are those that clients match."""

from gateway.iceberg import errors
from gateway.iceberg.identifiers import Namespace, TableIdentifier

NS = Namespace(("a", "b"))
TABLE = TableIdentifier(NS, "t")


def test_every_error_has_a_type_a_status_and_a_description() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.CatalogError)]
    assert len(kinds) > 50
    for kind in kinds:
        assert 400 <= kind.code < 600
        assert kind.__doc__
        if kind is not errors.CatalogError and kind is not errors.RetryableValidation:
            assert kind.type == kind.__name__


def test_a_retryable_validation_error_is_sent_as_commit_failed() -> None:
    error = errors.RetryableValidation.of("x is old")
    assert isinstance(error, errors.CommitFailedException)
    assert (error.type, error.code) == ("CommitFailedException", 409)
    assert error.message == "Validation failed, please retry: x is old"


def test_messages_of_absent_objects_equal_those_of_the_compatibility_kit() -> None:
    assert errors.NoSuchTableException.of(TABLE).message == "Table does not exist: a.b.t"
    assert errors.NoSuchViewException.of(TABLE).message == "View does not exist: a.b.t"
    assert errors.NoSuchNamespaceException.of(NS).message == "Namespace does not exist: a.b"


def test_messages_of_existing_names_equal_those_of_the_compatibility_kit() -> None:
    taken = errors.AlreadyExistsException
    assert taken.namespace(NS).message == "Namespace already exists: a.b"
    assert taken.table(TABLE).message == "Table already exists: a.b.t"
    assert taken.view(TABLE).message == "View already exists: a.b.t"
    assert taken.table_instead_of_view(TABLE).message == "Table with same name already exists: a.b.t"
    other = TableIdentifier(Namespace(("a",)), "u")
    assert taken.rename(TABLE, other, taken_by="View").message == "Cannot rename a.b.t to a.u. View already exists"
    assert errors.NamespaceNotEmptyException.of(NS).message == "Namespace a.b is not empty"


def test_temporary_refusals_have_a_retry_time() -> None:
    assert errors.TooManyRequests("busy", retry_after_s=7).retry_after_s == 7
    assert errors.ServiceUnavailableException("down", detail=("x",)).detail == ("x",)
