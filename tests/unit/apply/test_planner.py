# SPDX-License-Identifier: Apache-2.0
"""Properties of the planner: it reaches the desired state in an order that the server accepts, and changes no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.apply.planner import Kept, MissingObjects, Plan, plan
from gateway.apply.state import SERVER, Action, Address, Kind, Resource, State

PROJECT = Address(Kind.PROJECT, "shop")
ROLE, OTHER_ROLE = Address(Kind.ROLE, "analysts", PROJECT), Address(Kind.ROLE, "leads", PROJECT)
WAREHOUSE = Address(Kind.WAREHOUSE, "main", PROJECT)
SALES = Address(Kind.NAMESPACE, "sales", WAREHOUSE)
RAW = Address(Kind.NAMESPACE, "raw", SALES)
HR = Address(Kind.NAMESPACE, "hr", WAREHOUSE)
TABLE = Address(Kind.TABLE, "orders", SALES)
OBJECTS = (PROJECT, ROLE, OTHER_ROLE, WAREHOUSE, SALES, RAW, HR)
GRANTS = tuple(
    Address(Kind.GRANT, f"{privilege} user:oidc~{user}", on)
    for on in (PROJECT, ROLE, WAREHOUSE, SALES, RAW)
    for privilege in ("select", "modify")
    for user in ("ann", "bob")
)
MEMBERS = tuple(Address(Kind.MEMBER, f"user:oidc~{user}", ROLE) for user in ("ann", "bob"))
ALL = (*OBJECTS, *GRANTS, *MEMBERS)
LISTS = frozenset(
    {
        *((Kind.ROLE, PROJECT), (Kind.WAREHOUSE, PROJECT), (Kind.MEMBER, ROLE), (Kind.NAMESPACE, WAREHOUSE)),
        *((Kind.NAMESPACE, SALES), (Kind.NAMESPACE, HR)),
        *((Kind.GRANT, each) for each in OBJECTS),
    }
)

_FIELDS = st.dictionaries(st.sampled_from(["name", "properties.a", "properties.b"]), st.sampled_from(["x", "y"]))


@st.composite
def states(draw: st.DrawFn, *, scoped: bool = True) -> State:
    """Return a state in which every resource has its parent."""
    chosen = draw(st.sets(st.sampled_from(ALL)))
    whole = {above for each in chosen for above in (each, *each.ancestors())}
    found = {each: Resource(each, draw(_FIELDS), open_prefixes=("properties.",)) for each in whole}
    scopes = {(kind, on) for kind, on in LISTS if on in whole} if scoped else set()
    return State(found, frozenset(draw(st.sets(st.sampled_from(sorted(scopes, key=str)))) if scopes else scopes))


def _server(present: State, planned: Plan) -> Mapping[Address, Mapping[str, Any]]:
    """Make the changes as the server does: it refuses to create without a parent, and to remove what has namespaces."""
    found: dict[Address, dict[str, Any]] = {each.address: dict(each.fields) for each in present.resources.values()}
    for change in planned.changes:
        address = change.address
        if change.action is Action.REMOVE:
            inner = [each for each in found if address in each.ancestors()]
            assert not [each for each in inner if each.kind is Kind.NAMESPACE], f"{address} is not empty"
            for each in (address, *inner):
                del found[each]
            continue
        assert address.parent is None or address.parent in found, f"{address} has no parent yet"
        assert (address in found) is (change.action is Action.UPDATE)
        fields = found.setdefault(address, {})
        for field in change.fields:
            assert fields.get(field.name) == field.before
            fields[field.name] = field.after
        found[address] = {name: value for name, value in fields.items() if value is not None}
    return found


def _state(found: Mapping[Address, Mapping[str, Any]]) -> State:
    return State({address: Resource(address, fields) for address, fields in found.items()})


@given(desired=states(), present=states(), prune=st.booleans(), containers=st.booleans())
def test_changes_reach_the_desired_state_and_a_second_plan_is_empty(
    desired: State, present: State, prune: bool, containers: bool
) -> None:
    reached = _server(present, plan(desired, present, prune=prune, prune_containers=containers))
    for address, resource in desired.resources.items():
        assert resource.fields.items() <= reached[address].items()
    assert plan(desired, _state(reached), prune=prune, prune_containers=containers).changes == ()


@given(desired=states(), present=states())
def test_without_prune_no_change_concerns_an_undeclared_resource_or_field(desired: State, present: State) -> None:
    for change in plan(desired, present).changes:
        assert change.action is not Action.REMOVE
        assert {each.name for each in change.fields} <= set(desired.resources[change.address].fields)


@given(desired=states(), present=states(), containers=st.booleans())
def test_prune_removes_only_within_lists_of_the_file(desired: State, present: State, containers: bool) -> None:
    planned = plan(desired, present, prune=True, prune_containers=containers)
    removed = {change.address for change in planned.changes if change.action is Action.REMOVE}
    for address in removed:
        assert address not in desired.resources
        assert address.parent is not None
        assert desired.has_scope(address.kind, address.parent) or address.parent in removed
        assert containers or address.kind not in (Kind.WAREHOUSE, Kind.NAMESPACE)


@given(present=states(), desired=states())
def test_after_pruning_the_lists_of_the_file_contain_nothing_else(desired: State, present: State) -> None:
    planned = plan(desired, present, prune=True, prune_containers=True)
    reached = _server(present, planned)
    kept = {each.address for each in planned.kept}
    for address in reached:
        if address.parent is not None and desired.has_scope(address.kind, address.parent):
            assert address in desired.resources or address in kept


@given(state=states())
def test_a_state_agrees_with_itself(state: State) -> None:
    assert plan(state, state, prune=True, prune_containers=True) == Plan()


def _of(*addresses: Address, keep: str | None = None, scopes: frozenset[Any] = LISTS) -> State:
    return State({each: Resource(each, keep=keep) for each in addresses}, scopes)


def test_protected_resources_stay_with_their_reason() -> None:
    grant = GRANTS[0]
    present = State({**_of(PROJECT).resources, grant: Resource(grant, keep="it is a right of the caller")})
    planned = plan(_of(PROJECT), present, prune=True)
    assert planned == Plan(kept=(Kept(grant, "it is a right of the caller"),))


def test_a_namespace_stays_if_a_namespace_within_it_stays() -> None:
    below = (PROJECT, WAREHOUSE, SALES)
    present = State({**_of(*below).resources, RAW: Resource(RAW, keep="it contains tables or views")})
    planned = plan(_of(PROJECT, WAREHOUSE), present, prune=True, prune_containers=True)
    assert planned.changes == ()
    assert {each.address: each.reason for each in planned.kept} == {
        RAW: "it contains tables or views",
        SALES: "it contains objects that stay",
    }


def test_new_grants_precede_removed_ones_so_that_access_is_not_interrupted() -> None:
    old, new = GRANTS[0], GRANTS[1]
    planned = plan(_of(PROJECT, new), _of(PROJECT, old), prune=True)
    assert [(each.action, each.address) for each in planned.changes] == [(Action.CREATE, new), (Action.REMOVE, old)]


@pytest.mark.parametrize("anchor", [SERVER, TABLE, Address(Kind.COLUMN, "amount", TABLE)])
def test_absent_objects_that_apply_cannot_create_are_reported_before_any_change(anchor: Address) -> None:
    with pytest.raises(MissingObjects) as refused:
        plan(_of(PROJECT, WAREHOUSE, SALES, anchor), _of(PROJECT))
    assert refused.value.missing == [anchor]


def test_a_rename_precedes_the_creation_of_an_object_with_the_freed_name() -> None:
    renamed, new = Address(Kind.ROLE, "zebra", PROJECT), Address(Kind.ROLE, "analysts", PROJECT)
    desired = State({PROJECT: Resource(PROJECT), renamed: Resource(renamed, {"name": "zebra"}), new: Resource(new)})
    present = State({PROJECT: Resource(PROJECT), renamed: Resource(renamed, {"name": "analysts"})})
    assert [each.address for each in plan(desired, present).changes] == [renamed, new]
