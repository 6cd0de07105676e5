# SPDX-License-Identifier: Apache-2.0
"""Error types and codes that clients depend on."""

import pytest

from gateway.iceberg.errors import CatalogError
from gateway.identity.errors import (
    AuthenticationFailed,
    IdentityProviderUnavailable,
    MissingAuthorizationHeader,
    NotAuthenticated,
)


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (MissingAuthorizationHeader(), "MissingAuthorizationHeader", 401),
        (AuthenticationFailed("x"), "AuthenticationFailed", 401),
        (NotAuthenticated("x"), "AuthenticationFailed", 401),
        (IdentityProviderUnavailable("down", retry_after_s=1), "IdentityProviderUnavailable", 503),
    ],
)
def test_each_error_has_the_type_and_code_that_clients_know(error: CatalogError, kind: str, code: int) -> None:
    assert (error.type, error.code) == (kind, code)
