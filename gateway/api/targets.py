# SPDX-License-Identifier: Apache-2.0
"""What the endpoints about rights point at, read off their paths: one function for each kind of object."""

from __future__ import annotations

from collections.abc import Callable

from gateway.access.refs import (
    GenericTableIdRef,
    KeptGenericTableRef,
    KeptTableRef,
    KeptViewRef,
    NamespaceIdRef,
    ProjectRef,
    Ref,
    RoleRef,
    ServerRef,
    TableIdRef,
    ViewIdRef,
    WarehouseRef,
)
from gateway.api.context import Ctx

Target = Callable[[Ctx], Ref]


def server(ctx: Ctx) -> ServerRef:
    """The server."""
    return ServerRef()


def default_project(ctx: Ctx) -> ProjectRef:
    """The project of the request."""
    return ctx.project()


def project(ctx: Ctx) -> ProjectRef:
    """The project in the path."""
    return ctx.project_in_path()


def warehouse(ctx: Ctx) -> WarehouseRef:
    """The warehouse in the path."""
    return WarehouseRef(ctx.uuid("warehouse_id"))


def namespace(ctx: Ctx) -> NamespaceIdRef:
    """The namespace in the path, whatever warehouse it lies in."""
    return NamespaceIdRef(ctx.uuid("namespace_id"))


def namespace_within(ctx: Ctx) -> NamespaceIdRef:
    """The namespace in the path, in the warehouse in the path."""
    return NamespaceIdRef(ctx.uuid("namespace_id"), ctx.uuid("warehouse_id"))


def table(ctx: Ctx) -> TableIdRef:
    """The table in the path."""
    return TableIdRef(ctx.uuid("warehouse_id"), ctx.uuid("table_id"))


def view(ctx: Ctx) -> ViewIdRef:
    """The view in the path."""
    return ViewIdRef(ctx.uuid("warehouse_id"), ctx.uuid("view_id"))


def generic_table(ctx: Ctx) -> GenericTableIdRef:
    """The generic table in the path."""
    return GenericTableIdRef(ctx.uuid("warehouse_id"), ctx.uuid("generic_table_id"))


def kept_table(ctx: Ctx) -> KeptTableRef:
    """The table in the path, also one that was dropped and can come back: its grants come back with it."""
    return KeptTableRef(ctx.uuid("warehouse_id"), ctx.uuid("table_id"))


def kept_view(ctx: Ctx) -> KeptViewRef:
    """As `kept_table`, for a view."""
    return KeptViewRef(ctx.uuid("warehouse_id"), ctx.uuid("view_id"))


def kept_generic_table(ctx: Ctx) -> KeptGenericTableRef:
    """As `kept_table`, for a generic table."""
    return KeptGenericTableRef(ctx.uuid("warehouse_id"), ctx.uuid("generic_table_id"))


def role(ctx: Ctx) -> RoleRef:
    """The role in the path."""
    return RoleRef(ctx.uuid("role_id"))
