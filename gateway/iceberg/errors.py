# SPDX-License-Identifier: Apache-2.0
"""Errors of the protocol, by the `type` and HTTP status clients see.

`api/errors.py` alone turns them into answers. The class name *is* the wire `type`, so a class is renamed only together
with the protocol. Texts made by the named constructors are asserted by the protocol's compatibility kit: keep them
verbatim. Rooms above may subclass `CatalogError` for kinds of their own.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, Self


class Dotted(Protocol):
    """Anything with the rendering `level1.level2.name` (a namespace or an identifier)."""

    @property
    def dotted(self) -> str: ...


class CatalogError(Exception):
    """An error a client may see: `type` and `code` per class, a message, and optional lines of detail."""

    type: ClassVar[str] = "InternalError"
    code: ClassVar[int] = 500

    message: str
    detail: tuple[str, ...]

    def __init__(self, message: str, *, detail: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail

    def __init_subclass__(cls, *, code: int | None = None, type: str | None = None) -> None:
        super().__init_subclass__()
        cls.type = type or cls.__name__
        if code is not None:
            cls.code = code


# ---- 400: the request itself is wrong ------------------------------------------------------------------------------


class BadRequestException(CatalogError, code=400):
    """The body or a parameter is malformed, or the change asked for is not a legal one."""


class IllegalArgumentException(CatalogError, code=400):
    """As bad request; Java clients pass this type's message through verbatim."""


class InvalidTableUpdate(CatalogError, code=400):
    """An update is understood but cannot be applied to this metadata."""


class InvalidLocation(CatalogError, code=400):
    """A location is malformed or outside of what the object may use."""


class NamespaceEmpty(CatalogError, code=400):
    """A namespace without any level."""


class NamespacePartEmpty(CatalogError, code=400):
    """A namespace with an empty level."""


class NamespacePartContainsDot(CatalogError, code=400):
    """Dots inside a level would make the dotted rendering ambiguous."""


class NamespaceDepthExceeded(CatalogError, code=400):
    """More levels than the catalog supports."""


class InvalidNamespace(CatalogError, code=400):
    """A level holds characters that are not allowed."""


class ReservedNamespace(CatalogError, code=400):
    """The first level is reserved for engines."""


class IdentifierNameEmpty(CatalogError, code=400):
    """A table or view without a name."""


class InvalidTableName(CatalogError, code=400):
    """A table or view name holds characters that are not allowed."""


class TableIdentifierMismatch(CatalogError, code=400):
    """The identifier in the body is not the one in the path."""


class TableIdentifierRequiredForCommitTransaction(CatalogError, code=400):
    """A change of a transaction names no table."""


class TableIdentifiersNotUnique(CatalogError, code=400):
    """A transaction names one table twice."""


class SetLocationNotAllowed(CatalogError, code=400):
    """A table's location never changes: credentials are scoped by it."""


class AssignUuidNotAllowed(CatalogError, code=400):
    """A table's UUID never changes after creation."""


class ViewUuidMismatch(CatalogError, code=400):
    """A view's UUID never changes after creation."""


class EmptyView(CatalogError, code=400):
    """A view version without any representation."""


class FormatVersionNotAllowed(CatalogError, code=400):
    """The format version exists but this warehouse does not permit it."""


class UnsupportedCompressionCodec(CatalogError, code=400):
    """`write.metadata.compression-codec` other than none or gzip."""


class TooManyUpdatesInCommit(CatalogError, code=400):
    """A commit holds more updates than the catalog takes at once."""


class MetadataTooLarge(CatalogError, code=400):
    """A table's or view's metadata exceeds a limit of this server, or would after the change."""


class ImmutablePropertyModification(CatalogError, code=400):
    """A property that is chosen once is set to something else."""


class ImmutablePropertyRemoval(CatalogError, code=400):
    """A property that is chosen once is removed."""


class LocationCannotBeUpdated(CatalogError, code=400):
    """A namespace's location is frozen at creation."""


class LocationCannotBeRemoved(CatalogError, code=400):
    """A namespace's location is frozen at creation."""


class UnexpectedFilesInLocation(CatalogError, code=400):
    """A new table's location already holds files."""


class ReferencedByDepthExceeded(CatalogError, code=400):
    """`referenced-by` names too long a chain of views."""


class InvalidPaginationToken(CatalogError, code=400):
    """A page token this catalog did not issue."""


class GetConfigNoWarehouseProvided(CatalogError, code=400):
    """`/v1/config` without the `warehouse` parameter."""


class PrefixIsNotWarehouseID(CatalogError, code=400):
    """The path prefix is not a warehouse id."""


class InvalidIdempotencyKey(CatalogError, code=400):
    """`Idempotency-Key` is not a UUID."""


class DuplicateIdempotencyKey(CatalogError, code=400):
    """`Idempotency-Key` was sent more than once."""


# ---- 401, 403 ------------------------------------------------------------------------------------------------------


class NotAuthorizedException(CatalogError, code=401):
    """No valid identity came with the request."""


class ForbiddenException(CatalogError, code=403):
    """The caller may see the object but not do this to it."""


class TableActionForbidden(ForbiddenException):
    """Refused action on a visible table."""


class ViewActionForbidden(ForbiddenException):
    """Refused action on a visible view."""


class GenericTableActionForbidden(ForbiddenException):
    """Refused on a generic table."""


class NamespaceActionForbidden(ForbiddenException):
    """Refused action on a visible namespace."""


class WarehouseActionForbidden(ForbiddenException):
    """Refused action on a visible warehouse."""


# ---- 404: absent, or invisible to the caller (same body) -----------------------------------------------------------


class NotFoundException(CatalogError, code=404):
    """A thing without an error type of its own, e.g. a missing metadata file."""


class NoSuchWarehouseException(CatalogError, code=404):
    """No such warehouse, or none the caller may see."""

    @classmethod
    def of(cls, name: str) -> Self:
        """The error for the warehouse as the caller named it."""
        return cls(f"Warehouse does not exist: {name}")


class NoSuchNamespaceException(CatalogError, code=404):
    """No such namespace, or none the caller may see."""

    @classmethod
    def of(cls, namespace: Dotted) -> Self:
        """`Namespace does not exist: a.b`."""
        return cls(f"Namespace does not exist: {namespace.dotted}")


class NoSuchTableException(CatalogError, code=404):
    """No such table, or none the caller may see."""

    @classmethod
    def of(cls, identifier: Dotted) -> Self:
        """`Table does not exist: ns.tbl`."""
        return cls(f"Table does not exist: {identifier.dotted}")


class NoSuchGenericTableException(CatalogError, code=404):
    """No such generic table, or none the caller may see."""

    @classmethod
    def of(cls, identifier: Dotted) -> Self:
        """`Generic table does not exist: ns.t`."""
        return cls(f"Generic table does not exist: {identifier.dotted}")


class NoSuchViewException(CatalogError, code=404):
    """No such view, or none the caller may see."""

    @classmethod
    def of(cls, identifier: Dotted) -> Self:
        """`View does not exist: ns.view`."""
        return cls(f"View does not exist: {identifier.dotted}")


# ---- 406, 409, 422 -------------------------------------------------------------------------------------------------


class UnsupportedOperationException(CatalogError, code=406):
    """The protocol knows the operation, this catalog does not offer it."""


class AlreadyExistsException(CatalogError, code=409):
    """The name is taken, by the same or another kind of object."""

    @classmethod
    def namespace(cls, namespace: Dotted) -> Self:
        """`Namespace already exists: a.b`."""
        return cls(f"Namespace already exists: {namespace.dotted}")

    @classmethod
    def table(cls, identifier: Dotted) -> Self:
        """`Table already exists: ns.tbl`."""
        return cls(f"Table already exists: {identifier.dotted}")

    @classmethod
    def view(cls, identifier: Dotted) -> Self:
        """`View already exists: ns.view`."""
        return cls(f"View already exists: {identifier.dotted}")

    @classmethod
    def table_where_view_wanted(cls, identifier: Dotted) -> Self:
        """A view is to be made under the name of a table."""
        return cls(f"Table with same name already exists: {identifier.dotted}")

    @classmethod
    def rename(cls, source: Dotted, destination: Dotted, *, taken_by: str) -> Self:
        """A rename onto a taken name; `taken_by` is "Table" or "View", the kind found at the destination."""
        return cls(f"Cannot rename {source.dotted} to {destination.dotted}. {taken_by} already exists")


class CommitFailedException(CatalogError, code=409):
    """The commit lost: a requirement no longer holds, or another commit came first. Clients refresh and try again."""


class RetryableValidation(CommitFailedException, type="CommitFailedException"):
    """A rule that held when the client prepared the commit and no longer does; built anew, the commit may succeed."""

    @classmethod
    def of(cls, reason: str) -> Self:
        """`Validation failed, please retry: <reason>`."""
        return cls(f"Validation failed, please retry: {reason}")


class NamespaceNotEmptyException(CatalogError, code=409):
    """A namespace that still holds tables, views or namespaces."""

    @classmethod
    def of(cls, namespace: Dotted) -> Self:
        """`Namespace a.b is not empty`."""
        return cls(f"Namespace {namespace.dotted} is not empty")


class NamespaceHasRunningTabularExpirations(CatalogError, code=409):
    """A namespace with tables or views that were dropped and can still be brought back."""


class NamespaceProtected(CatalogError, code=409):
    """The namespace must not be dropped without force."""


class ChildNamespaceProtected(CatalogError, code=409):
    """A namespace below must not be dropped without force."""


class ChildTabularProtected(CatalogError, code=409):
    """A table or view below must not be dropped without force."""


class ProtectedTabularDeletionWithoutForce(CatalogError, code=409):
    """The table or view must not be dropped without force."""

    @classmethod
    def of(cls, kind: str, name: Dotted) -> Self:
        """`The table a.b is protected…`."""
        return cls(f"The {kind} {name.dotted} is protected: take its protection away first, or drop it with force=true")


class LocationAlreadyTaken(CatalogError, code=409):
    """The location equals, contains or lies in another object's."""


class FailedToSetProperties(CatalogError, code=409):
    """A table property that this catalog does not support."""


class RequestInProgress(CatalogError, code=409):
    """A request with the same idempotency key is still running."""


class UnprocessableEntityException(CatalogError, code=422):
    """Understood but contradictory, e.g. one property both set and removed."""


class PayloadTooLarge(CatalogError, code=413):
    """The body exceeds the limit."""


# ---- not now, or unknown -------------------------------------------------------------------------------------------


class _RetryLater(CatalogError):
    """Base of the refusals that tell when to try again."""

    retry_after_s: int

    def __init__(self, message: str, *, detail: tuple[str, ...] = (), retry_after_s: int = 1) -> None:
        super().__init__(message, detail=detail)
        self.retry_after_s = retry_after_s


class TooManyRequests(_RetryLater, code=429):
    """Nothing was done; try again. Also the answer of a commit that could not be decided before it began, since
    clients read a 5xx there as "state unknown" (specification, section on commit errors)."""


class ServiceUnavailableException(_RetryLater, code=503):
    """A dependency is down; nothing was done. Never for commits once they may have been applied."""


class InternalServerError(CatalogError, code=500):
    """A fault of the catalog; details go to the log only."""


class CommitStateUnknownException(CatalogError, code=500):
    """The commit may or may not have been applied; the client must not delete its files."""
