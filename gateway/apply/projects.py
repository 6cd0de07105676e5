# SPDX-License-Identifier: Apache-2.0
"""The server, its users, and its projects with their roles, in `lakegate apply`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from gateway.access.operations.roles import OWN_PROVIDER
from gateway.apply.client import segment
from gateway.apply.data_policies import DATA_POLICIES
from gateway.apply.grants import GRANTS
from gateway.apply.mapping_tables import MAPPING_TABLES
from gateway.apply.nouns import Ambiguous, Collector, Noun, Row, principal_of, stated
from gateway.apply.session import MANAGEMENT, Changing, Reading, Session
from gateway.apply.source import Path
from gateway.apply.state import SERVER, Address, Kind, Resource, State
from gateway.apply.tags import TAGS
from gateway.apply.warehouses import WAREHOUSES


class Members(Noun):
    """The members of a role."""

    kind, member, is_object = Kind.MEMBER, "members", False

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add a member. Raises InvalidSource."""
        to.add(path, Resource(Address(Kind.MEMBER, to.principal(path, on, entry), on), spec=entry))

    def read(self, reading: Reading, on: Address) -> None:
        """Read the members of a role if the file contains them. Raises ApiError."""
        if reading.wanted.has_scope(Kind.MEMBER, on):
            keep = reading.found[on].keep
            for member in reading.pages(on, "members", "members"):
                address = reading.of_principal(Kind.MEMBER, on, {member["type"]: member["id"]})
                own = "this is the caller" if member["id"] == reading.caller else None
                reading.found[address] = Resource(address, keep=keep or own)

    def create(self, session: Changing, desired: Resource) -> None:
        """Add a member. Raises ApiError and UnknownRole."""
        [(type, id)] = session.located.principal(desired.address.name, desired.address.on).items()
        session.change("POST", desired.address.on, "/members", {"members": [{"type": type, "id": id}]})

    def remove(self, session: Changing, address: Address) -> None:
        """Remove a member. Raises ApiError and UnknownRole."""
        [(type, id)] = session.located.principal(address.name, address.on).items()
        session.change("DELETE", address.on, f"/members/{type}/{segment(id)}")

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a member in the form of the file."""
        return principal_of(resource.address.name)


class Roles(Noun):
    """Roles. If another identity provider manages a role, apply does not change it or its members."""

    kind, member = Kind.ROLE, "roles"
    fields = ("name", "description", "provider-id", "source-id")
    contents = (Members(), GRANTS)

    def collect_contents(self, to: Collector, path: Path, address: Address, entry: Any) -> None:
        """Add the members and the grants of a role. Raises InvalidSource."""
        if entry.members and entry.provider_id not in (None, OWN_PROVIDER):
            text = f"the provider {entry.provider_id} manages the members of this role. Remove the list."
            raise to.source.error((*path, "members"), text)
        super().collect_contents(to, path, address, entry)

    def is_read(self, reading: Reading, on: Address) -> bool:
        """Return True if the file describes roles of the project, or contains principals that may be its roles."""
        return any(
            each.kind in (Kind.ROLE, Kind.GRANT) and on in each.ancestors() for each in reading.wanted.resources
        ) or any(of == on or on in of.ancestors() for _, of in reading.wanted.scopes)

    def note(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> None:
        """Record the id of a role, because any role can be a principal in the file."""
        reading.located.add_role(address.on, row["name"], id)

    def present(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> Resource:
        """Return a role. If another provider manages it, it is marked so that it is never removed."""
        provider = row["provider-id"]
        keep = None if provider == OWN_PROVIDER else f"the provider {provider} manages it"
        return Resource(address, {name: row.get(name) for name in self.fields}, id=id, keep=keep)

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Change the name and the description, and the group of an identity provider. Raises ApiError."""
        address = desired.address
        fields = {**session.present.resources[address].fields, **desired.fields}
        if "name" in changed or "description" in changed:
            # The request contains both fields: without a description, it would remove the current description.
            body = {name: fields[name] for name in ("name", "description")}
            session.change("POST", address, "", self.body(session, address, body))
        if "provider-id" in changed or "source-id" in changed:
            body = {name: fields[name] for name in ("provider-id", "source-id")}
            session.change("PUT", address, "/source-system", body)

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a role in the form of the file, without fields that the gateway or another provider determines."""
        found = super().entry(state, resource)
        if resource.keep is not None:
            found.pop("members", None)
        if found["provider-id"] == OWN_PROVIDER and found.get("source-id") == resource.id:
            del found["provider-id"], found["source-id"]
        return found


class Projects(Noun):
    """Projects. A project is found by its id, or else by its name."""

    kind, member, can_be_complete = Kind.PROJECT, "projects", False
    contents = (GRANTS, Roles(), TAGS, MAPPING_TABLES, DATA_POLICIES, WAREHOUSES)
    fields = ("name",)
    requests: ClassVar[Mapping[str, tuple[str, str]]] = {"name": ("{path}/rename", "new-name")}

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add a project. Raises InvalidSource."""
        self.add(to, path, Address(Kind.PROJECT, entry.id or entry.name), entry, entry.id)

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield the projects that the caller sees. Raises ApiError."""
        for row in session.api.list(f"{MANAGEMENT}/project-list", "projects"):
            yield Address(Kind.PROJECT, row["project-name"]), row["project-id"], row

    def read(self, reading: Reading, on: Address) -> None:
        """Read the projects in the file. Raises ApiError and Ambiguous."""
        wanted = reading.wanted.of_kind(Kind.PROJECT)
        listed = [row for _, _, row in self.rows(reading, on)] if wanted else []
        for project in wanted:
            names = {"project-id": project.id} if project.id is not None else {"project-name": project.address.name}
            if (row := next((each for each in listed if names.items() <= each.items()), None)) is None:
                continue
            if (other := reading.located.address(Kind.PROJECT, row["project-id"])) is not None:
                # With pruning, the lists under one name of the project would remove what the lists under its other name
                # declare.
                raise Ambiguous(f"{other} and {project.address} are the same project. Name it in one way in all files.")
            reading.add(Resource(project.address, {"name": row["project-name"]}, id=row["project-id"]))
            self.read_contents(reading, project.address)

    def create(self, session: Changing, desired: Resource) -> None:
        """Create a project. Raises ApiError."""
        spec = desired.spec
        body = self.body(session, desired.address, {"project-name": spec.name, "project-id": spec.id})
        made = session.api.change("POST", f"{MANAGEMENT}/project", body)
        session.located.add(desired.address, made["project-id"])

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the projects."""
        return {"projects": [self.entry(state, each) for each in state.of_kind(Kind.PROJECT)]}

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a project in the form of the file."""
        return {"id": resource.id, **super().entry(state, resource)}


class Users(Noun):
    """Users. Apply never removes a user."""

    kind, member, can_be_complete = Kind.USER, "users", False

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add a user. Raises InvalidSource."""
        fields = {"name": entry.name, "type": entry.type, **stated(entry, ("email",))}
        to.add(path, Resource(Address(Kind.USER, entry.id), fields, id=entry.id, spec=entry))

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield all users. Raises ApiError."""
        for row in session.api.pages(f"{MANAGEMENT}/user", self.member):
            yield Address(Kind.USER, row["id"]), row["id"], row

    def read(self, reading: Reading, on: Address) -> None:
        """Read the users in the file. Raises ApiError."""
        for user in reading.wanted.of_kind(Kind.USER):
            if (row := reading.api.find(reading.located.path(user.address))) is not None:
                fields = {"name": row["name"], "type": row["user-type"], "email": row.get("email")}
                reading.add(Resource(user.address, fields, id=row["id"]))

    def create(self, session: Changing, desired: Resource) -> None:
        """Create a user. Raises ApiError."""
        body = {"id": desired.spec.id, **self._body(session, desired, desired.fields)}
        session.api.change("POST", f"{MANAGEMENT}/user", body)

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Change a user. The current email is sent again, because a request without it would remove it. Raises
        ApiError.
        """
        fields = {**session.present.resources[desired.address].fields, **desired.fields}
        session.change("PUT", desired.address, "", self._body(session, desired, fields))

    def _body(self, session: Changing, user: Resource, fields: Mapping[str, Any]) -> dict[str, Any]:
        found = {"name": fields["name"], "user-type": fields["type"], "email": fields.get("email")}
        return self.body(session, user.address, found)

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the users, if there are any."""
        found = [{"id": each.address.name, **self.entry(state, each)} for each in state.of_kind(Kind.USER)]
        return {"users": found} if found else {}


class Server(Noun):
    """The server."""

    kind, member = Kind.SERVER, "server"
    contents = (GRANTS,)

    def collect(self, to: Collector, path: Path, on: Address, entries: Any) -> None:
        """Add the server if the file contains it. Raises InvalidSource."""
        if entries is not None:
            self.add(to, path, SERVER, entries)

    def read(self, reading: Reading, on: Address) -> None:
        """Record that the server exists."""
        if SERVER in reading.wanted.resources:
            reading.add(Resource(SERVER, id=""))

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the grants on the server, if they were read."""
        return {"server": found} if (found := self.exported_contents(state, SERVER)) else {}


SERVERS, USERS, PROJECTS = Server(), Users(), Projects()
