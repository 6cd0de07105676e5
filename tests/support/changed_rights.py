# SPDX-License-Identifier: Apache-2.0
"""Expand the rows of a comparison of two models to single rights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal
from gateway.fga.profile_diff import Change
from gateway.fga.world_diff import AccessChange

Tree = Mapping[ObjectKey, ObjectKey | None]
"""The container of each object; None above the server."""

Rights = set[tuple[str, ObjectKey]]


def changed_rights(rows: Iterable[AccessChange], who: Principal | None, tree: Tree, *, gained: bool) -> Rights:
    """Return the gained or lost rights of a principal by the rows, for every object of the tree.

    `who` is None for a user without any grant.
    """
    found: Rights = set()
    for row in rows:
        if who not in row.principals and (who is not None or row.principals):
            continue
        for key in tree:
            path = path_of(tree, key)
            if row.object in path and not any(each in path for each in row.apart_from):
                change = row.own if key == row.object else _below(row, path)
                found |= {(action, key) for action in (change.gained if gained else change.lost)}
    return found


def path_of(tree: Tree, key: ObjectKey) -> list[ObjectKey]:
    """Return the object and its containers, upwards."""
    path, above = [key], tree[key]
    while above is not None:
        path.append(above)
        above = tree[above]
    return path


def _below(row: AccessChange, path: list[ObjectKey]) -> Change:
    type = path[0].type
    kinds = {kind: change for kind, change in row.below if kind.partition("+")[0] == type.value}
    if not any("+" in kind for kind in kinds):
        return kinds.get(type.value, Change())
    nested = sum(each.type is ObjectType.NAMESPACE for each in path[1 : path.index(row.object)])
    if row.object.type is not ObjectType.NAMESPACE and type is not ObjectType.NAMESPACE:
        nested -= 1
    return kinds.get(f"{type.value}+{nested}" if nested else type.value, Change())
