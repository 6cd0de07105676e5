# SPDX-License-Identifier: Apache-2.0
"""Collect the tags, mapping tables and data policies that a file describes."""

from __future__ import annotations

from typing import get_args

import msgspec

from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.tags import TagTarget
from gateway.apply.collector import Collector, given, usual_id
from gateway.apply.definitions import with_roles
from gateway.apply.document import Binding, DataPolicy, MappingTable, Project, TagDefinition
from gateway.apply.source import Path
from gateway.apply.state import Address, Kind, Resource, binding_address, name_address, namespace_address
from gateway.iceberg.identifiers import fold
from gateway.iceberg.name_patterns import NamePattern
from gateway.obligations.validation import problems_of


def add_policies(to: Collector, path: Path, project_address: Address, project: Project) -> None:
    """Add the tags, mapping tables and data policies of a project. Raises InvalidSource."""
    to.list(Kind.TAG, project_address, project.tag_definitions)
    to.list(Kind.MAPPING_TABLE, project_address, project.mapping_tables)
    to.list(Kind.DATA_POLICY, project_address, project.data_policies)
    for place, tag in enumerate(project.tag_definitions or ()):
        _tag(to, (*path, "tag-definitions", place), project_address, tag)
    for place, table in enumerate(project.mapping_tables or ()):
        _mapping_table(to, (*path, "mapping-tables", place), project_address, table)
    for place, policy in enumerate(project.data_policies or ()):
        _policy(to, (*path, "data-policies", place), project_address, policy)


def _tag(to: Collector, path: Path, project: Address, tag: TagDefinition) -> None:
    address = Address(Kind.TAG, fold(tag.name), project)
    fields = given(name=tag.name, description=tag.description, value_kind=tag.value_kind)
    if tag.scope is not None:
        fields["scope"] = [each for each in get_args(TagTarget) if each in tag.scope]
    if tag.allowed_values is not None:
        fields["allowed-values"] = sorted(set(tag.allowed_values))
    to.add(path, Resource(address, fields, spec=tag))
    to.grants(path, address, ObjectType.TAG, tag.grants)


def _mapping_table(to: Collector, path: Path, project: Address, table: MappingTable) -> None:
    address = Address(Kind.MAPPING_TABLE, fold(table.name), project)
    to.add(path, Resource(address, given(description=table.description), spec=table))
    to.list(Kind.MAPPING_ENTRY, address, table.entries)
    for place, entry in enumerate(table.entries or ()):
        at = (*path, "entries", place)
        of = Address(Kind.MAPPING_ENTRY, to.principal(at, address, entry), address)
        to.add(at, Resource(of, {"values": sorted(set(entry.values))}))


def _policy(to: Collector, path: Path, project: Address, policy: DataPolicy) -> None:
    address = Address(Kind.DATA_POLICY, fold(policy.name), project)
    fields = given(
        name=policy.name,
        description=policy.description,
        applies_to=None if policy.applies_to is None else policy.applies_to.value,
        allow_append=policy.allow_append,
    )
    if policy.definition is not None:
        for each in problems_of(policy.definition, None):
            at = (*path, "definition", *(int(step) if step.isdigit() else step for step in each.pointer.split("/")[1:]))
            raise to.source.error(at, f"{each.problem}.")
        # Answers of the gateway have the usual form of a UUID.
        fields["definition"] = msgspec.to_builtins(with_roles(policy.definition, usual_id))
    to.add(path, Resource(address, fields, spec=policy))
    to.grants(path, address, ObjectType.DATA_POLICY, policy.grants)
    to.list(Kind.BINDING, address, policy.bindings)
    for place, binding in enumerate(policy.bindings or ()):
        at = (*path, "bindings", place)
        target = _target(to, at, project, binding)
        # The caller need not see the namespaces above the bound one.
        namespace = target.parent if target.kind is not Kind.NAMESPACE else None
        above = [each for each in target.ancestors() if each.kind is Kind.WAREHOUSE or each == namespace]
        # No object needs to have a name.
        to.references |= {target, *above} if target.kind is not Kind.NAME else {target.within(Kind.WAREHOUSE)}
        to.add(at, Resource(binding_address(address, target)))


def _target(to: Collector, path: Path, project: Address, binding: Binding) -> Address:
    """Return the object that a binding names. Raises InvalidSource."""
    within = (binding.warehouse, binding.namespace, binding.table, binding.generic_table, binding.name)
    if (binding.tag is None) == (binding.warehouse is None) or (binding.tag is not None and any(within)):
        text = "give either `tag`, or `warehouse`, which `namespace`, `table`, `generic-table` and `name` narrow."
        raise to.source.error(path, text)
    if binding.tag is not None:
        return Address(Kind.TAG, fold(binding.tag), project)
    warehouse = Address(Kind.WAREHOUSE, binding.warehouse or "", project)
    narrowed = [each for each in (binding.table, binding.generic_table, binding.name) if each is not None]
    if len(narrowed) > 1:
        raise to.source.error(path, "give only one of `table`, `generic-table` and `name`.")
    if not binding.namespace:
        if narrowed:
            raise to.source.error(path, "a table needs `namespace` too.")
        return warehouse
    levels = (binding.namespace,) if isinstance(binding.namespace, str) else binding.namespace
    if binding.name is not None:
        try:
            NamePattern(levels, binding.name)
        except ValueError as error:
            raise to.source.error(path, f"{error}.") from None
        return name_address(warehouse, levels, binding.name)
    namespace = namespace_address(warehouse, levels)
    if binding.generic_table is not None:
        return Address(Kind.GENERIC_TABLE, binding.generic_table, namespace)
    return namespace if binding.table is None else Address(Kind.TABLE, binding.table, namespace)
