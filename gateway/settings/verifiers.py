# SPDX-License-Identifier: Apache-2.0
"""Settings of the verifiers (``LAKEGATE__VERIFIERS__<ID>__…``), which are queried about a change before it is made."""

from __future__ import annotations

import typing
import uuid
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gateway.settings.env import PREFIX, PositiveSeconds, Secret
from gateway.settings.events import webhook_problem
from gateway.settings.sections import Count

ChangeName = typing.Literal["commit", "create", "drop", "rename", "restore", "namespace_properties"]
ObjectName = typing.Literal["table", "view", "generic_table", "namespace", "warehouse"]

BUILT_IN: Final = ("schema", "properties", "partitions", "columns", "contract", "webhook", "opa")


#: The kinds of verifiers that use a setting. For all other kinds, the setting is an error.
_USED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "required_properties": ("properties",),
    "partition_evolution": ("partitions",),
    "partition_transforms": ("partitions",),
    "protected_columns": ("columns",),
    "contracts_dir": ("contract",),
    "url": ("webhook",),
    "secret": ("webhook",),
    "rule": ("opa",),
    "documents": ("webhook", "opa"),
    "on_violation": ("schema", "properties", "partitions", "columns", "contract"),
}
_NEEDED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "properties": ("required_properties",),
    "columns": ("protected_columns",),
    "contract": ("contracts_dir",),
    "webhook": ("url", "secret"),
}


class VerifierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A verifier. Its id in the names of the variables is its name in messages."""

    kind: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]*$")]
    """Kind of the verifier: `schema`, `properties`, `partitions`, `columns`, `contract`, `webhook`, `opa`, or the name
    of one that an installed package provides ([Change approval](change-approval.md)).
    """
    changes: tuple[ChangeName, ...] = ()
    """Kinds of changes about which it is asked: `commit`, `create`, `drop`, `rename`, `restore`,
    `namespace_properties`. Empty: all that its kind judges.
    """
    objects: tuple[ObjectName, ...] = ()
    """Types of objects about which it is asked: `table`, `view`, `generic_table`, `namespace`, `warehouse`. Empty: all
    that its kind judges.
    """
    warehouses: tuple[str, ...] = ()
    """Ids of the warehouses about which it is asked. Empty: all."""
    timeout: PositiveSeconds = 5.0
    """Maximum time in seconds for a verdict, less than `MAX_REQUEST_TIME`. After it, the change gets 429 or 503."""
    on_failure: typing.Literal["closed", "open"] = "closed"
    """Result if it gives no verdict. `closed`, the only value: the change gets 429 or 503. The value `open` was
    removed, and the gateway does not start with it.
    """
    questions: Count = 16
    """Maximum number of its unanswered questions in a worker process. Eight times as many more wait, and further ones
    fail at once.
    """
    on_violation: typing.Literal["reject", "pending"] = "reject"
    """Verdict of a built-in verifier on a change that breaks its rule: `reject`, or `pending` until an approval."""
    required_properties: tuple[str, ...] = ()
    """For `properties`: properties that must be set, each as `key` or `key=pattern` with a regular expression for the
    whole value.
    """
    partition_evolution: typing.Literal["none", "add_only", "any"] = "none"
    """For `partitions`: allowed changes of the partition spec."""
    partition_transforms: tuple[str, ...] = ()
    """For `partitions`: transforms that new partition fields may use. Empty: all."""
    protected_columns: tuple[str, ...] = ()
    """For `columns`: names or field ids (`#7`) of columns that must not be dropped, renamed or given another type."""
    contracts_dir: str | None = None
    """For `contract`: directory of the data contracts, one JSON file for each."""
    url: str | None = None
    """For `webhook`: address of the server. It must begin with `https`, except on this machine."""
    secret: Secret | None = None
    """For `webhook`: secret of the signatures, `whsec_` with 24 to 64 random bytes in base64 (Standard Webhooks)."""
    rule: Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$")] = "verdict"
    """For `opa`: rule in the package `lakegate.changes`."""
    documents: bool = True
    """For `webhook` and `opa`: send the metadata documents and the updates with the question."""
    options: tuple[str, ...] = ()
    """For verifiers of installed packages: entries `key=value` that the package receives."""

    def public(self) -> dict[str, object]:
        """Return all settings except for the secret, as plain JSON values."""
        values: dict[str, object] = {name: getattr(self, name) for name in self.__struct_fields__ if name != "secret"}
        return values


def verifier_problems(verifiers: Mapping[str, VerifierSettings], max_request_time: float) -> list[str]:
    """Return a line for each setting of a verifier that is missing, unusable, or without effect for its kind."""
    return [
        f"{PREFIX}VERIFIERS__{id.upper().replace('-', '_')}__{problem}"
        for id, each in verifiers.items()
        for problem in _problems(each, max_request_time)
    ]


def _problems(each: VerifierSettings, max_request_time: float) -> list[str]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(VerifierSettings)}
    lines = [f"{name.upper()} must be set" for name in _NEEDED_BY.get(each.kind, ()) if not getattr(each, name)]
    lines += [
        f"{name.upper()} is not used by the kind {each.kind}; remove it"
        for name, kinds in _USED_BY.items()
        if each.kind not in kinds and getattr(each, name) != defaults[name]
    ]
    if each.kind in BUILT_IN and each.options:
        lines.append(f"OPTIONS is not used by the kind {each.kind}; remove it")
    if each.on_failure == "open":
        lines.append(
            "ON_FAILURE must be closed, or unset: `open` was removed, because a caller can cause a timeout and then "
            "make a change without a verdict. Give the verifier enough TIMEOUT and QUESTIONS, or remove the verifier "
            "while it is down"
        )
    if each.kind == "webhook" and each.url and (problem := webhook_problem(each.url)):
        lines.append(f"URL {problem}")
    if each.timeout >= max_request_time:
        lines.append(f"TIMEOUT must be less than MAX_REQUEST_TIME ({max_request_time:g} seconds)")
    # A name instead of an id would match no warehouse, and the verifier would never be called.
    lines += [f"WAREHOUSES must contain ids, and {entry!r} is none" for entry in each.warehouses if not _is_id(entry)]
    return lines


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
