# SPDX-License-Identifier: Apache-2.0
"""Definitions of data policies (row filters and masks), as policy authors write them. Pure.

A policy refers to columns by name or by tag, and compares them with literals or attributes of the principal.
`gateway.obligations.binding` converts a definition, for one table and one principal, to predicates and masks by field
id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, TypeAlias, assert_never

import msgspec

from gateway.iceberg.identifiers import fold
from lakegate.restrictions.actions import Action
from lakegate.restrictions.predicates import Comparison, Literal


class ColumnReference(msgspec.Struct, frozen=True, omit_defaults=True, rename="kebab", forbid_unknown_fields=True):
    """A column by its top-level name, or by a tag on it. Exactly one of the two is set.

    A row filter over a tag with several tagged columns must hold for each of them.
    """

    name: str | None = None
    tag: str | None = None

    def __post_init__(self) -> None:
        if (self.name is None) == (self.tag is None):
            raise ValueError("a column reference needs either `name` or `tag`")


class AttributeSource(StrEnum):
    """The origin of a principal's attribute."""

    PRINCIPAL = "principal"
    """The id of the user. `name` is empty."""
    CLAIM = "claim"
    """A claim of the verified token of this request. Engines that act for users send no claims of theirs."""
    MAPPING = "mapping"
    """The values that a mapping table has for the user or one of its roles."""


class Attribute(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename="kebab",
    forbid_unknown_fields=True,
    tag_field="type",
    tag="attribute",
):
    """The values of an attribute of the principal. Without a value, every test with it is false."""

    source: AttributeSource
    name: str = ""


class ConstantTest(msgspec.Struct, frozen=True, tag_field="type", tag="constant", forbid_unknown_fields=True):
    """Holds for all rows or for none."""

    value: bool


class AllOf(msgspec.Struct, frozen=True, tag_field="type", tag="and", forbid_unknown_fields=True):
    """Holds if all operands hold."""

    operands: tuple[Test, ...]


class AnyOf(msgspec.Struct, frozen=True, tag_field="type", tag="or", forbid_unknown_fields=True):
    """Holds if one of the operands holds."""

    operands: tuple[Test, ...]


class NotTest(msgspec.Struct, frozen=True, tag_field="type", tag="not", forbid_unknown_fields=True):
    """Holds if the operand does not hold. It must not contain an attribute or a tag, whose absence would then allow."""

    operand: Test


class NullTest(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="is-null", forbid_unknown_fields=True
):
    """Holds if the column is null, or is not null if `negated`."""

    column: ColumnReference
    negated: bool = False


class CompareTest(msgspec.Struct, frozen=True, tag_field="type", tag="compare", forbid_unknown_fields=True):
    """Compares a column with a literal, or with an attribute that has exactly one value. False for null."""

    operator: Comparison
    column: ColumnReference
    value: Literal | Attribute


class InTest(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="in", forbid_unknown_fields=True):
    """Holds if the column equals one of the values; with `negated`, if it equals none of them. False for null.

    `values` of an attribute are all of its values. A negated test with an attribute without values is false.
    """

    column: ColumnReference
    values: tuple[Literal, ...] | Attribute
    negated: bool = False


class RoleTest(msgspec.Struct, frozen=True, tag_field="type", tag="has-role", forbid_unknown_fields=True):
    """Holds for members of the role, by its id. `not` must not contain it: a membership can be unknown."""

    role: str


Test: TypeAlias = ConstantTest | AllOf | AnyOf | NotTest | NullTest | CompareTest | InTest | RoleTest


class Mask(msgspec.Struct, frozen=True, rename="kebab", tag_field="kind", tag="mask", forbid_unknown_fields=True):
    """Masks columns. Without `columns`, it masks the columns that carry the tags which the policy is bound to."""

    action: Action
    columns: tuple[ColumnReference, ...] = ()


class RowFilter(
    msgspec.Struct, frozen=True, rename="kebab", tag_field="kind", tag="row-filter", forbid_unknown_fields=True
):
    """Keeps the rows for which `test` holds."""

    test: Test


Definition: TypeAlias = Mask | RowFilter


def roles_tested_by(definition: Definition) -> frozenset[str]:
    """Return the ids of the roles in the `has-role` tests of a definition."""
    return frozenset(each.role for each in _tests_within(definition) if isinstance(each, RoleTest))


def attributes_of(definition: Definition, source: AttributeSource) -> frozenset[str]:
    """Return the names of the attributes from this source that a definition uses."""
    attributes = (_attribute_of(each) for each in _tests_within(definition))
    return frozenset(each.name for each in attributes if each is not None and each.source is source)


def columns_referenced(definition: Definition) -> tuple[ColumnReference, ...]:
    """Return the references to columns in a definition, in no particular order."""
    if isinstance(definition, Mask):
        return definition.columns
    tests = _tests_within(definition)
    return tuple(each.column for each in tests if isinstance(each, NullTest | CompareTest | InTest))


def column_names(definition: Definition) -> frozenset[str]:
    """Return the names of the columns that the definition refers to, without columns that it refers to by tag."""
    return frozenset(each.name for each in columns_referenced(definition) if each.name is not None)


def tags_of(definition: Definition) -> frozenset[str]:
    """Return the names of the tags that a definition refers to."""
    return frozenset(each.tag for each in columns_referenced(definition) if each.tag is not None)


def with_tags(definition: Definition, refer: Callable[[str], str]) -> Definition:
    """Return the definition with each reference to a tag replaced by the result of `refer`."""
    if not tags_of(definition):
        return definition
    referred: Definition = msgspec.convert(_referred(msgspec.to_builtins(definition), refer), Definition)
    return referred


def _referred(value: Any, refer: Callable[[str], str]) -> Any:
    # Only references to columns have the member `tag`.
    if isinstance(value, dict):
        return {
            key: refer(each) if key == "tag" and isinstance(each, str) else _referred(each, refer)
            for key, each in value.items()
        }
    return [_referred(each, refer) for each in value] if isinstance(value, list | tuple) else value


def _tests_within(definition: Definition) -> Iterator[Test]:
    """Yield the test of a row filter and all tests inside of it, in no particular order."""
    left: list[Test] = [definition.test] if isinstance(definition, RowFilter) else []
    while left:
        test = left.pop()
        yield test
        match test:
            case AllOf(operands=operands) | AnyOf(operands=operands):
                left.extend(operands)
            case NotTest(operand=operand):
                left.append(operand)
            case ConstantTest() | NullTest() | CompareTest() | InTest() | RoleTest():
                pass
            case _:
                assert_never(test)


def _attribute_of(test: Test) -> Attribute | None:
    """Return the attribute with which a test compares. Return None for other tests and for literals."""
    match test:
        case CompareTest(value=Attribute() as attribute) | InTest(values=Attribute() as attribute):
            return attribute
        case _:
            return None


class AppliesTo(StrEnum):
    """The principals that a policy restricts. Holders of `exempt` are never restricted."""

    EVERYONE = "everyone"
    SUBJECTS = "subjects"
    """Only holders of `subject` on the policy."""


class DataPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a policy, as the decision reads it.

    `id` is the policy's UUID as text. With `allow_append`, a restricted principal may append rows through an enforcer.
    `tag_ids` has (folded name, id) of the tags that the definition named when it was written. So the policy still
    refers to the same tag after the tag was renamed, or after another tag got its name.
    """

    id: str
    version: int
    definition: Definition
    applies_to: AppliesTo = AppliesTo.EVERYONE
    allow_append: bool = False
    tag_ids: tuple[tuple[str, str], ...] = ()

    def with_tag_ids(self) -> DataPolicy:
        """Return the policy with the known tag ids instead of the tag names."""
        ids = dict(self.tag_ids)
        definition = with_tags(self.definition, lambda name: ids.get(fold(name), name))
        return msgspec.structs.replace(self, definition=definition)


class BoundPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that is bound to a table, directly, through a container, or through a tag.

    `tag` is the id of the tag of the binding, None for other bindings. `recorded` are the field ids of the table that
    the binding recorded for the policy's column names when it was made or when the schema changed. `released` are field
    ids that a policy manager has excluded from this policy on this table.
    """

    policy: DataPolicy
    tag: str | None = None
    recorded: tuple[int, ...] = ()
    released: tuple[int, ...] = ()


class PolicyInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one table, except its schemas, that is needed to apply its policies.

    `tagged_fields` has (tag id, field id) for each tag on a column, and (tag id, None) for tags of the table or of a
    container, which all columns inherit. `tag_names` maps tag ids to names. `former_columns` has (field id, name) of
    columns whose schemas were removed from the document.
    """

    bound: tuple[BoundPolicy, ...] = ()
    tagged_fields: tuple[tuple[str, int | None], ...] = ()
    tag_names: tuple[tuple[str, str], ...] = ()
    former_columns: tuple[tuple[int, str], ...] = ()


class PrincipalAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of one principal that policies may use.

    `roles` are role ids. `mappings` has (name of the mapping table, values); `claims` has (claim path, values).
    Without `complete`, the principal may have more roles, and more values through them: its groups are unknown.
    """

    principal: str
    roles: tuple[str, ...] = ()
    mappings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    complete: bool = True
