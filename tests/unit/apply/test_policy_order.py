# SPDX-License-Identifier: Apache-2.0
"""The order of a plan with data policies: no principal reads more in between than before or after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.apply.planner import plan
from gateway.apply.state import Address, Kind, Resource, State, binding_address
from tests.support.apply_documents import BINDINGS, FIXED, POLICIES, PROJECT, TABLES, TAG, USERS, make_change

ROLE = Address(Kind.ROLE, "analysts", PROJECT)
MAPPING = Address(Kind.MAPPING_TABLE, "regions", PROJECT)
ATTACHMENTS = tuple(Address(Kind.ATTACHMENT, "pii", table) for table in TABLES)
GRANTS = tuple(
    Address(Kind.GRANT, f"{privilege} {user}", on)
    for user in USERS
    for privilege, on in (
        *(("select", table) for table in TABLES),
        *((privilege, policy) for policy in POLICIES for privilege in ("exempt", "subject")),
    )
)
ALL = (TAG, MAPPING, *POLICIES, *ATTACHMENTS, *BINDINGS, *GRANTS)
LISTS = frozenset(
    {
        *((kind, PROJECT) for kind in (Kind.ROLE, Kind.TAG, Kind.MAPPING_TABLE, Kind.DATA_POLICY)),
        *((Kind.ATTACHMENT, table) for table in TABLES),
        *((Kind.BINDING, policy) for policy in POLICIES),
        *((Kind.GRANT, on) for on in (*TABLES, *POLICIES)),
        (Kind.MAPPING_ENTRY, MAPPING),
    }
)


@st.composite
def states(draw: st.DrawFn) -> State:
    """Return a state of a table, two policies, a tag and a user. What it names exists."""
    # A set of samples would be small, and leaks need several resources.
    kept = draw(st.lists(st.booleans(), min_size=len(ALL), max_size=len(ALL)))
    chosen = {each for each, keep in zip(ALL, kept, strict=True) if keep}
    if any(each.kind is Kind.ATTACHMENT or (each.kind is Kind.BINDING and "tag" in each.name) for each in chosen):
        chosen.add(TAG)
    whole = {*FIXED, *(above for each in chosen for above in (each, *each.ancestors()))}
    return State({each: Resource(each, draw(_fields(each))) for each in whole}, LISTS)


def _fields(address: Address) -> st.SearchStrategy[dict[str, Any]]:
    if address.kind is not Kind.DATA_POLICY:
        return st.just({})
    return st.fixed_dictionaries(
        {"applies-to": st.sampled_from(["everyone", "subjects"]), "allow-append": st.booleans()}
    )


def _raw_reads(found: dict[Address, dict[str, Any]]) -> set[tuple[str, Address]]:
    """Return the (user, table) that read all values in a state."""
    return {
        (user, table)
        for user in USERS
        for table in TABLES
        if Address(Kind.GRANT, f"select {user}", table) in found
        and not any(_restricts(found, policy, user, table) for policy in POLICIES)
    }


def _restricts(found: dict[Address, dict[str, Any]], policy: Address, user: str, table: Address) -> bool:
    on: Iterable[Address] = [table, *([TAG] if Address(Kind.ATTACHMENT, "pii", table) in found else [])]
    if policy not in found or not any(binding_address(policy, each) in found for each in on):
        return False
    if Address(Kind.GRANT, f"exempt {user}", policy) in found:
        return False
    subject = Address(Kind.GRANT, f"subject {user}", policy) in found
    return subject or found[policy]["applies-to"] == "everyone"


def _state(found: dict[Address, dict[str, Any]]) -> State:
    return State({address: Resource(address, dict(fields)) for address, fields in found.items()})


@settings(max_examples=400, deadline=None)
@given(desired=states(), present=states(), prune=st.booleans(), made=st.integers(0, 8))
def test_no_user_reads_more_between_two_changes_than_before_or_after_the_plan(
    desired: State, present: State, prune: bool, made: int
) -> None:
    """Readers do not wait for the end of a run. It is killed after some changes, and repeated."""
    found: dict[Address, dict[str, Any]] = {each.address: dict(each.fields) for each in present.resources.values()}
    seen = [_raw_reads(found)]
    for change in plan(desired, present, prune=prune).changes[:made]:
        make_change(found, change)
        seen.append(_raw_reads(found))
    for change in plan(desired, _state(found), prune=prune).changes:
        make_change(found, change)
        seen.append(_raw_reads(found))
    for between in seen:
        assert between <= seen[0] | seen[-1]
    assert plan(desired, _state(found), prune=prune).changes == ()


def _entry(user: str, *values: str) -> Resource:
    return Resource(Address(Kind.MAPPING_ENTRY, user, MAPPING), {"values": list(values)})


def _order(desired: list[Resource], present: list[Resource], *, prune: bool = False) -> list[str]:
    fixed = [Resource(each) for each in FIXED]
    states = [State({each.address: each for each in (*fixed, *some)}, LISTS) for some in (desired, present)]
    return [f"{each.action} {each.address.kind}" for each in plan(*states, prune=prune).changes]


def test_values_of_a_mapping_table_are_removed_before_new_grants_and_added_at_the_end() -> None:
    """A new reader must not see rows of a value that it loses, and a leaving one no rows of a value that it gets."""
    table, grant = Resource(MAPPING), Resource(Address(Kind.GRANT, f"select {USERS[0]}", TABLES[0]))
    less, more = _entry(USERS[0], "eu"), _entry(USERS[0], "eu", "us")
    assert _order([table, less, grant], [table, more]) == ["~ mapping-entry", "+ grant"]
    assert _order([table, grant], [table, more], prune=True) == ["- mapping-entry", "+ grant"]
    assert _order([table, more], [table, less, grant], prune=True) == ["- grant", "~ mapping-entry"]
    assert _order([table, more], [table, grant], prune=True) == ["- grant", "+ mapping-entry"]


def test_a_role_is_removed_before_the_restrictions_of_its_members() -> None:
    """Its members would read all values until the role is removed."""
    present = [Resource(each) for each in (ROLE, TAG, POLICIES[0], BINDINGS[0], ATTACHMENTS[0])]
    assert _order([], present, prune=True) == [
        *("- role", "- binding", "- data-policy", "- attachment", "- tag"),
    ]


def test_values_of_a_new_table_precede_the_bindings_that_need_them_unless_a_policy_names_the_table() -> None:
    """Readers of a table with a new row filter would see no rows until the end of the run."""
    test = {"column": {"name": "a"}, "values": {"source": "mapping", "name": "Regions"}}
    policy = Resource(POLICIES[1], {"definition": {"test": test}})
    wanted = [Resource(MAPPING), _entry(USERS[0], "eu"), policy, Resource(BINDINGS[2])]
    kinds = ["+ mapping-table", "+ data-policy", "+ mapping-entry", "+ binding"]
    assert _order(wanted, []) == kinds
    assert _order(wanted, [policy]) == ["+ mapping-table", "+ binding", "+ mapping-entry"]


def test_exemptions_from_a_policy_without_bindings_precede_its_first_binding() -> None:
    """A loader that is exempt would be refused to write between the two changes."""
    policy, exempt = Resource(POLICIES[0]), Resource(Address(Kind.GRANT, f"exempt {USERS[0]}", POLICIES[0]))
    assert _order([policy, exempt, Resource(BINDINGS[0])], [policy]) == ["+ grant", "+ binding"]
    bound = [policy, Resource(BINDINGS[1])]
    assert _order([*bound, exempt, Resource(BINDINGS[0])], bound) == ["+ binding", "+ grant"]


def test_a_policy_that_restricts_fewer_principals_changes_after_revocations_and_other_changes_precede_grants() -> None:
    everyone, subjects = (Resource(POLICIES[0], {"applies-to": each}) for each in ("everyone", "subjects"))
    grant = Resource(Address(Kind.GRANT, f"select {USERS[0]}", TABLES[0]))
    assert _order([subjects], [everyone, grant], prune=True) == ["- grant", "~ data-policy"]
    assert _order([everyone, grant], [subjects]) == ["~ data-policy", "+ grant"]


def test_a_policy_for_subjects_changes_after_its_subjects_were_added_whatever_else_changes() -> None:
    """They would read all values in between: the members of a new role until they are added to it."""
    before = Resource(POLICIES[0], {"applies-to": "everyone", "allow-append": True, "definition": {"a": 1}})
    after = Resource(POLICIES[0], {"applies-to": "subjects", "allow-append": False, "definition": {"a": 2}})
    subject = Resource(Address(Kind.GRANT, "subject role:analysts", POLICIES[0]))
    member = Resource(Address(Kind.MEMBER, USERS[0], ROLE))
    assert _order([after, Resource(ROLE), subject, member], [before]) == [
        *("+ role", "+ grant", "+ member", "~ data-policy"),
    ]


def _changed(policy: Address, before: dict[str, Any], after: dict[str, Any]) -> tuple[Resource, Resource]:
    return Resource(policy, {"definition": before}), Resource(policy, {"definition": after})


def test_a_definition_changes_after_what_replaces_its_restrictions() -> None:
    """A run that ends in between would show the masked column, or the rows that the new policy hides."""
    tag, attached = Resource(TAG), Resource(ATTACHMENTS[0], {"value": None})
    by_name, by_tag = ({"kind": "mask", "columns": [each]} for each in ({"name": "ssn"}, {"tag": "pii"}))
    present, wanted = _changed(POLICIES[0], by_name, by_tag)
    bound = Resource(BINDINGS[0])
    assert _order([wanted, bound, tag, attached], [present, bound]) == ["+ tag", "+ attachment", "~ data-policy"]
    whole, part, rest = ({"kind": "row-filter", "test": each} for each in ("a and b", "a", "b"))
    present, wanted = _changed(POLICIES[0], whole, part)
    split = [Resource(POLICIES[1], {"definition": rest}), Resource(BINDINGS[2])]
    grant = Resource(Address(Kind.GRANT, f"select {USERS[0]}", TABLES[0]))
    assert _order([wanted, bound, *split, grant], [present, bound]) == [
        *("+ data-policy", "+ binding", "~ data-policy", "+ grant"),
    ]


def test_a_row_filter_by_a_tag_changes_before_the_tag_is_attached() -> None:
    """It hid all rows. With the tag, its former version would show rows that the new one hides."""
    less, more = (
        {"kind": "row-filter", "test": {"type": "and", "operands": [{"column": {"tag": "pii"}, "value": each}]}}
        for each in (1, 2)
    )
    present, wanted = _changed(POLICIES[0], more, less)
    tag, bound, attached = Resource(TAG), Resource(BINDINGS[0]), Resource(ATTACHMENTS[0], {"value": None})
    assert _order([wanted, bound, tag, attached], [present, bound, tag]) == ["~ data-policy", "+ attachment"]


def test_a_user_becomes_a_subject_before_other_roles_give_access_and_leaves_after_them() -> None:
    """The order of the names of the roles would show all values to a reader in between."""
    readers, subjects, inner = (Resource(Address(Kind.ROLE, each, PROJECT)) for each in ("m", "z", "n"))
    first, last = (Resource(Address(Kind.ROLE, each, PROJECT), id=f"id-{each}") for each in ("a", "y"))
    policy = Resource(POLICIES[0], {"applies-to": "subjects"})
    grants = [Resource(Address(Kind.GRANT, f"subject role:{each}", POLICIES[0])) for each in ("z", "id-a")]
    nested = Resource(Address(Kind.MEMBER, "role:n", subjects.address))
    roles = [readers, subjects, inner, first, last]
    stays = [*roles, policy, *grants, nested]
    members = [Resource(Address(Kind.MEMBER, USERS[0], each.address)) for each in roles]
    stated = frozenset((Kind.MEMBER, each.address) for each in roles) | LISTS
    with_members, without = (
        State({each.address: each for each in (*map(Resource, FIXED), *stays, *some)}, stated) for some in (members, [])
    )
    joined = [each.address.within(Kind.ROLE).name for each in plan(with_members, without).changes]
    left = [each.address.within(Kind.ROLE).name for each in plan(without, with_members, prune=True).changes]
    assert joined == ["a", "n", "z", "m", "y"]
    assert left == ["m", "y", "a", "n", "z"]


def test_values_whose_rows_a_filter_hides_are_added_before_new_grants_and_removed_at_the_end() -> None:
    """A new reader must not see the rows of a value that it is excluded from."""
    test = {"type": "in", "column": {"name": "a"}, "values": {"source": "mapping", "name": "Regions"}, "negated": True}
    inner = {"type": "and", "operands": [test]}
    policy = Resource(POLICIES[1], {"definition": {"kind": "row-filter", "test": inner}})
    table, grant = Resource(MAPPING), Resource(Address(Kind.GRANT, f"select {USERS[0]}", TABLES[0]))
    less, more = _entry(USERS[0], "eu"), _entry(USERS[0], "eu", "us")
    assert _order([policy, table, more, grant], [policy, table, less]) == ["~ mapping-entry", "+ grant"]
    assert _order([policy, table, less], [policy, table, more, grant], prune=True) == ["- grant", "~ mapping-entry"]


def test_a_role_gets_another_group_after_restrictions_and_a_subject_loses_its_group_after_grants() -> None:
    """The new group would read all values until the policy is bound, and the former one after it is no subject."""
    before, after = (Resource(ROLE, {"name": "analysts", "provider-id": "p", "source-id": each}) for each in "ab")
    policy, bound = Resource(POLICIES[0]), Resource(BINDINGS[0])
    assert _order([after, policy, bound], [before, policy]) == ["+ binding", "~ role"]
    grant = Resource(Address(Kind.GRANT, f"select {USERS[0]}", TABLES[0]))
    subject = Resource(Address(Kind.GRANT, "subject role:analysts", POLICIES[0]))
    stays = [policy, bound, subject]
    assert _order([after, *stays], [before, *stays, grant], prune=True) == ["- grant", "~ role"]
    heir = Resource(Address(Kind.ROLE, "heirs", PROJECT), {**before.fields, "name": "heirs"})
    assert _order([after, heir, policy, bound], [before, policy]) == ["~ role", "+ role", "+ binding"]
