# SPDX-License-Identifier: Apache-2.0
"""Validate a metadata file of a caller: that the whole document is valid, and that all its paths lie inside its
location.

The parser holds the GIL until it is done. For a large or malicious document it needs seconds and gigabytes. So this
module is also a program: `python -m gateway.storage.examine` validates one file with limited memory and time, without
the gateway's environment and connections. It imports pure modules and no client of a store.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from gateway.iceberg.errors import CatalogError, MetadataTooLarge
from gateway.iceberg.limits import Limits
from gateway.iceberg.locations import inner_locations, location_properties
from gateway.iceberg.metadata import decode_table_metadata, encode_table_metadata
from gateway.iceberg.views import decode_view_metadata, encode_view_metadata
from gateway.scope.location_bounds import location_of_document, require_inside
from gateway.storage.registry import decode_profile, parse_location

__all__ = ["SECONDS", "Answer", "Examined", "Kind", "Question", "Refused", "examine"]

SECONDS: Final = 60
"""The CPU time limit of one validation in seconds."""

_BASE_BYTES: Final = 256 * 1024 * 1024
_BYTES_FOR_EACH: Final = 32
"""Address space limits: of the interpreter, and for each byte of the largest allowed document."""


class Kind(StrEnum):
    """The expected content of the file."""

    TABLE = "table"
    VIEW = "view"


class Question(Struct, frozen=True, kw_only=True):
    """A document and its location. `profile` is the warehouse's storage profile as stored."""

    kind: Kind
    document: bytes
    file: str
    profile: bytes
    limits: Limits


class Examined(Struct, frozen=True, kw_only=True, tag_field="answer", tag="examined"):
    """A valid document in its stored form, with the values that the catalog stores beside it."""

    document: bytes
    location: str
    uuid: str
    format_version: int


class Refused(Struct, frozen=True, kw_only=True, tag_field="answer", tag="refused"):
    """The reason why a document was rejected: type and text of an error of status 400."""

    type: str
    message: str


Answer = Examined | Refused


def examine(question: Question) -> Examined:
    """Validate the document. Raises errors of status 400."""
    profile = decode_profile(question.profile)
    file = parse_location(question.file)
    if question.kind is Kind.VIEW:
        view = decode_view_metadata(question.document, limits=question.limits)
        location = location_of_document(profile, view.location, file)
        require_inside(profile, location, location_properties(view.properties))
        document, version = encode_view_metadata(view), view.format_version
        return Examined(document=document, location=location.text, uuid=view.view_uuid, format_version=version)
    table = decode_table_metadata(question.document, limits=question.limits)
    location = location_of_document(profile, table.location, file)
    require_inside(profile, location, inner_locations(table))
    document, version = encode_table_metadata(table), table.format_version
    return Examined(document=document, location=location.text, uuid=table.table_uuid, format_version=version)


def main() -> None:
    """Validate the `Question` on standard input and write the `Answer` to standard output, both as MessagePack."""
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Question)
    max_bytes = _BASE_BYTES + question.limits.document_bytes * _BYTES_FOR_EACH
    # Not every system supports all of these limits, so their errors are ignored. The parent process also limits the
    # time.
    for kind, bound in ((resource.RLIMIT_AS, max_bytes), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (bound, bound))
    answer: Answer
    try:
        answer = examine(question)
    except CatalogError as refused:
        answer = Refused(type=refused.type, message=refused.message)
    except MemoryError:
        answer = Refused(
            type=MetadataTooLarge.type,
            message=(
                "Reading the metadata takes too much memory. Make the metadata smaller, for example by expiring "
                "snapshots."
            ),
        )
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    main()
