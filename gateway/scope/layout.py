# SPDX-License-Identifier: Apache-2.0
"""How default locations are laid out below a warehouse's base. Every layout puts the table's UUID into its path.

A name alone would give a new table the folder, and with it the credentials, of an old one with the same name.
"""

from typing import ClassVar
from urllib.parse import quote
from uuid import UUID

import msgspec

from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.location import BaseLocation, Location

__all__ = ["DefaultLayout", "FullHierarchyLayout", "StorageLayout", "TabularOnlyLayout", "default_location"]


class _Layout(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, tag_field="type"):
    """Common options of the three layouts."""


class DefaultLayout(_Layout, frozen=True, tag="default"):
    """Flat: `<base>/<uuid>`."""

    tabular: ClassVar[str] = "{uuid}"


class TabularOnlyLayout(_Layout, frozen=True, tag="tabular-only"):
    """`<base>/<tabular>`, a template of `{name}` and `{uuid}`."""

    tabular: str

    def __post_init__(self) -> None:
        _check_template("tabular", self.tabular)


class FullHierarchyLayout(_Layout, frozen=True, tag="full-hierarchy"):
    """`<base>/<namespace>/…/<tabular>`, one segment for each level of the namespace."""

    namespace: str
    tabular: str

    def __post_init__(self) -> None:
        _check_template("namespace", self.namespace)
        _check_template("tabular", self.tabular)


StorageLayout = DefaultLayout | TabularOnlyLayout | FullHierarchyLayout


def default_location(
    base: BaseLocation, layout: StorageLayout, namespace: tuple[tuple[str, UUID], ...], name: str, uuid: UUID
) -> Location:
    """The location of a new table or view: `namespace` is its path as (name, id), outermost first.

    Raises `InvalidLocation` when the rendered path is too long.
    """
    segments = [_render(layout.tabular, name, uuid)]
    if isinstance(layout, FullHierarchyLayout):
        segments = [_render(layout.namespace, *level) for level in namespace] + segments
    return base.child(*segments)


def _render(template: str, name: str, uuid: UUID) -> str:
    # Percent-encoded but for the unreserved characters (RFC 3986 section 2.3), so no pattern character stays.
    # Separators and the percent sign itself become underscores: a second decoding somewhere must not bring them back.
    encoded = quote(name, safe="").replace("%2F", "_").replace("%25", "_").replace("%5C", "_")
    return template.replace("{uuid}", str(uuid)).replace("{name}", encoded)


def _check_template(field: str, template: str) -> None:
    rest = template.replace("{uuid}", "").replace("{name}", "")
    if "{uuid}" not in template:
        raise InvalidStorageProfile(f"Storage layout field {field!r} must contain {{uuid}}")
    if len(template) > 128 or not all(c.isascii() and (c.isalnum() or c in "-_=") for c in rest):
        raise InvalidStorageProfile(
            f"Storage layout field {field!r} may hold {{name}}, {{uuid}}, ASCII letters, digits and -_= only, "
            "at most 128 characters"
        )
