# SPDX-License-Identifier: Apache-2.0
"""Errors of the management API, by their `type` in the answer: the names that clients of Lakekeeper match."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.db.last_admin_guard import NobodyLeft
from gateway.iceberg.errors import CatalogError


class CatalogAlreadyBootstrapped(CatalogError, code=400):
    """Bootstrapping is possible once."""


class ColumnNotFound(CatalogError, code=404):
    """The table has no such column; told to who may see its grants."""


class AmbiguousColumn(CatalogError, code=409):
    """Another column has, or had, the name that is given, and what was to be taken away is on that one."""


class BootstrapForbidden(CatalogError, code=403):
    """The server was opened again for one user, who is not the caller."""


class TermsOfUseNotAccepted(CatalogError, code=400):
    """Bootstrapping needs `accept-terms-of-use: true`."""


class ProjectNameAlreadyTaken(CatalogError, code=409):
    """Another project has this name or id."""


class ProjectNotEmpty(CatalogError, code=409):
    """Warehouses or roles are in the project."""


class ProjectIdNotFree(CatalogError, code=409):
    """What an earlier project of this id gave is not yet taken away everywhere."""


class LastServerAdmin(CatalogError, code=409):
    """Nobody could manage the server any more."""


class RoleSynchronized(CatalogError, code=409):
    """A directory says what the role is called and who is in it."""


class UserSynchronized(CatalogError, code=409):
    """A directory says who the user is and whether they may come."""


@contextmanager
def last_admin_kept() -> Iterator[None]:
    """Tell that nobody would be left as LastServerAdmin."""
    try:
        yield
    except NobodyLeft as nobody:
        raise LastServerAdmin(
            "Nobody would be left who has admin or operator on the server for good. Give it to somebody else first."
        ) from nobody


class WarehouseNotEmpty(CatalogError, code=409):
    """Namespaces are in the warehouse."""


class WarehouseProtected(CatalogError, code=409):
    """The warehouse is protected: deleting it takes `force`."""


class WarehouseHasUnfinishedTasks(CatalogError, code=409):
    """Work on the warehouse's files is not done yet; what it needs goes with the warehouse."""


class WarehouseManaged(CatalogError, code=403):
    """Only instance admins may change this warehouse."""


class InstanceAdminRequired(CatalogError, code=403):
    """Only instance admins may say who manages a warehouse."""


class WarehouseNameAlreadyTaken(CatalogError, code=400):
    """Another warehouse of the project has this name, in whatever letter case."""


class CreateWarehouseStorageProfileOverlap(CatalogError, code=400):
    """The base location equals, contains or lies in that of another warehouse, of any project."""


class StorageProfileImmutable(CatalogError, code=400, type="UpdateError"):
    """A field of the storage profile that names the place of the warehouse cannot be changed."""


class StorageValidationFailed(CatalogError, code=400):
    """The storage does not do what a warehouse needs; each failed check is in the details."""


class DefaultFormatVersionNotAllowed(CatalogError, code=400):
    """The default format version is not among the allowed ones."""


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


class CannotInspectPermissions(CatalogError, code=403):
    """The rights of others on an object are told to those who may read its assignments."""


class TooManyChecks(CatalogError, code=400):
    """One request asks more than this server answers at once."""


class TooManyEntries(CatalogError, code=400, type="BadRequestException"):
    """One request gives and takes more than can be done in one piece."""


class InvalidGrantExpiry(CatalogError, code=400):
    """A grant cannot end at this time, or not on this kind of object."""


class StorageLayoutForbidsNamespaceMove(CatalogError, code=400):
    """The warehouse lays tables out by their namespaces: after a move, folders would not be where names say."""


class NamespaceCannotMoveIntoSelf(CatalogError, code=400):
    """A namespace cannot lie in itself or in what lies in it."""


class RoleMembershipCycle(CatalogError, code=409):
    """A role would become a member of itself through other roles."""


class RoleMembershipDepthExceeded(CatalogError, code=409):
    """Roles would be nested deeper than checks follow."""


class RevocationPending(CatalogError, code=503):
    """The revocation is recorded and not yet confirmed by OpenFGA; it is delivered as soon as it answers."""


@contextmanager
def pending_when_out(message: str) -> Iterator[None]:
    """Tell an outage while rights are taken away as RevocationPending: it is recorded, and delivered later."""
    try:
        yield
    except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
        raise RevocationPending(message) from outage


class RoleNameAlreadyExists(CatalogError, code=409):
    """Another role of the project has this name, in whatever letter case."""


class RoleSourceIdConflict(CatalogError, code=409):
    """Another role of the project has this provider and source id."""


class ReservedRoleProvider(CatalogError, code=400):
    """Roles of this provider are the catalog's own."""


class RoleNotManuallyAssignable(CatalogError, code=400):
    """The members of the role come from its provider."""


class ProjectIdMissing(CatalogError, code=400):
    """The request names no project and there is no default one."""


class QueueNotFound(CatalogError, code=404):
    """There is no such queue of tasks here."""


class TaskNotSchedulable(CatalogError, code=400):
    """Tasks of this queue are not made by hand."""


class TaskStateConflict(CatalogError, code=409):
    """What is to be done to a task does not fit how it is; which ones is in the details."""


class TaskAlreadyActive(CatalogError, code=409):
    """Another task of the queue is active for the same thing."""
