# SPDX-License-Identifier: Apache-2.0
"""Write metadata files to the object store, and delete the files of failed changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.errors import (
    CommitStateUnknownException,
    InvalidLocation,
    NotFoundException,
    UnexpectedFilesInLocation,
)
from gateway.iceberg.metadata import TableMetadata, encode_table_metadata
from gateway.iceberg.metadata_file import compress, decompress, next_metadata_location, uses_gzip
from gateway.iceberg.views import ViewMetadata, encode_view_metadata
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.scope.profile import longest_life
from gateway.storage.errors import (
    FileMissing,
    ShortTermCredentialError,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.registry import parse_location

_log = structlog.get_logger("catalog.metadata_files")

_NOT_DELETED = (StorageUnavailable, StorageDenied, StorageEndpointRefused, ShortTermCredentialError)


AnyMetadata = TableMetadata | ViewMetadata
Written = tuple[str, bytes]
"""The location of a metadata file, and its document without compression."""


class MetadataFiles(UseCases):
    """The gateway's own reads and writes in a warehouse's store.

    `limits` bound the size of the files that are read. The use cases apply the same limits to tables and views.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._vendor = kit.vendor
        self._pending = kit.pending_files
        self._files = kit.files
        self._storage = kit.storage
        self.limits = kit.limits

    @asynccontextmanager
    async def write_one(
        self, warehouse: ResolvedWarehouse, metadata: AnyMetadata, previous: str | None
    ) -> AsyncIterator[Written]:
        """Write one document as a new file. Yield (location, uncompressed document). Otherwise as `write_all`."""
        async with self.write_all(warehouse, [(metadata, previous)]) as (written,):
            yield written

    @asynccontextmanager
    async def write_all(
        self, warehouse: ResolvedWarehouse, documents: Sequence[tuple[AnyMetadata, str | None]]
    ) -> AsyncIterator[list[Written]]:
        """Write each document as a new file, concurrently. Yield a list of (location, uncompressed document) in order.

        Each document comes with the location of the metadata file that it replaces, None for the first. If a write or
        the `with` block fails, all files are deleted. They are kept if the outcome of the commit is unknown, because a
        table may point to them.
        """
        written = [_named(metadata, previous) for metadata, previous in documents]
        locations = [location for location, _ in written]
        if locations:
            # Recorded before any file is written, so that the cleanup finds the files of a process that was killed.
            await self._pending.note(warehouse.id, locations)
        try:
            async with asyncio.TaskGroup() as writing:
                for (metadata, _), (location, document) in zip(documents, written, strict=True):
                    writing.create_task(self._write(warehouse, location, document, uses_gzip(metadata.properties)))
            yield written
        except (CommitUnknown, CommitStateUnknownException, asyncio.CancelledError):
            # The COMMIT of a cancelled request may have succeeded. Then the table refers to these files, so they are
            # kept.
            raise
        except BaseException as failed:
            await self.delete_unnamed(warehouse, locations)
            if isinstance(failed, BaseExceptionGroup):
                raise failed.exceptions[0] from None
            raise

    async def _write(self, warehouse: ResolvedWarehouse, location: str, document: bytes, gzip: bool) -> None:
        credential = await self._storage.of(warehouse)
        if credential is None:
            raise StorageDenied(
                "The warehouse has no storage credential, so metadata cannot be written. Set one with POST "
                "/management/v1/warehouse/<id>/storage-credential."
            )
        # Compression of a large document takes milliseconds, so it does not run on the event loop.
        content = await asyncio.to_thread(compress, document) if gzip else document
        await self._files.write(warehouse.storage_profile, credential, location, content)

    async def read(self, warehouse: ResolvedWarehouse, file: Location, folder: Location) -> bytes:
        """Return the decompressed content of a metadata file that the caller named. It is read with a credential for
        its `folder` only.

        The use case has checked that the caller may read there and that no other object owns the folder. Raises
        NotFoundException for a missing file, FileTooLarge, and errors of status 400 for a damaged file or one that
        exceeds the limit when decompressed.
        """
        own = await self._storage.of(warehouse)
        if own is None:
            raise StorageDenied(
                "The warehouse has no storage credential, so metadata cannot be read. Set one with POST "
                "/management/v1/warehouse/<id>/storage-credential."
            )
        profile = warehouse.storage_profile
        credential = await self._vendor.narrowed(
            profile=profile,
            profile_version=f"{warehouse.id}/{warehouse.profile_version}",
            credential=own,
            location=folder,
            level=AccessLevel.READ,
            seconds=longest_life(profile),
            purpose="register",
        )
        try:
            data = await self._files.read(profile, credential, file.text, max_bytes=self.limits.file_bytes)
        except FileMissing:
            raise _missing(file) from None
        return await asyncio.to_thread(decompress, data, max_bytes=self.limits.document_bytes)

    async def refuse_pending(self, file: Location) -> None:
        """Raise NotFoundException for a file that is recorded for cleanup, or that no table or view points to yet."""
        if await self._pending.noted(file.text):
            raise _missing(file)

    async def defer_cleanup(self, file: Location) -> None:
        """Restart the cleanup window of a file that is recorded for deletion, because a registration is about to use
        it.
        """
        await self._pending.keep(file.text)

    async def delete_unnamed(self, warehouse: ResolvedWarehouse, locations: Sequence[str]) -> None:
        """Delete recorded files to which no table or view points. Files that cannot be deleted now remain for the
        housekeeping.
        """
        if locations and await self._delete(warehouse, locations):
            await self._pending.forget(locations)

    async def _delete(self, warehouse: ResolvedWarehouse, locations: Sequence[str]) -> bool:
        try:
            credential = await self._storage.of(warehouse)
            if credential is None:
                return False
            await self._files.delete(warehouse.storage_profile, credential, locations)
        except (*_NOT_DELETED, DatabaseUnavailable) as left:
            _log.warning("metadata_file.left_behind", files=list(locations), reason=str(left))
            return False
        return True

    async def require_empty(self, warehouse: ResolvedWarehouse, location: Location) -> None:
        """Raise UnexpectedFilesInLocation if a location that the client chose contains files."""
        credential = await self._storage.of(warehouse)
        if credential is None:
            raise StorageDenied(
                "The warehouse has no storage credential, so the location cannot be checked. Set one with POST "
                "/management/v1/warehouse/<id>/storage-credential."
            )
        if not await self._files.is_empty(warehouse.storage_profile, credential, location):
            raise UnexpectedFilesInLocation(
                f"Unexpected files in location, tabular locations have to be empty: {location.text}. Choose another "
                "location, or remove the files."
            )


def own_files(location: Location, files: Iterable[str]) -> list[str]:
    """Return the metadata files that lie in the location of the table or view itself. The other files of a registered
    object may belong to another owner and must not be deleted with it.
    """
    return [file for file in files if _lies_in(location, file)]


def _missing(file: Location) -> NotFoundException:
    return NotFoundException(f"Failed to open input stream for file: {file.text}")


def _lies_in(location: Location, file: str) -> bool:
    try:
        return location.contains(parse_location(file))
    except InvalidLocation:
        return False


def _named(metadata: AnyMetadata, previous: str | None) -> Written:
    """Return the location of the new file and the encoded document."""
    location = next_metadata_location(
        metadata.location,
        previous,
        uuid=uuid7(),
        gzip=uses_gzip(metadata.properties),
        metadata_path=metadata.properties.get("write.metadata.path"),
    )
    if isinstance(metadata, ViewMetadata):
        return location, encode_view_metadata(metadata)
    return location, encode_table_metadata(metadata)
