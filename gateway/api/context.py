# SPDX-License-Identifier: Apache-2.0
"""Define `Ctx`, the context that every handler receives.

It has the caller, the door (which decides operations) and the use cases, and methods that read the request.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from litestar import Request

from gateway.access.actor import Actor, ActorKind
from gateway.access.door.permit import Permit
from gateway.access.door.request_context import RequestContext
from gateway.access.idempotency import Claim, RecordedSuccess, RepeatableRequest
from gateway.access.management_errors import ProjectIdMissing
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.operation import HttpOperation, Operation
from gateway.access.operations.actions import Identity
from gateway.access.principals import other_principal, principal_of
from gateway.access.shares.shares import Lease
from gateway.access.tuples import Principal
from gateway.api.binding import Inputs, bind
from gateway.api.early_refusal import authorizations_of, credential_of
from gateway.api.idempotency import parse_key
from gateway.api.latch import LEASE, announced_bytes
from gateway.api.path_refs import read_path, referenced_views
from gateway.api.raw_path import refuse_in_body
from gateway.api.request_encoding import MAX_FORM, Form, UnreadableForm, read_form
from gateway.api.serves import INPUTS
from gateway.api.services import Services
from gateway.iceberg.errors import BadRequestException, InvalidPaginationToken
from gateway.iceberg.limits import refuse_many_values
from gateway.iceberg.wire import decode
from gateway.identity.tokens import VerifiedToken
from gateway.scim.reading import read as read_scim
from gateway.telemetry.logs import add_to_context

Op = TypeVar("Op", bound=Operation)
Extra = TypeVar("Extra", bound=Operation)
Http = TypeVar("Http", bound=HttpOperation)
Body = TypeVar("Body")
Default = TypeVar("Default", bool, None)
Value = TypeVar("Value")
UseCase = TypeVar("UseCase")


class Ctx:
    """One request: its caller, the services, and methods that read its declared inputs and admit operations."""

    __slots__ = ("_decoded", "_context", "_inputs", "_lease", "_request", "services")

    def __init__(
        self,
        services: Services,
        request_context: RequestContext,
        request: Request[Any, Any, Any],
        lease: Lease | None = None,
    ) -> None:
        self.services = services
        self._context = request_context
        self._lease = lease
        self._request = request
        self._inputs: Inputs = request.route_handler.opt.get(INPUTS, Inputs())
        self._decoded: tuple[Any, Any] | None = None

    @property
    def actor(self) -> Actor:
        """Return the caller."""
        return self._context.actor

    def use(self, kind: type[UseCase]) -> UseCase:
        """Return the only instance of a class with use cases."""
        instance: UseCase = self.services.use_case(kind)
        return instance

    async def verified_caller(self) -> VerifiedToken | None:
        """Verify the token in the Authorization header. Return None without the header. Raises errors of status 401 and
        503.
        """
        given = authorizations_of(self._request.scope)
        return await self.services.verify_caller(given, self._request.scope) if given else None

    def _media_type(self) -> str:
        """Return the media type of the body, without parameters and in lower case."""
        return self._request.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def form(self, kind: type[Form]) -> Form:
        """Return the body as a form. Raises UnreadableForm. At most `MAX_FORM` bytes and one further chunk are read."""
        self._require_declared(kind == self._inputs.form, str(kind))
        body = bytearray()
        if announced_bytes(self._request.scope) <= MAX_FORM:
            async for chunk in self._request.stream():
                body += chunk
                if len(body) > MAX_FORM:
                    break
        else:
            raise UnreadableForm(f"the request body has more than {MAX_FORM} bytes")
        return read_form(self._media_type(), bytes(body), kind)

    def require_json(self) -> None:
        """Raise 400 unless the content type of the body is JSON. Most endpoints accept any content type."""
        if self._media_type() != "application/json":
            raise BadRequestException("Send the body with the header `Content-Type: application/json`.")

    async def _content(self) -> bytes:
        """Return the bytes of the JSON body. Raises 400 if it contains U+0000."""
        raw = await self._request.body()
        refuse_in_body(raw)
        return raw

    async def authenticate_as(self, token: VerifiedToken) -> None:
        """Set the caller, which the handler itself has authenticated. Raises ShareExceeded, and TypeError if there is a
        caller already.
        """
        if self._context.actor.kind is not ActorKind.ANONYMOUS:
            raise TypeError(f"the request already has the caller {self._context.actor.id}")
        self._context.actor = self.services.actor_of(token)
        add_to_context(actor=self._context.actor.id)
        self._lease = await enter(self._request, self.services, self._context.actor)

    async def pass_through_views(self) -> None:
        """Admit the read through the views in `referenced-by`, if the token belongs to a trusted engine.

        For every other caller the parameter has no effect. Raises 400 for a malformed or too long chain of views,
        ShareExceeded, and the errors of `Door.pass_through`.
        """
        if not self.actor.owner_properties:
            return
        views = referenced_views(
            self._request.scope["query_string"], self.ref(WarehouseRef).warehouse_id, self.services.max_view_depth
        )
        await self._charge(len(views))
        await self.services.door.pass_through(self._context, views)

    async def admit(self, operation: Op) -> Permit[Op]:
        """Return the permit for `operation`. Raises ShareExceeded and the errors of `Door.admit`."""
        return (await self.admit_with(operation, None))[0]

    async def admit_with(self, operation: Op, extra: Extra | None) -> tuple[Permit[Op], Permit[Extra] | None]:
        """Return (permit for `operation`, permit for `extra`), decided together.

        The second permit is None if `extra` is None or refused. Raises the errors of `admit`.
        """
        questions = operation.questions() + (0 if extra is None else extra.questions())
        await self._charge(questions)
        started = time.perf_counter()
        try:
            permits = await self.services.door.admit_with(self._context, operation, extra)
        finally:
            # Only requests with a lease count, so with a token. Otherwise many fast decisions on requests without a
            # token could hide slow ones.
            if self._lease is not None:
                self.services.shares.decided(time.perf_counter() - started, questions)
        self._recognize_delegate(operation)
        return permits

    async def _charge(self, questions: int) -> None:
        """Charge a number of checks by decision engines to the caller's share. Raises ShareExceeded."""
        if self._lease is not None and questions > 0:
            await self._lease.charge_questions(questions)

    def _recognize_delegate(self, operation: Operation) -> None:
        """Recognize the engine of a delegated request, because it was admitted: the engine holds `delegate` on the
        objects.
        """
        engine = self.actor.engine
        if engine is not None and isinstance(operation, HttpOperation) and not operation.is_public():
            self.services.shares.recognize(engine)

    def recognize_engine(self) -> None:
        """Put the caller's next requests into the lane of engines. Call it if a decision has found that the caller is
        an inspector or delegate.
        """
        self.services.shares.recognize(self.actor.id)

    async def begin(self, operation: type[HttpOperation]) -> Claim | RecordedSuccess | None:
        """Claim the request's idempotency key, or return the success that is recorded for it. Return None without a
        key.

        Raises the error of read-only maintenance, because a claim is a change. Raises 400 for a malformed key, 409
        while the first attempt runs, and 422 for a key that was used with another body.
        """
        self.services.door.require_not_paused(operation)
        key = parse_key(self._request.headers.getall("idempotency-key", []))
        if key is None or self.services.idempotency is None:
            return None
        digest = hashlib.sha256(self._request.scope["query_string"] + b"\x00" + await self._content())
        if not operation.is_catalog_mutation():
            # The named project is part of the request. The key acts as a salt and is not stored: bodies here may hold
            # credentials, and a stored digest must not allow an attacker to test guesses of them.
            digest.update(b"\x00" + (self._header("x-project-id") or "").encode() + b"\x00" + key.bytes)
            if (precondition := self._header("if-match")) is not None:
                # Added only if the header is present, so that other requests keep the digest that older versions
                # recorded.
                digest.update(b"\x00" + precondition.encode())
        begun = await self.services.idempotency.begin(
            RepeatableRequest(
                actor=self.actor,
                operation=operation.name(),
                method=self._request.method,
                path=self._request.scope["path"],
                key=key,
                digest=digest.digest(),
            )
        )
        if isinstance(begun, Claim):
            self._context.claim = begun
        else:
            self._context.recorded_success = begun
        return begun

    async def read(self, operation: type[Http], **given: object) -> Http:
        """Build an operation from the request, by the markers of its fields. `given` are fields that the handler sets.

        Raises 400 for missing and malformed inputs.
        """
        binding = bind(operation)
        body = None if binding.inputs.body is None else await self.body(binding.inputs.body)
        return operation(**{name: read(self, body) for name, read in binding.readers if name not in given}, **given)

    @property
    def path(self) -> Mapping[str, Any]:
        """Return the path parameters by name."""
        return self._request.path_params

    def ref(self, kind: type[Value]) -> Value:
        """Return the reference of this type in the path. Raises 400 for a malformed path parameter."""
        return read_path(kind, self.path)

    async def body(self, kind: type[Body]) -> Body:
        """Return the JSON body. It is decoded once, so that the operation and the use case see the same value
        (LG-DEC-02).

        Raises 400 for an empty, malformed or too large document, and TypeError for an undeclared type.
        """
        if self._decoded is not None and self._decoded[0] is kind:
            decoded: Body = self._decoded[1]
            return decoded
        self._require_declared(kind == self._inputs.body, str(kind))
        body = await self._decode(kind)
        self._decoded = (kind, body)
        return body

    async def _decode(self, kind: type[Body]) -> Body:
        raw = await self._content()
        if not raw:
            raise BadRequestException("Malformed request: the body is empty")
        refuse_many_values(raw, self.services.limits)
        return decode(raw, kind)

    async def scim(self, kind: type[Body]) -> Body:
        """Return the body by the rules of SCIM: the letter case of names and unknown fields are ignored. Raises
        ScimError.
        """
        self._require_declared(kind == self._inputs.body, str(kind))
        return read_scim(await self._content(), kind)

    def _require_declared(self, declared: bool, name: str) -> None:
        """Raise TypeError for an input that the handler does not declare, because the OpenAPI document would not
        contain it.
        """
        if not declared:
            raise TypeError(f"{self._request.scope['path']} reads {name}, which its handler does not declare")

    def header(self, name: str) -> str | None:
        """Return the value of a header; None if it is absent. If the header occurs several times, the values are joined
        by commas.
        """
        self._require_declared(name in self._inputs.headers, name)
        return self._header(name)

    def _header(self, name: str) -> str | None:
        values = self._request.headers.getall(name, [])
        return ", ".join(values) if values else None

    def query(self, name: str) -> str | None:
        """Return a query parameter; None if it is absent.

        Raises 400 if it is given twice, because two readers could take different values (LG-DEC-02).
        """
        self._require_declared(name in self._inputs.query, name)
        values = self._request.query_params.getall(name, [])
        if len(values) > 1:
            raise BadRequestException(f"The query parameter {name} is given {len(values)} times; give it once.")
        return values[0] if values else None

    def refused_query(self, name: str) -> bool:
        """Return True if the request has this query parameter. For parameters that the handler rejects and does not
        declare.
        """
        return name in self._request.query_params

    def queries(self, name: str) -> list[str]:
        """Return the values of a query parameter that may be repeated or have several values separated by commas. Empty
        values are left out.
        """
        self._require_declared(name in self._inputs.query, name)
        given = ",".join(self._request.query_params.getall(name, []))
        return [part.strip() for part in given.split(",") if part.strip()]

    def principal(self, *, own: bool = False) -> Principal | None:
        """Return the principal in the query parameter `principalUser` or `principalRole`; None if neither is set.

        Unless `own` is set, return None for the caller itself too. Raises 400 if both are set, and for malformed ids.
        """
        user, role = self.query("principalUser"), self.query("principalRole")
        if user is None and role is None:
            return None
        given = {name: value for name, value in (("user", user), ("role", role)) if value is not None}
        try:
            identity = msgspec.convert(given, Identity)
        except msgspec.ValidationError:
            raise BadRequestException(
                "Give principalUser as `<provider>~<subject>`, or principalRole as a UUID."
            ) from None
        principal = principal_of(identity)
        return principal if own else other_principal(principal, self.actor)

    def flag(self, name: str, default: Default) -> bool | Default:
        """Return a boolean query parameter; `default` if it is absent. Raises 400 for any other value."""
        text = self.query(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise BadRequestException(f"The query parameter {name} must be true or false, not {text[:20]!r}.")
        return text.lower() == "true"

    def page_size(self, name: str, after: str) -> int | None:
        """Return the page size in the query parameter `name`, at most `page_size_max`.

        Without it, return `page_size_max` if the request has the page token `after`, else None. Raises 400 for anything
        but a positive number.
        """
        size = self.query(name)
        if size is None:
            return self.services.page_size_max if after and self.query(after) is not None else None
        if not size.isascii() or not size.isdigit() or not size.strip("0"):
            raise InvalidPaginationToken(f"pageSize must be a positive whole number, not {size[:20]!r}.")
        # `int` raises an error for thousands of digits, and a number of more than nine digits exceeds the largest page
        # anyway.
        return self.services.page_size_max if len(size) > 9 else min(int(size), self.services.page_size_max)

    def project(self, given: str | None = None) -> ProjectRef:
        """Return the project of a management request.

        It is the first of: the project in the path (older paths), the project in the header `x-project-id`, the body
        (`given`) or the query (older clients), the project that token or role limit the caller to, the default project.
        Raises 400 if header, body and query have different projects, and ProjectIdMissing if no project is found.
        """
        if "project_id" in self.path:
            return ProjectRef(self.path["project_id"])
        role_headers = (self.header("x-project-id"), given, self.query("projectId"), self.query("project-id"))
        named = {each for each in role_headers if each}
        if len(named) > 1:
            raise BadRequestException("The header x-project-id, query and body must name the same project.")
        id = named.pop() if named else self.actor.within or self.services.default_project_id
        if id is None:
            raise ProjectIdMissing("The request names no project. Name one with the header x-project-id.")
        return ProjectRef(id)


async def enter(request: Request[Any, Any, Any], services: Services, actor: Actor) -> Lease:
    """Occupy a slot in the caller's share. The latch releases it when the request ends. Raises ShareExceeded."""
    lease = await services.shares.enter(actor, announced_bytes(request.scope), credential_of(request.scope))
    request.scope["state"][LEASE] = lease
    return lease
