# SPDX-License-Identifier: Apache-2.0
"""Read the files of the console: its modules and its vendored libraries.

Browsers load the modules as they are in the package. Their addresses contain a digest of all files, so that browsers
may cache them for ever. An import map gives the addresses of the libraries.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

FILES: Final = Path(__file__).parent / "ui_files"
VENDOR: Final = FILES / "vendor"

_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Library(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A package of the npm registry, of which some files are vendored.

    `imports` maps the names that modules import to files of the package. `why` is the reason for the choice.
    """

    name: str
    version: str
    license: str
    integrity: str
    why: str
    files: tuple[str, ...]
    imports: dict[str, str]

    @property
    def folder(self) -> str:
        """Return the folder of the library below `vendor`."""
        return self.name.removeprefix("@").replace("/", "-")


class _Libraries(msgspec.Struct, frozen=True):
    libraries: tuple[Library, ...]


LIBRARIES: Final = msgspec.json.decode((VENDOR / "libraries.json").read_bytes(), type=_Libraries).libraries


def media_type(name: str) -> str | None:
    """Return the media type of a file that browsers may load; None for all other names."""
    return _TYPES.get(Path(name).suffix) if name in _names() else None


def read(name: str) -> bytes:
    """Return the content of a file."""
    return (FILES / name).read_bytes()


@cache
def _names() -> frozenset[str]:
    """Return the names of the files that browsers may load, relative to `FILES`."""
    return frozenset(each.relative_to(FILES).as_posix() for each in FILES.rglob("*") if each.suffix in _TYPES)


@cache
def digest() -> str:
    """Return the digest of all files, which is part of their addresses."""
    whole = hashlib.sha256()
    for name in sorted(_names()):
        whole.update(name.encode() + b"\0" + hashlib.sha256(read(name)).digest())
    return whole.hexdigest()[:16]


@cache
def import_map() -> str:
    """Return the import map as JSON: the address of each library by the name that modules import."""
    imports = {
        name: f"/ui/{digest()}/vendor/{library.folder}/{file}"
        for library in LIBRARIES
        for name, file in library.imports.items()
    }
    return json.dumps({"imports": imports})


@cache
def import_map_source() -> str:
    """Return the expression that allows the import map in a Content-Security-Policy (CSP Level 3, section 2.3.1).

    Browsers accept import maps only inside of the page. The digest allows this text and no other one.
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(import_map().encode()).digest()).decode()}'"
