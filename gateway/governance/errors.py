# SPDX-License-Identifier: Apache-2.0
"""Errors of the management API, by the types of `lakekeeper.md` 2.9."""

from __future__ import annotations

from gateway.iceberg.errors import CatalogError


class CatalogAlreadyBootstrapped(CatalogError, code=400):
    """Bootstrapping is possible once."""


class TermsOfUseNotAccepted(CatalogError, code=400):
    """Bootstrapping needs `accept-terms-of-use: true`."""


class ProjectNameAlreadyTaken(CatalogError, code=409):
    """Another project has this name or id."""


class WarehouseNameAlreadyTaken(CatalogError, code=400):
    """Another warehouse of the project has this name, in whatever letter case."""


class CreateWarehouseStorageProfileOverlap(CatalogError, code=400):
    """The base location equals, contains or lies in that of another warehouse, of any project."""


class StorageValidationFailed(CatalogError, code=400):
    """The storage does not do what a warehouse needs; each failed check is in the details."""


class DefaultFormatVersionNotAllowed(CatalogError, code=400):
    """The default format version is not among the allowed ones."""


class ManagedByNotAllowed(CatalogError, code=403, type="InstanceAdminRequired"):
    """Only instance admins may create warehouses that only they manage."""


class InvalidGrantPrivilege(CatalogError, code=400):
    """This privilege cannot be granted on this kind of object."""


class GrantPrincipalUnknown(CatalogError, code=404, type="GrantTargetNotFound"):
    """The user or role is not known here; a mistyped id must not become a grant."""


class TupleAlreadyExists(CatalogError, code=409, type="TupleAlreadyExistsError"):
    """The assignment is there already."""


class TupleNotFound(CatalogError, code=404, type="TupleNotFoundError"):
    """There is no such assignment."""


class SelfAssignment(CatalogError, code=400):
    """A role cannot be assigned to itself."""


class RevocationPending(CatalogError, code=503):
    """The revocation is recorded and not yet confirmed by OpenFGA; it is delivered as soon as it answers."""


class ProjectIdMissing(CatalogError, code=400):
    """The request names no project and there is no default one."""
