# SPDX-License-Identifier: Apache-2.0
"""The table from exceptions to responses."""

from __future__ import annotations

import json

import pytest
from litestar.exceptions import (
    ClientException,
    HTTPException,
    InternalServerException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)

from gateway.access.dependency_errors import (
    AuditUnavailable,
    CommitUnknown,
    DatabaseUnavailable,
    DecisionEngineUnavailable,
)
from gateway.access.management_errors import RevocationPending
from gateway.access.nouns.authz_errors import NotAuthenticated, unavailable
from gateway.access.nouns.server import UserNotFound
from gateway.api.errors import body_of, catalog_error
from gateway.iceberg.errors import (
    CatalogError,
    CommitFailedException,
    NoSuchTableException,
    ServiceUnavailableException,
)

SECRET = "postgresql://root:hunter2@db"

DOWN = [DecisionEngineUnavailable(SECRET), DatabaseUnavailable(SECRET), AuditUnavailable(SECRET)]


@pytest.mark.parametrize(
    ("error", "code", "type"),
    [
        (NoSuchTableException("t"), 404, "NoSuchTableException"),
        (CommitFailedException("t"), 409, "CommitFailedException"),
        (NotAuthenticated("t"), 401, "MissingAuthorizationHeader"),
        (UserNotFound("t"), 404, "UserNotFound"),
        (RevocationPending("t"), 503, "RevocationPending"),
        (CommitUnknown(SECRET), 500, "CommitStateUnknownException"),
        *((error, 503, "AuthorizationBackendError") for error in DOWN),
        (NotFoundException(SECRET), 404, "NotFoundException"),
        (MethodNotAllowedException(SECRET), 405, "MethodNotAllowedException"),
        (HTTPException(status_code=413, detail=SECRET), 413, "PayloadTooLarge"),
        (ValidationException("bad"), 400, "BadRequestException"),
        (ClientException("bad"), 400, "BadRequestException"),
        (InternalServerException(SECRET), 500, "InternalServerError"),
        (RuntimeError(SECRET), 500, "InternalServerError"),
        (KeyError(SECRET), 500, "InternalServerError"),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), 500, "InternalServerError"),
        (TimeoutError(SECRET), 500, "InternalServerError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_exception_has_a_status_and_a_type_and_discloses_no_secret(error: Exception, code: int, type: str) -> None:
    error_answer = catalog_error(error, catalog_mutation=False)
    assert (error_answer.code, error_answer.type) == (code, type)
    assert SECRET not in error_answer.message
    assert SECRET not in body_of(error_answer, "id").decode()


@pytest.mark.parametrize("error", [*DOWN, ServiceUnavailableException("the store is away"), unavailable(False)])
def test_an_outage_is_429_on_a_catalog_mutation_and_503_elsewhere(error: Exception) -> None:
    """Clients read 5xx there as "state unknown" and never delete their files."""
    assert catalog_error(error, catalog_mutation=False).code == 503
    error_answer = catalog_error(error, catalog_mutation=True)
    assert error_answer.code == 429
    assert getattr(error_answer, "retry_after_s", 0) > 0


def test_an_unknown_commit_state_is_not_429() -> None:
    """Here no status may suggest that the commit did not happen."""
    error_answer = catalog_error(CommitUnknown("lost"), catalog_mutation=True)
    assert (error_answer.code, error_answer.type) == (500, "CommitStateUnknownException")


@pytest.mark.parametrize("error", [*DOWN, ServiceUnavailableException("x")])
def test_outages_have_a_retry_after_header(error: Exception) -> None:
    assert getattr(catalog_error(error, catalog_mutation=False), "retry_after_s", 0) > 0


def test_server_fault_details_are_only_logged_and_client_errors_are_returned() -> None:
    class Fault(CatalogError, code=500):
        """A fault."""

    class Refusal(CatalogError, code=400):
        """A refusal."""

    fault = json.loads(body_of(Fault("it broke", detail=(SECRET,)), "id-1"))["error"]
    refusal = json.loads(body_of(Refusal("not so", detail=("why",)), "id-2"))["error"]
    assert fault == {"message": "it broke", "type": "Fault", "code": 500, "stack": ["Error ID: id-1"]}
    assert refusal["stack"] == ["why", "Error ID: id-2"]
