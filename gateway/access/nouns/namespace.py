# SPDX-License-Identifier: Apache-2.0
"""Namespaces: folders of tables, views and namespaces."""

from __future__ import annotations

from gateway.access.nouns.card import Card
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import NamespaceIdRef, NamespaceRef, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.nouns.warehouse import PRIVILEGES_BELOW_PROJECTS
from gateway.iceberg.errors import NamespaceActionForbidden, NoSuchNamespaceException

CARD = Card(
    type=ObjectType.NAMESPACE,
    row=ResolvedNamespace,
    refs=(NamespaceRef, NamespaceIdRef),
    parents=(ObjectType.WAREHOUSE, ObjectType.NAMESPACE),
    not_found=NoSuchNamespaceException,
    forbidden=NamespaceActionForbidden,
    visible_by=Can.GET_METADATA,
    queried_by=Can.INCLUDE_IN_LIST,
    privileges=(*PRIVILEGES_BELOW_PROJECTS, Privilege.CREATE, Privilege.MODIFY, Privilege.ENFORCER),
    policy_operations={
        Can.ACCEPT_MOVED_NAMESPACE: "move_namespace",
        Can.DELETE: "drop_namespace",
        Can.GET_METADATA: "load_namespace",
    },
)
