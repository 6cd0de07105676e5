# SPDX-License-Identifier: Apache-2.0
"""Settings for policy enforcement points that ask by AuthZEN: their names for types, actions and users."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta


class MappedResources(msgspec.Struct, frozen=True, kw_only=True):
    """A type of resources in the requests of policy enforcement points."""

    type: str
    """Type of object that the resources are, such as `table`."""
    name: str | None = None
    """Type in requests. By default the id of the entry."""
    actions: tuple[Annotated[str, Meta(pattern="^[^=]+=[a-z_]+$")], ...] = ()
    """Actions as `name=action`, such as `read=read_data`. By default all actions of the type, under their own names.
    """
    within: str | None = None
    """Namespace whose tables, views or generic tables the resources are, as `<warehouse id>/<level>/<level>`. The id of
    a resource is then its name in the namespace.
    """


class AuthZen(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions for policy enforcement points (AuthZEN)."""

    own_names: bool = True
    """Accept the types and actions of the gateway under their own names too."""
    provider: Annotated[str, Meta(pattern="^[a-z0-9-]+$")] | None = None
    """Identity provider of subject ids without `~`. Without it, such an id is no user."""
    subjects: tuple[Annotated[str, Meta(pattern="^[^=]+=(user|role)$")], ...] = ()
    """Further types of subjects, as `identity=user` or `team=role`."""
    types: Mapping[str, MappedResources] = MappingProxyType({})
