# SPDX-License-Identifier: Apache-2.0
"""SCIM errors, with the `scimType` of RFC 7644, section 3.12, and the HTTP status of the response."""

from __future__ import annotations

from typing import ClassVar, Final

from gateway.iceberg.errors import CatalogError


class ScimError(CatalogError, code=400):
    """A SCIM error. `scim_type` is empty if the RFC defines none for the error."""

    scim_type: ClassVar[str] = ""


class InvalidFilter(ScimError, type="ScimInvalidFilter"):
    """The filter is malformed or not supported."""

    scim_type = "invalidFilter"


class InvalidSyntax(ScimError, type="ScimInvalidSyntax"):
    """The structure of the body is invalid."""

    scim_type = "invalidSyntax"


class InvalidPath(ScimError, type="ScimInvalidPath"):
    """The path of a patch operation is malformed."""

    scim_type = "invalidPath"


class NoTarget(ScimError, type="ScimNoTarget"):
    """A patch operation that needs a path has none."""

    scim_type = "noTarget"


class InvalidValue(ScimError, type="ScimInvalidValue"):
    """A value is missing or invalid for its attribute."""

    scim_type = "invalidValue"


class FilterNotTaken(ScimError, code=403, type="ScimFilterNotTaken"):
    """The discovery endpoints accept no filter (RFC 7644, section 4)."""


class Immutable(ScimError, type="ScimMutability"):
    """A required attribute cannot be removed, and the attribute that identifies an active user cannot be changed.

    The changed value would identify another user.
    """

    scim_type = "mutability"


class TooMany(ScimError, code=413, type="ScimTooMany"):
    """The request exceeds a limit on its size."""

    scim_type = "tooMany"


class NotUnique(ScimError, code=409, type="ScimUniqueness"):
    """Another user or group has this name or id."""

    scim_type = "uniqueness"


class NoSuchResource(ScimError, code=404, type="ScimNotFound"):
    """No resource of the caller's provider has this id."""


class VersionChanged(ScimError, code=412, type="ScimVersionChanged"):
    """The version of the resource is not the one in `If-Match`."""


class NotProvisioned(ScimError, code=403, type="ScimNotProvisioned"):
    """The settings do not allow provisioning by the caller's provider: they have no SCIM attribute for its users."""


class NotSupported(ScimError, code=501, type="ScimNotSupported"):
    """The request needs a part of SCIM that `ServiceProviderConfig` excludes or that RFC 7644 makes optional."""


_SEARCH: Final = "POST /.search is not supported. Use GET with the query parameter `filter`."

#: Paths of RFC 7644 (sections 3.4.3, 3.7 and 3.11) that this server does not serve, with their error messages.
_NOT_SERVED: Final = {
    "/scim/v2/Me": "/Me is not supported. Find the user with GET /Users.",
    "/scim/v2/Bulk": "Bulk requests are not supported. Send each request separately.",
    "/scim/v2/.search": _SEARCH,
    "/scim/v2/Users/.search": _SEARCH,
    "/scim/v2/Groups/.search": _SEARCH,
}


def not_supported(path: str) -> NotSupported | None:
    """Return the error for a SCIM path that this server does not support; None for any other path."""
    return NotSupported(_NOT_SERVED[path]) if path in _NOT_SERVED else None
