# SPDX-License-Identifier: Apache-2.0
"""Layouts of default locations below the base location of a warehouse.

Every layout puts the UUID of the table or view into the path. With a name alone, a new table would get the folder of an
older one of that name. Credentials of one table would then reach the files of the other.
"""

from typing import ClassVar
from urllib.parse import quote
from uuid import UUID

import msgspec

from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.location import BaseLocation, Location

__all__ = ["DefaultLayout", "FullHierarchyLayout", "StorageLayout", "TabularOnlyLayout", "default_location"]


class _Layout(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, tag_field="type"):
    """Base class of the three layouts."""


class DefaultLayout(_Layout, frozen=True, tag="default"):
    """Flat layout: `<base>/<uuid>`."""

    tabular: ClassVar[str] = "{uuid}"


class TabularOnlyLayout(_Layout, frozen=True, tag="tabular-only"):
    """Flat layout `<base>/<tabular>`. The template contains `{uuid}` and may contain `{name}`."""

    tabular: str

    def __post_init__(self) -> None:
        _check_template("tabular", self.tabular)


class FullHierarchyLayout(_Layout, frozen=True, tag="full-hierarchy"):
    """Nested layout `<base>/<namespace>/…/<tabular>`, with one segment for each level of the namespace.

    Both templates contain `{uuid}` and may contain `{name}`.
    """

    namespace: str
    tabular: str

    def __post_init__(self) -> None:
        _check_template("namespace", self.namespace)
        _check_template("tabular", self.tabular)


StorageLayout = DefaultLayout | TabularOnlyLayout | FullHierarchyLayout


def default_location(
    base: BaseLocation, layout: StorageLayout, namespace: tuple[tuple[str, UUID], ...], name: str, uuid: UUID
) -> Location:
    """Return the default location of a new table or view.

    `namespace` is the path of its namespace as pairs (name, id), outermost level first. Raises `InvalidLocation` if the
    rendered path is too long.
    """
    segments = [_render(layout.tabular, name, uuid)]
    if isinstance(layout, FullHierarchyLayout):
        segments = [_render(layout.namespace, *level) for level in namespace] + segments
    return base.child(*segments)


def _render(template: str, name: str, uuid: UUID) -> str:
    # All but the unreserved characters (RFC 3986, section 2.3) are percent-encoded, so no pattern character remains.
    # Separators and the percent sign become underscores: a client that decodes twice must not restore them.
    encoded = quote(name, safe="").replace("%2F", "_").replace("%25", "_").replace("%5C", "_")
    return template.replace("{uuid}", str(uuid)).replace("{name}", encoded)


def _check_template(field: str, template: str) -> None:
    rest = template.replace("{uuid}", "").replace("{name}", "")
    if "{uuid}" not in template:
        raise InvalidStorageProfile(f"Storage layout field {field!r} must contain {{uuid}}")
    if len(template) > 128 or not all(c.isascii() and (c.isalnum() or c in "-_=") for c in rest):
        raise InvalidStorageProfile(
            f"Storage layout field {field!r} must consist of {{name}}, {{uuid}}, ASCII letters, digits and -_= only, "
            "with at most 128 characters"
        )
