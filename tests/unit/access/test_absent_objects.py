# SPDX-License-Identifier: Apache-2.0
"""Questions about absent objects cost OpenFGA as much as those about invisible ones (LG-DIS-01, LG-DIS-18)."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest

from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck, questions_about
from gateway.access.door.questions import above_of, inside_of
from gateway.access.nouns.refs import GenericTable, NamespaceIdRef, NamespaceRef, Ref, Table, TabularRef, View
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import AbsentLocation, Resolution, ResolvedNamespace
from gateway.fga.relationships import contextual_containers
from tests.support.door import world

_TOP = world.ROWS[NamespaceRef(world.WAREHOUSE_ID, world.OUTER)]
_NOWHERE = UUID(int=1)

#: References by id, each to an object of the top level or of a top-level namespace.
BY_ID: list[Ref] = [
    TabularRef(Table, world.WAREHOUSE_ID, _NOWHERE),
    TabularRef(View, world.WAREHOUSE_ID, _NOWHERE),
    TabularRef(GenericTable, world.WAREHOUSE_ID, _NOWHERE),
    TabularRef(Table, world.WAREHOUSE_ID, _NOWHERE, dropped=True),
    NamespaceIdRef(_NOWHERE, world.WAREHOUSE_ID),
]


def _present(ref: Ref) -> Resolution:
    """Return the resolution in which the object exists."""
    assert isinstance(_TOP, ResolvedNamespace)
    of_type = {row.key.type: row for row in world.ROWS.values()}
    row = _TOP if isinstance(ref, NamespaceIdRef) else msgspec.structs.replace(of_type[ref.type], namespace=_TOP)
    return Resolution(rows={ref: row}, now=world.NOW, caller_roles=())


def _absent(ref: Ref) -> Resolution:
    return Resolution(rows={}, now=world.NOW, caller_roles=(), absent={ref: AbsentLocation(world.PROJECT_ID, ())})


@pytest.mark.threat("LG-DIS-18")
@pytest.mark.parametrize("ref", BY_ID, ids=repr)
def test_an_absent_id_has_as_many_questions_and_levels_as_an_invisible_object(ref: Ref) -> None:
    checks = [HypotheticalCheck(world.ALICE, relation, ref) for relation in (Can.GET_METADATA, Can.READ_ASSIGNMENTS)]
    there, absent = questions_about(checks, _present(ref)), questions_about(checks, _absent(ref))
    assert len(there) == len(absent) == 2
    for one, other in zip(there, absent, strict=True):
        assert one.object != other.object
        assert [key.type for key in one.inside] == [key.type for key in other.inside]
        # The warehouse and its project are the real ones, so OpenFGA reads the same grants there.
        assert one.inside[-2:] == other.inside[-2:]
    # The parents of the stand-in, up to an object that exists.
    edges = contextual_containers(absent, 100)
    assert len(edges) == len(there[0].inside) - 1
    assert edges[-1].user == f"warehouse:{world.WAREHOUSE_ID}"


def test_an_id_in_an_absent_warehouse_has_no_containers() -> None:
    for ref in (BY_ID[0], NamespaceIdRef(_NOWHERE)):
        nothing = Resolution(rows={}, now=world.NOW, caller_roles=())
        assert (above_of(ref, nothing), inside_of(ref, nothing)) == ((), ())
