# SPDX-License-Identifier: Apache-2.0
"""Check that the locations in a metadata document or commit lie inside the location of the table or view."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.iceberg.errors import InvalidLocation
from gateway.iceberg.locations import LocationSource
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile

__all__ = ["location_of_document", "require_inside"]


def require_inside(profile: StorageProfile, location: Location, locations: Iterable[LocationSource]) -> None:
    """Raise InvalidLocation if a path property leads out of the table's own location (LG-LOC-04, LG-LOC-05 in
    docs/threats.md).

    The message names the property.
    """
    for source in locations:
        try:
            target = location.scheme.parse(source.location, escapes_known=profile.escapes_known)
        except InvalidLocation as wrong:
            raise InvalidLocation(f"{source.source!r} is not a valid location: {wrong.message}") from None
        if not location.contains(target):
            raise InvalidLocation(f"{source.source!r} must be inside the table's location {location.prefix_text!r}")


def location_of_document(profile: StorageProfile, text: str, file: Location) -> Location:
    """Return the location in the text of the metadata document `file`.

    Raises InvalidLocation unless it is below the base location of `profile`, and the document lies in it.
    """
    location = profile.parse_location(text)
    if not location.contains(file, strict=True):
        raise InvalidLocation(
            f"The metadata file {file.text!r} must be inside the location that the file contains, "
            f"{location.prefix_text!r}"
        )
    return location
