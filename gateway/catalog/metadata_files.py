# SPDX-License-Identifier: Apache-2.0
"""Writing metadata documents to the store, and taking back what a failed change left there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.resolved import ResolvedWarehouse
from gateway.db.credentials import StorageCredentials
from gateway.db.pending_files import PendingFiles
from gateway.iceberg.errors import (
    CommitStateUnknownException,
    InvalidLocation,
    NotFoundException,
    UnexpectedFilesInLocation,
)
from gateway.iceberg.limits import Limits
from gateway.iceberg.metadata import TableMetadata, encode_table_metadata
from gateway.iceberg.metadata_file import compress, decompress, next_metadata_location, uses_gzip
from gateway.iceberg.views import ViewMetadata, encode_view_metadata
from gateway.scope.level import AccessLevel
from gateway.scope.location import Location
from gateway.scope.profile import longest_life
from gateway.storage.errors import (
    FileMissing,
    ShortTermCredentialError,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.files import Files
from gateway.storage.registry import parse_location, stored_profile
from gateway.vending.vendor import Vendor

_log = structlog.get_logger("catalog.metadata_files")

_NOT_DELETED = (StorageUnavailable, StorageDenied, StorageEndpointRefused, ShortTermCredentialError)


AnyMetadata = TableMetadata | ViewMetadata
Written = tuple[str, bytes]
"""Where a metadata file lies, and the document in it as it is sent."""


class MetadataFiles:
    """The gateway's own reading and writing in a warehouse's store.

    `limits` bound what is read, and for the use cases what tables and views may become.
    """

    def __init__(
        self,
        *,
        files: Files,
        storage: StorageCredentials,
        vendor: Vendor,
        pending: PendingFiles,
        limits: Limits | None = None,
    ) -> None:
        self._vendor = vendor
        self._pending = pending
        self._files = files
        self._storage = storage
        self.limits = limits or Limits()

    @asynccontextmanager
    async def written(
        self, warehouse: ResolvedWarehouse, metadata: AnyMetadata, previous: str | None
    ) -> AsyncIterator[Written]:
        """As `all_written`, for one document."""
        async with self.all_written(warehouse, [(metadata, previous)]) as (written,):
            yield written

    @asynccontextmanager
    async def all_written(
        self, warehouse: ResolvedWarehouse, documents: Sequence[tuple[AnyMetadata, str | None]]
    ) -> AsyncIterator[list[Written]]:
        """Write each document as a new file, at once; yields (location, document as it is sent) of each, in order.

        The documents come with the metadata files they follow on. If one cannot be written or the body raises, all of
        them are removed again, unless the outcome of their commit is unknown: then a pointer may name them.
        """
        written = [_named(metadata, previous) for metadata, previous in documents]
        locations = [location for location, _ in written]
        if locations:
            # Before any file is written: a process that is killed from here on leaves what the sweeper finds.
            await self._pending.note(warehouse.id, locations)
        try:
            async with asyncio.TaskGroup() as writing:
                for (metadata, _), (location, document) in zip(documents, written, strict=True):
                    writing.create_task(self._write(warehouse, location, document, uses_gzip(metadata.properties)))
            yield written
        except (CommitUnknown, CommitStateUnknownException, asyncio.CancelledError):
            # A cancelled request may have been waiting for its COMMIT: the pointer may name these files.
            raise
        except BaseException as failed:
            await self.take_back(warehouse, locations)
            if isinstance(failed, BaseExceptionGroup):
                raise failed.exceptions[0] from None
            raise

    async def _write(self, warehouse: ResolvedWarehouse, location: str, document: bytes, gzip: bool) -> None:
        credential = await self._storage.of(warehouse)
        if credential is None:
            raise StorageDenied("The warehouse has no storage credential to write metadata with.")
        # Compressing takes milliseconds for large documents: not on the event loop.
        content = await asyncio.to_thread(compress, document) if gzip else document
        await self._files.write(stored_profile(warehouse.profile), credential, location, content)

    async def read(self, warehouse: ResolvedWarehouse, file: Location, folder: Location) -> bytes:
        """The document in somebody's metadata file, unpacked, read with a credential that reaches its folder alone.

        The caller has settled that the reader may read there and that the folder is nobody else's. Raises
        NotFoundException when there is no such file, FileTooLarge, and 400 for what is damaged or unpacks to more than
        is taken.
        """
        own = await self._storage.of(warehouse)
        if own is None:
            raise StorageDenied("The warehouse has no storage credential to read metadata with.")
        profile = stored_profile(warehouse.profile)
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

    async def refuse_superfluous(self, file: Location) -> None:
        """Raise NotFoundException for a file that is deleted at this moment, or was not named by what it is for yet."""
        if await self._pending.noted(file.text):
            raise _missing(file)

    async def keep(self, file: Location) -> None:
        """Have a file that may be noted as superfluous stay for a clean-up window from now on: it is about to be read
        and named.
        """
        await self._pending.keep(file.text)

    async def take_back(self, warehouse: ResolvedWarehouse, locations: Sequence[str]) -> None:
        """Delete noted files that nothing names; what cannot be deleted now is left to the sweeper."""
        if locations and await self._delete(warehouse, locations):
            await self._pending.forget(locations)

    async def _delete(self, warehouse: ResolvedWarehouse, locations: Sequence[str]) -> bool:
        try:
            credential = await self._storage.of(warehouse)
            if credential is None:
                return False
            await self._files.delete(stored_profile(warehouse.profile), credential, locations)
        except (*_NOT_DELETED, DatabaseUnavailable) as left:
            _log.warning("metadata_file.left_behind", files=list(locations), reason=str(left))
            return False
        return True

    async def require_empty(self, warehouse: ResolvedWarehouse, location: Location) -> None:
        """Raise UnexpectedFilesInLocation when something lies below an explicit location already."""
        credential = await self._storage.of(warehouse)
        if credential is None:
            raise StorageDenied("The warehouse has no storage credential to look into the location with.")
        if not await self._files.is_empty(stored_profile(warehouse.profile), credential, location):
            raise UnexpectedFilesInLocation(f"Unexpected files in location: {location.text}")


def own_files(location: Location, files: Iterable[str]) -> list[str]:
    """Those of the metadata files that lie in the place of the table or view: the others, of a registered one, may be
    somebody else's and are not to be deleted with it.
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
    """The document's text and the location of its new file."""
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
