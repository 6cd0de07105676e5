# SPDX-License-Identifier: Apache-2.0
"""Make the changes of a plan over HTTP, in its order. The first error stops; a second run continues from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.apply.changes import Action, Change
from gateway.apply.client import NOT_FOUND, Api, ApiError, segment
from gateway.apply.grant_reading import Entries
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.policy_changes import create, remove, require_possible, update
from gateway.apply.profiles import Variables, needed_credential, read_credential
from gateway.apply.state import Address, Kind, Resource, State
from gateway.apply.warehouse_changes import create_warehouse, require_complete, update_warehouse


class Executor:
    """Makes changes for the caller of `api`.

    `present` is the state that the plan was made from. `secrets` is the directory of files with secrets, if any, and
    `variables` returns environment variables.
    """

    def __init__(
        self, api: Api, present: State, located: Located, *, secrets: Path | None, variables: Variables
    ) -> None:
        self._api = api
        self._present = present
        self._located = located
        self._secrets = secrets
        self._variables = variables
        self._credentials: dict[Address, Mapping[str, str]] = {}

    def prepare(self, changes: Sequence[Change]) -> None:
        """Read the secrets that the changes need, before the first change.

        Raises SecretMissing, IncompleteWarehouse and NotChangeable.
        """
        for change in changes:
            require_possible(change, self._present.resources.get(change.address))
            if change.address.kind is not Kind.WAREHOUSE or change.desired is None:
                continue
            require_complete(change, self._present.resources.get(change.address))
            if (credential := needed_credential(change)) is not None:
                self._credentials[change.address] = read_credential(
                    credential, secrets=self._secrets, variables=self._variables
                )

    def notes(self) -> tuple[str, ...]:
        """Return what the answers since the last call stated about the caller."""
        found = tuple(self._api.notes)
        self._api.notes.clear()
        return found

    def run(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield each change after it was made. Raises ApiError and UnknownRole."""
        for change in changes:
            if change.action is Action.CREATE and change.desired is not None:
                self._create(change.desired)
            elif change.action is Action.UPDATE and change.desired is not None:
                self._update(change.desired, {each.name: each.after for each in change.fields})
            else:
                self._remove(change.address)
            yield change

    def _create(self, desired: Resource) -> None:
        address, spec = desired.address, desired.spec
        match address.kind:
            case Kind.USER:
                body = {"id": spec.id, "name": spec.name, "user-type": spec.type, **_stated(email=spec.email)}
                self._api.change("POST", f"{MANAGEMENT}/user", body)
            case Kind.PROJECT:
                body = {"project-name": spec.name, **_stated(project_id=spec.id)}
                made = self._api.change("POST", f"{MANAGEMENT}/project", body)
                self._located.add(address, made["project-id"])
            case Kind.ROLE:
                body = {key: value for key, value in desired.fields.items() if value is not None}
                made = self._api.change("POST", f"{MANAGEMENT}/role", body, project=self._located.project(address))
                self._located.add(address, made["id"])
            case Kind.MEMBER:
                self._change_member(address, adds=True)
            case Kind.WAREHOUSE:
                create_warehouse(self._api, self._located, desired, self._credentials.get(address))
            case Kind.NAMESPACE:
                self._create_namespace(desired)
            case Kind.GRANT:
                self._write_grant(desired)
            case _:
                create(self._api, self._located, desired)

    def _update(self, desired: Resource, changed: Mapping[str, Any]) -> None:
        address, spec = desired.address, desired.spec
        match address.kind:
            case Kind.USER:
                # A request without an address would remove the present one.
                email = spec.email or self._present.resources[address].fields.get("email")
                body = {"name": spec.name, "user-type": spec.type, **_stated(email=email)}
                self._api.change("PUT", self._located.path(address), body)
            case Kind.PROJECT:
                self._change("POST", address, "/rename", {"new-name": spec.name})
            case Kind.ROLE:
                self._update_role(desired, changed)
            case Kind.WAREHOUSE:
                update_warehouse(self._api, self._located, desired, changed, self._credentials.get(address))
            case Kind.NAMESPACE:
                self._update_namespace(address, changed)
            case Kind.TABLE | Kind.VIEW | Kind.GENERIC_TABLE:
                self._change("POST", address, "/protection", {"protected": changed["protected"]})
            case Kind.GRANT:
                self._write_grant(desired)
            case _:
                update(self._api, self._located, desired, self._present.resources[address])

    def _remove(self, address: Address) -> None:
        """Remove a resource. One that another run has removed meanwhile is no error."""
        try:
            self._send_removal(address)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def _send_removal(self, address: Address) -> None:
        on = address.parent
        match address.kind:
            case Kind.GRANT if on is not None:
                self._change("POST", on, "/grants", {"deletes": [self._grant(address)]})
            case Kind.MEMBER:
                self._change_member(address, adds=False)
            case Kind.NAMESPACE:
                self._api.change("DELETE", self._located.namespace_path(address))
            case Kind.ROLE | Kind.WAREHOUSE | Kind.TAG | Kind.MAPPING_TABLE | Kind.DATA_POLICY:
                self._change("DELETE", address, "")
            case _:
                remove(self._api, self._located, address)

    def _update_role(self, desired: Resource, changed: Mapping[str, Any]) -> None:
        fields = {**self._present.resources[desired.address].fields, **desired.fields}
        if "name" in changed or "description" in changed:
            # A request without a description would remove the present one.
            body = {"name": fields["name"], **_stated(description=fields["description"])}
            self._change("POST", desired.address, "", body)
        if "provider-id" in changed or "source-id" in changed:
            body = {name: fields[name] for name in ("provider-id", "source-id")}
            self._change("PUT", desired.address, "/source-system", body)

    def _change_member(self, address: Address, *, adds: bool) -> None:
        role = address.within(Kind.ROLE)
        [(type, id)] = self._located.principal(address.name, role).items()
        if adds:
            self._change("POST", role, "/members", {"members": [{"type": type, "id": id}]})
        else:
            self._change("DELETE", role, f"/members/{type}/{segment(id)}")

    def _create_namespace(self, desired: Resource) -> None:
        address = desired.address
        properties = _properties(desired.fields)
        body = {"namespace": list(address.levels), "properties": properties}
        made = self._api.change("POST", f"{self._located.catalog(address)}/namespaces", body)
        self._located.add(address, made["properties"]["namespace_id"])
        rest = {name: value for name, value in desired.fields.items() if not name.startswith("properties.")}
        # A new namespace is neither protected nor managed.
        self._update_namespace(address, {name: value for name, value in rest.items() if value})

    def _update_namespace(self, address: Address, changed: Mapping[str, Any]) -> None:
        updates = _properties(changed)
        removals = [name for name, value in updates.items() if value is None]
        updates = {name: value for name, value in updates.items() if value is not None}
        if updates or removals:
            path = f"{self._located.namespace_path(address)}/properties"
            self._api.change("POST", path, {"updates": updates, "removals": removals})
        if "managed-access" in changed:
            path = f"{MANAGEMENT}/permissions/namespace/{self._located.id(address)}/managed-access"
            self._api.change("POST", path, {"managed-access": changed["managed-access"]})
        if "protected" in changed:
            self._change("POST", address, "/protection", {"protected": changed["protected"]})

    def _write_grant(self, desired: Resource) -> None:
        """Grant, after revoking entries of other grantors that last longer or have other limits than the file states.

        The gateway replaces the caller's own entry. A grant without limits would widen it, so unstated ones are sent.
        """
        address, until = desired.address, desired.fields["expires-at"]
        on = address.parent
        present = self._present.resources.get(address)
        if on is None:
            raise LookupError(f"{address} has no object")
        entries = Entries(()) if present is None else present.spec
        limits = desired.fields.get("acts-for", entries.limits)
        longer = until is not None and any(end is None or end > until for end, _ in entries.others)
        if longer or ("acts-for" in desired.fields and any(other != limits for _, other in entries.others)):
            self._change("POST", on, "/grants", {"deletes": [self._grant(address)]})
        stated = _stated(reason=desired.fields.get("reason"), expires_at=until and until.isoformat(), acts_for=limits)
        self._change("POST", on, "/grants", {"writes": [{**self._grant(address), **stated}]})

    def _grant(self, address: Address) -> dict[str, Any]:
        privilege, _, principal = address.name.partition(" ")
        on = address.parent
        if on is None:
            raise LookupError(f"{address} has no object")
        return {"privilege": privilege, "principal": self._located.principal(principal, on)}

    def _change(self, method: str, address: Address, below: str, body: Any = None) -> None:
        path = f"{self._located.path(address)}{below}"
        self._api.change(method, path, body, project=self._located.project(address))


def _properties(fields: Mapping[str, Any]) -> dict[str, Any]:
    prefix = "properties."
    return {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}


def _stated(**fields: Any) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in fields.items() if value is not None}
