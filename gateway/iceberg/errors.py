# SPDX-License-Identifier: Apache-2.0
"""Errors of the protocol, by the `type` and HTTP status that clients receive.

Only `api/errors.py` converts them to responses. The class name is the `type` in the response, so a rename of a class
changes the protocol. The compatibility kit of the protocol asserts the texts of the named constructors: do not change
them. Other packages may derive their own errors from `CatalogError`.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, Self


class Dotted(Protocol):
    """A namespace or identifier that can be rendered as `level1.level2.name`."""

    @property
    def dotted(self) -> str: ...


class CatalogError(Exception):
    """Base of the errors that clients may see: `type` and `code` per class, a message, and optional lines of detail."""

    type: ClassVar[str] = "InternalError"
    code: ClassVar[int] = 500

    message: str
    detail: tuple[str, ...]
    denial_id: str | None = None  # of a refusal whose reason the caller can read

    def __init__(self, message: str, *, detail: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail

    def __init_subclass__(cls, *, code: int | None = None, type: str | None = None) -> None:
        super().__init_subclass__()
        cls.type = type or cls.__name__
        if code is not None:
            cls.code = code


# ---- 400: the request is invalid -----------------------------------------------------------------------------------


class BadRequestException(CatalogError, code=400):
    """The body or a parameter is malformed, or the requested change is not allowed."""


class IllegalArgumentException(CatalogError, code=400):
    """Same as BadRequestException. Java clients show the message of this type unchanged."""


class InvalidTableUpdate(CatalogError, code=400):
    """An update is well-formed but cannot be applied to this metadata."""


class InvalidLocation(CatalogError, code=400):
    """A location is malformed, or outside of the prefix that the object may use."""


class NamespaceEmpty(CatalogError, code=400):
    """A namespace has no level."""


class NamespacePartEmpty(CatalogError, code=400):
    """A level of a namespace is empty."""


class NamespacePartContainsDot(CatalogError, code=400):
    """A level of a namespace contains a dot, which would make the dotted rendering ambiguous."""


class NamespaceDepthExceeded(CatalogError, code=400):
    """A namespace has more levels than the catalog supports."""


class InvalidNamespace(CatalogError, code=400):
    """A level of a namespace contains characters that are not allowed."""


class ReservedNamespace(CatalogError, code=400):
    """The first level of the namespace is reserved for engines."""


class IdentifierNameEmpty(CatalogError, code=400):
    """The name of a table or view is empty."""


class InvalidTableName(CatalogError, code=400):
    """The name of a table or view contains characters that are not allowed."""


class TableIdentifierMismatch(CatalogError, code=400):
    """The identifier in the body differs from the one in the path."""


class TableIdentifierRequiredForCommitTransaction(CatalogError, code=400):
    """A change of a transaction has no table identifier."""


class TableIdentifiersNotUnique(CatalogError, code=400):
    """A transaction contains two changes of one table."""


class SetLocationNotAllowed(CatalogError, code=400):
    """A commit changes a table's location. It is immutable, because credentials are scoped to it."""


class AssignUuidNotAllowed(CatalogError, code=400):
    """A commit changes a table's UUID, which is immutable after creation."""


class ViewUuidMismatch(CatalogError, code=400):
    """A commit changes a view's UUID, which is immutable after creation."""


class EmptyView(CatalogError, code=400):
    """A view version has no representation."""


class FormatVersionNotAllowed(CatalogError, code=400):
    """The format version exists but this warehouse does not permit it."""


class UnsupportedCompressionCodec(CatalogError, code=400):
    """`write.metadata.compression-codec` is neither none nor gzip."""


class TooManyUpdatesInCommit(CatalogError, code=400):
    """A commit holds too many updates, or its updates scan too many entries."""


class MetadataTooLarge(CatalogError, code=400):
    """The metadata of a table or view exceeds a limit of this server, or would exceed it after the change."""


class ImmutablePropertyModification(CatalogError, code=400):
    """A request changes the value of an immutable property."""


class ImmutablePropertyRemoval(CatalogError, code=400):
    """A request removes an immutable property."""


class LocationCannotBeUpdated(CatalogError, code=400):
    """A request changes a namespace's location, which is immutable after creation."""


class LocationCannotBeRemoved(CatalogError, code=400):
    """A request removes a namespace's location, which is immutable after creation."""


class UnexpectedFilesInLocation(CatalogError, code=400):
    """The location of a new table already contains files."""


class ReferencedByDepthExceeded(CatalogError, code=400):
    """The chain of views in `referenced-by` is too long."""


class InvalidPaginationToken(CatalogError, code=400):
    """This catalog did not issue the page token."""


class NoSuchTableLocationException(CatalogError, code=400):
    """No table that the caller may see is at the location in a request to sign."""


class GetConfigNoWarehouseProvided(CatalogError, code=400):
    """A request to `/v1/config` has no `warehouse` parameter."""


class PrefixIsNotWarehouseID(CatalogError, code=400):
    """The path prefix is not a warehouse id."""


class InvalidIdempotencyKey(CatalogError, code=400):
    """`Idempotency-Key` is not a UUID."""


class DuplicateIdempotencyKey(CatalogError, code=400):
    """`Idempotency-Key` was sent more than once."""


# ---- 401, 403 ------------------------------------------------------------------------------------------------------


class NotAuthorizedException(CatalogError, code=401):
    """The request carries no valid identity."""


class ForbiddenException(CatalogError, code=403):
    """The caller may see the object but lacks the right for this action."""


class TableActionForbidden(ForbiddenException):
    """The caller may see the table but lacks the right for this action."""


class ViewActionForbidden(ForbiddenException):
    """The caller may see the view but lacks the right for this action."""


class GenericTableActionForbidden(ForbiddenException):
    """The caller may see the generic table but lacks the right for this action."""


class NamespaceActionForbidden(ForbiddenException):
    """The caller may see the namespace but lacks the right for this action."""


class WarehouseActionForbidden(ForbiddenException):
    """The caller may see the warehouse but lacks the right for this action."""


# ---- 404: absent, or invisible to the caller (same body) -----------------------------------------------------------


class NotFoundException(CatalogError, code=404):
    """An object that has no error type of its own does not exist, for example a metadata file."""


class NoSuchWarehouseException(CatalogError, code=404):
    """The warehouse does not exist, or the caller may not see it."""

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the error for the warehouse, with the name as the caller sent it."""
        return cls(f"Warehouse does not exist: {name}")


class NoSuchNamespaceException(CatalogError, code=404):
    """The namespace does not exist, or the caller may not see it."""

    @classmethod
    def of(cls, namespace: Dotted) -> Self:
        """Return the error `Namespace does not exist: a.b`."""
        return cls(f"Namespace does not exist: {namespace.dotted}")


class NoSuchTableException(CatalogError, code=404):
    """The table does not exist, or the caller may not see it."""

    @classmethod
    def of(cls, identifier: Dotted) -> Self:
        """Return the error `Table does not exist: ns.tbl`."""
        return cls(f"Table does not exist: {identifier.dotted}")


class NoSuchGenericTableException(CatalogError, code=404):
    """The generic table does not exist, or the caller may not see it."""

    @classmethod
    def of(cls, identifier: Dotted) -> Self:
        """Return the error `Generic table does not exist: ns.t`."""
        return cls(f"Generic table does not exist: {identifier.dotted}")


class NoSuchViewException(CatalogError, code=404):
    """The view does not exist, or the caller may not see it."""

    @classmethod
    def of(cls, identifier: Dotted) -> Self:
        """Return the error `View does not exist: ns.view`."""
        return cls(f"View does not exist: {identifier.dotted}")


# ---- 409, 422 ------------------------------------------------------------------------------------------------------


class AlreadyExistsException(CatalogError, code=409):
    """An object of the same or another kind already has the name."""

    @classmethod
    def namespace(cls, namespace: Dotted) -> Self:
        """Return the error `Namespace already exists: a.b`."""
        return cls(f"Namespace already exists: {namespace.dotted}")

    @classmethod
    def table(cls, identifier: Dotted) -> Self:
        """Return the error `Table already exists: ns.tbl`."""
        return cls(f"Table already exists: {identifier.dotted}")

    @classmethod
    def view(cls, identifier: Dotted) -> Self:
        """Return the error `View already exists: ns.view`."""
        return cls(f"View already exists: {identifier.dotted}")

    @classmethod
    def table_instead_of_view(cls, identifier: Dotted) -> Self:
        """Return the error for the creation of a view whose name a table already has."""
        return cls(f"Table with same name already exists: {identifier.dotted}")

    @classmethod
    def rename(cls, source: Dotted, destination: Dotted, *, taken_by: str) -> Self:
        """Return the error for a rename to a used name. `taken_by` is the kind of the object with it: Table or View."""
        return cls(f"Cannot rename {source.dotted} to {destination.dotted}. {taken_by} already exists")


class CommitFailedException(CatalogError, code=409):
    """A requirement does not hold, or a concurrent commit was first. The client must refresh and retry."""


class RetryableValidation(CommitFailedException, type="CommitFailedException"):
    """A validation failed because the table changed after the client prepared the commit. A new attempt may succeed."""

    @classmethod
    def of(cls, reason: str) -> Self:
        """Return the error `Validation failed, please retry: <reason>`."""
        return cls(f"Validation failed, please retry: {reason}")


class NamespaceNotEmptyException(CatalogError, code=409):
    """A namespace still contains tables, views or namespaces."""

    @classmethod
    def of(cls, namespace: Dotted) -> Self:
        """Return the error `Namespace a.b is not empty`."""
        return cls(f"Namespace {namespace.dotted} is not empty")


class NamespaceHasRunningTabularExpirations(CatalogError, code=409):
    """A namespace contains dropped tables or views that can still be restored."""


class NamespaceProtected(CatalogError, code=409):
    """The namespace is protected. A drop needs `force`."""


class ChildNamespaceProtected(CatalogError, code=409):
    """A namespace below is protected. A drop needs `force`."""


class ChildTabularProtected(CatalogError, code=409):
    """A table or view below is protected. A drop needs `force`."""


class ProtectedTabularDeletionWithoutForce(CatalogError, code=409):
    """The table or view is protected. A drop needs `force`."""

    @classmethod
    def of(cls, kind: str, name: Dotted) -> Self:
        """Return the error `Cannot delete protected tabular a.b…`."""
        return cls(
            f"Cannot delete protected tabular {name.dotted} without force flag. Remove the protection of the {kind} "
            "first, or drop it with force=true."
        )


class LocationAlreadyTaken(CatalogError, code=409):
    """The location equals, contains or is inside of the location of another object."""


class FailedToSetProperties(CatalogError, code=409):
    """This catalog does not support a table property of the request."""


class RequestInProgress(CatalogError, code=409):
    """Another request with the same idempotency key is still running."""


class UnprocessableEntityException(CatalogError, code=422):
    """The request is well-formed but contradictory, for example one property both set and removed."""


class PayloadTooLarge(CatalogError, code=413):
    """The request body exceeds a limit."""


# ---- 429, 500, 503 -------------------------------------------------------------------------------------------------


class _RetryLater(CatalogError):
    """Base of errors with `retry_after_s`: the delay in seconds until the client may retry."""

    retry_after_s: int

    def __init__(self, message: str, *, detail: tuple[str, ...] = (), retry_after_s: int = 1) -> None:
        super().__init__(message, detail=detail)
        self.retry_after_s = retry_after_s


class TooManyRequests(_RetryLater, code=429):
    """The request had no effect and can be retried. Replaces 503 for changes of catalog objects.

    Clients treat a 5xx status of a commit as "state unknown" (REST specification, commit errors).
    """


class ServiceUnavailableException(_RetryLater, code=503):
    """A dependency is down; the request had no effect. Catalog changes raise TooManyRequests instead."""


class InternalServerError(CatalogError, code=500):
    """An error in the catalog itself. Only the log has the details."""


class CommitStateUnknownException(CatalogError, code=500):
    """The commit may or may not have been applied. The client must not delete its files."""
