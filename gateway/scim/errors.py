# SPDX-License-Identifier: Apache-2.0
"""Errors of SCIM, by the `scimType` of RFC 7644 section 3.12 and the HTTP status clients see."""

from __future__ import annotations

from typing import ClassVar, Final

from gateway.iceberg.errors import CatalogError


class ScimError(CatalogError, code=400):
    """An error with a `scim_type`; empty where the RFC has none for it."""

    scim_type: ClassVar[str] = ""


class InvalidFilter(ScimError, type="ScimInvalidFilter"):
    """The filter is none, or none of those that are supported."""

    scim_type = "invalidFilter"


class InvalidSyntax(ScimError, type="ScimInvalidSyntax"):
    """The body does not have the structure it must have."""

    scim_type = "invalidSyntax"


class InvalidPath(ScimError, type="ScimInvalidPath"):
    """The path of a patch operation is malformed."""

    scim_type = "invalidPath"


class NoTarget(ScimError, type="ScimNoTarget"):
    """A patch operation that needs a path has none."""

    scim_type = "noTarget"


class InvalidValue(ScimError, type="ScimInvalidValue"):
    """A value is missing or of no use for its attribute."""

    scim_type = "invalidValue"


class FilterNotTaken(ScimError, code=403, type="ScimFilterNotTaken"):
    """What describes the server is told whole (RFC 7644 section 4)."""


class Immutable(ScimError, type="ScimMutability"):
    """What is required cannot be removed, and what names an active user not be changed: it would be somebody else."""

    scim_type = "mutability"


class TooMany(ScimError, code=413, type="ScimTooMany"):
    """More than one request may hold."""

    scim_type = "tooMany"


class NotUnique(ScimError, code=409, type="ScimUniqueness"):
    """Another user or group has this name or id."""

    scim_type = "uniqueness"


class NoSuchResource(ScimError, code=404, type="ScimNotFound"):
    """There is none with this id, or it is none of this provider's."""


class VersionChanged(ScimError, code=412, type="ScimVersionChanged"):
    """The resource is not in the version that `If-Match` names."""


class NotProvisioned(ScimError, code=403, type="ScimNotProvisioned"):
    """The provider of the caller keeps nobody here: the settings do not say which attribute names its users."""


class NotSupported(ScimError, code=501, type="ScimNotSupported"):
    """A part of SCIM that `ServiceProviderConfig` does not have, or that a server need not have (RFC 7644)."""


_SEARCH: Final = "Searches are asked with GET and a filter."

#: Paths of RFC 7644 sections 3.4.3, 3.7 and 3.11.
_NOT_SERVED: Final = {
    "/scim/v2/Me": "There is no /Me here: find the user among /Users.",
    "/scim/v2/Bulk": "There are no bulk requests here: send each request by itself.",
    "/scim/v2/.search": _SEARCH,
    "/scim/v2/Users/.search": _SEARCH,
    "/scim/v2/Groups/.search": _SEARCH,
}


def not_supported(path: str) -> NotSupported | None:
    """The answer for a path of SCIM that leads nowhere here; None for any other."""
    return NotSupported(_NOT_SERVED[path]) if path in _NOT_SERVED else None
