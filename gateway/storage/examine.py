# SPDX-License-Identifier: Apache-2.0
"""Examining a metadata file of somebody else: the whole document, and that everything in it lies inside its location.

Parsing a document holds the interpreter until it is done, and a large or hostile one takes seconds and gigabytes. So
this is also a program: `python -m gateway.storage.examine` examines one file and ends, with bounded memory and time,
and has neither an environment nor a network connection of anybody. It imports pure modules, and no client of a store.
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
from gateway.scope.places import place_of_document, require_inside
from gateway.storage.registry import decode_profile, parse_location

__all__ = ["SECONDS", "Answer", "Examined", "Kind", "Question", "Refused", "examine"]

SECONDS: Final = 60
"""Longest time one examination may compute."""

_BASE_BYTES: Final = 256 * 1024 * 1024
_BYTES_FOR_EACH: Final = 32
"""Address space: what the interpreter takes, and what a byte of a document may take while it is examined."""


class Kind(StrEnum):
    """What the file is said to describe."""

    TABLE = "table"
    VIEW = "view"


class Question(Struct, frozen=True, kw_only=True):
    """One document with where it was found; `profile` is the warehouse's storage profile as it is stored."""

    kind: Kind
    document: bytes
    file: str
    profile: bytes
    limits: Limits


class Examined(Struct, frozen=True, kw_only=True, tag_field="answer", tag="examined"):
    """A document that may be registered, as it will be stored, and what the catalog keeps of it beside."""

    document: bytes
    location: str
    uuid: str
    format_version: int


class Refused(Struct, frozen=True, kw_only=True, tag_field="answer", tag="refused"):
    """Why a document may not be registered: the type and text of an error of status 400."""

    type: str
    message: str


Answer = Examined | Refused


def examine(question: Question) -> Examined:
    """Check the document. Raises errors of status 400."""
    profile = decode_profile(question.profile)
    file = parse_location(question.file)
    if question.kind is Kind.VIEW:
        view = decode_view_metadata(question.document, limits=question.limits)
        location = place_of_document(profile, view.location, file)
        require_inside(profile, location, location_properties(view.properties))
        document, version = encode_view_metadata(view), view.format_version
        return Examined(document=document, location=location.text, uuid=view.view_uuid, format_version=version)
    table = decode_table_metadata(question.document, limits=question.limits)
    location = place_of_document(profile, table.location, file)
    require_inside(profile, location, inner_locations(table))
    document, version = encode_table_metadata(table), table.format_version
    return Examined(document=document, location=location.text, uuid=table.table_uuid, format_version=version)


def main() -> None:
    """Examine the question on standard input; the answer goes to standard output, both as MessagePack."""
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Question)
    most = _BASE_BYTES + question.limits.document_bytes * _BYTES_FOR_EACH
    # Not every system bounds both; the caller bounds the time once more.
    for kind, bound in ((resource.RLIMIT_AS, most), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (bound, bound))
    answer: Answer
    try:
        answer = examine(question)
    except CatalogError as refused:
        answer = Refused(type=refused.type, message=refused.message)
    except MemoryError:
        answer = Refused(type=MetadataTooLarge.type, message="The metadata takes too much memory to be read")
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    main()
