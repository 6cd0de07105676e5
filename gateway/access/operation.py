# SPDX-License-Identifier: Apache-2.0
"""Base classes of operations. An operation declares one action of the API: its demands, facts for policies, and audit.

An operation is a frozen dataclass in `operations/<noun>.py`. Its base class is its kind:

- over HTTP: `ReadOperation` (GET and HEAD), `QuestionOperation` (another method that changes nothing),
  `VendingOperation` (the response contains credentials) and `ChangeOperation`;
- without an endpoint: `SystemTask` (the gateway's background work) and `Step` (a decision that precedes an operation).

Creating the class of an operation fails if it has no kind, or neither demands nor a declared audience. This is lock 1
of nine mechanisms that make a missing check impossible (`ARCHITECTURE.md`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Final

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import EventDeclaration, NoEvent
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import Ref
from gateway.iceberg.errors import CatalogError
from gateway.obligations.application import EnforcementPoint

OPERATIONS: dict[str, type[HttpOperation]] = {}
"""Every HTTP operation by class name. Class creation fills it, and nothing changes it afterwards."""

UNROUTED: dict[str, type[Operation]] = {}
"""Operations that no route can serve: system tasks and steps. Class creation fills it."""

NO_DETAILS: Final[Mapping[str, str]] = MappingProxyType({})

_ENDPOINT = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) /\S+")
_READING = ("GET", "HEAD")


class Durability(StrEnum):
    """The time at which the audit record of an allowed operation must be durable."""

    BUFFERED = "buffered"
    """Reads: within 200 ms."""
    BEFORE_ANSWER = "before_answer"
    """Vending and signing: committed before the answer is sent, by group commit."""
    WITH_CHANGE = "with_change"
    """Mutations: in the transaction of the change itself."""


class Audience(StrEnum):
    """Callers that need no relation to do an operation."""

    ALL = "all"
    """All callers, also without a token. Such an operation has no demands, and neither OpenFGA nor OPA decides it."""
    AUTHENTICATED = "authenticated"
    """Every verified caller. OPA still decides the operation, and the audit records it."""
    SELF = "self"
    """Callers, for themselves. Without a required demand, the door checks that the operation is about the caller."""


@dataclass(frozen=True, slots=True)
class PublicAudience:
    """An audience, and the reason why it needs no relation. SECURITY.md lists every use."""

    audience: Audience
    reason: str = ""


class Operation:
    """An action that the door decides. Concrete classes derive from one of the kinds below.

    A class with `abstract=True` is not an operation. It has the common parts of several operations (`families.py`).
    """

    durability: ClassVar[Durability] = Durability.BUFFERED
    open_to: ClassVar[PublicAudience | None] = None
    enforcement_point: ClassVar[EnforcementPoint | None] = None
    """The place where obligations on a table's data apply, if any. The door refuses the operation if it carries an
    obligation that nothing enforces at this place.
    """

    def demands(self) -> tuple[Demand, ...]:
        """Return the demands. If several fail, the first one determines the refusal."""
        return ()

    def parts(self) -> Sequence[Operation]:
        """Return the parts of an operation that consists of several; empty for all other operations.

        Each part is decided separately, with a separate question to the policies. The operation is allowed if all parts
        are allowed. Its demands are those of its parts.
        """
        return ()

    def further_refs(self) -> tuple[Ref, ...]:
        """Return further references whose rows the use case needs. No relation to them is demanded."""
        return ()

    def enforced_at(self) -> EnforcementPoint | None:
        """Return the point where this request's obligations apply. By default it is `enforcement_point`."""
        return self.enforcement_point

    def new_table(self) -> str | None:
        """Return the name of the table that the request creates if data policies restrict it, else None."""
        return None

    def target_user(self) -> str | None:
        """Return the user that an operation open to SELF is about. Return None if it is always about the caller."""
        return None

    def hidden(self, ref: Ref) -> CatalogError:
        """Return the common response for a demanded `ref` that is absent or invisible."""
        return not_found(ref)

    def questions(self) -> int:
        """Return the number of questions to OpenFGA and OPA that are charged to the caller's share."""
        # An operation that does not consist of parts is decided as a whole.
        return sum(max(1, len(each.demands())) for each in self.parts() or (self,))

    def facts(self) -> Facts:
        """Return the facts that policies receive in addition to the name and the resource of the operation."""
        return {}

    def audit_details(self) -> Mapping[str, str]:
        """Return the details that the audit records beside the resources. They are small and never secret."""
        return NO_DETAILS

    def audited_fields(self) -> Mapping[str, object]:
        """Return the values that the audit records of an operation that changes something. By default they are all
        fields.

        `audit_facts` limits their size and removes each value whose name looks like that of a secret. Replace secrets
        under other names here.
        """
        declared: Any = self
        return {each.name: getattr(self, each.name) for each in fields(declared)} if is_dataclass(declared) else {}

    @classmethod
    def name(cls) -> str:
        """Return the name in audit records, metrics and policy input, for example `load_table` for `LoadTable`."""
        return _snake_case(cls.__name__)

    @classmethod
    def is_open(cls, audience: Audience) -> bool:
        """Return True if callers of this audience need no relation for the operation."""
        return cls.open_to is not None and cls.open_to.audience is audience

    @classmethod
    def is_public(cls) -> bool:
        """Return True if the operation needs no token."""
        return cls.is_open(Audience.ALL)

    @classmethod
    def returns_secret(cls) -> bool:
        """Return True if the response may contain a credential, token or signature. It is then never compressed."""
        return cls.enforcement_point is EnforcementPoint.VEND

    @classmethod
    def changes(cls) -> bool:
        """Return True if the operation changes anything except the audit.

        `Database.change` accepts permits of such operations only.
        """
        return cls.durability is Durability.WITH_CHANGE

    @classmethod
    def pauses(cls) -> bool:
        """Return True if read-only maintenance refuses the operation."""
        return cls.changes()

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """Return True if clients of the catalog protocol would interpret a 5xx response as "state unknown"."""
        return False

    @classmethod
    def uses_idempotency_keys(cls) -> bool:
        """Return True if requests with the same idempotency key have one effect only."""
        return False

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Return True if the operation belongs to the catalog that engines use, and not to management.

        A deactivated warehouse refuses such operations. Engines can request only such operations for users.
        """
        return False

    @classmethod
    def is_provisioning(cls) -> bool:
        """Return True if the operation belongs to SCIM. Provisioning tokens are accepted for such operations only."""
        return False

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        cls._require_declared()
        # `dataclass(slots=True)` would create the class a second time under the same name, and this check would refuse
        # it. Plain frozen dataclasses do not.
        if cls.__name__ in OPERATIONS or cls.__name__ in UNROUTED:
            raise TypeError(f"operation {cls.__name__} is declared twice")
        cls._register()

    @classmethod
    def _require_declared(cls) -> None:
        """Raise TypeError if the declaration of the class is not allowed for its kind."""
        raise TypeError(
            f"operation {cls.__name__} is of no kind: derive it from ReadOperation, QuestionOperation, "
            "VendingOperation, ChangeOperation, SystemTask or Step"
        )

    @classmethod
    def _register(cls) -> None:
        UNROUTED[cls.__name__] = cls

    @classmethod
    def _demands_something(cls) -> bool:
        return cls.demands is not Operation.demands


class HttpOperation(Operation, abstract=True):
    """An operation over HTTP. `endpoint` is its method and path template, `returns` the status of a success.

    `also_at` are older paths of the same endpoint, with the same method. They are one operation, so that policies,
    audit and metrics have one name for it. `authenticates_itself` is the reason why the handler itself verifies the
    token; the door still admits no caller without a token. With `echoes_request_id`, the response repeats the client's
    `x-request-id`, and not the gateway's own id of the request.
    """

    methods: ClassVar[tuple[str, ...]] = ()
    endpoint: ClassVar[str]
    also_at: ClassVar[tuple[str, ...]] = ()
    returns: ClassVar[int] = 200
    authenticates_itself: ClassVar[str] = ""
    echoes_request_id: ClassVar[bool] = False

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        method, path = cls.endpoint.split(" ", 1)
        return path.startswith(("/catalog/", "/lakekeeper/")) and method not in _READING

    @classmethod
    def uses_idempotency_keys(cls) -> bool:
        """Return True for changes, and for reads whose request then makes a change, such as `FindTasks`."""
        return cls.is_catalog_mutation() or cls.pauses()

    @classmethod
    def is_of_catalog(cls) -> bool:
        return cls.paths()[0].startswith(("/catalog/", "/lakekeeper/"))

    @classmethod
    def is_provisioning(cls) -> bool:
        return cls.paths()[0].startswith("/scim/")

    @classmethod
    def paths(cls) -> tuple[str, ...]:
        """Return every path of the operation, the current one first."""
        return (cls.endpoint.split(" ", 1)[1], *cls.also_at)

    @classmethod
    def _require_declared(cls) -> None:
        if not cls.methods:
            super()._require_declared()
        if "endpoint" not in cls.__dict__ or not _ENDPOINT.fullmatch(cls.endpoint):
            raise TypeError(f"operation {cls.__name__} must name its endpoint as 'METHOD /path'")
        method = cls.endpoint.split(" ", 1)[0]
        if method not in cls.methods:
            raise TypeError(f"operation {cls.__name__} is a {cls._kind()} and cannot have the method {method}")
        if any(not path.startswith("/") for path in cls.also_at):
            raise TypeError(f"operation {cls.__name__}: an older path must begin with a slash, and contain no method")
        if not cls._demands_something() and cls.open_to is None:
            raise TypeError(f"operation {cls.__name__} must define demands(), or declare its audience in open_to")
        if cls.is_public() and cls._demands_something():
            raise TypeError(f"operation {cls.__name__} is public, so it must not define demands()")

    @classmethod
    def _kind(cls) -> str:
        kinds = (ReadOperation, QuestionOperation, VendingOperation, ChangeOperation)
        return next(each.__name__ for each in kinds if issubclass(cls, each))

    @classmethod
    def _register(cls) -> None:
        OPERATIONS[cls.__name__] = cls


class ReadOperation(HttpOperation, abstract=True):
    """A GET or HEAD request. It changes nothing, so read-only maintenance serves it."""

    methods: ClassVar[tuple[str, ...]] = _READING


class QuestionOperation(HttpOperation, abstract=True):
    """A request that changes nothing, with another method than GET or HEAD. Read-only maintenance serves it.

    `pause_reason` is the reason why maintenance refuses it nevertheless; empty if it does not.
    """

    methods: ClassVar[tuple[str, ...]] = ("POST", "PUT", "PATCH", "DELETE")
    pause_reason: ClassVar[str] = ""

    @classmethod
    def pauses(cls) -> bool:
        return bool(cls.pause_reason)


class VendingOperation(HttpOperation, abstract=True):
    """A request whose response contains credentials. Its audit record is durable before the response is sent."""

    methods: ClassVar[tuple[str, ...]] = ("GET", "POST")
    durability: ClassVar[Durability] = Durability.BEFORE_ANSWER

    @classmethod
    def returns_secret(cls) -> bool:
        return True


class ChangeOperation(HttpOperation, abstract=True):
    """A request that changes something: refused in read-only maintenance, and done once for each idempotency key.

    `refused_for_good` is the response of maintenance if clients must not retry the change. `for_every_token` allows a
    change outside of projects to tokens that are valid in one project only.
    """

    methods: ClassVar[tuple[str, ...]] = ("POST", "PUT", "PATCH", "DELETE")
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    event: ClassVar[EventDeclaration]
    """The event that announces the committed change, or why there is none."""
    refused_for_good: ClassVar[str] = ""
    for_every_token: ClassVar[bool] = False

    def event_body(self) -> object:
        """Return the request body in the form of the protocol, for an event that declares `EventData.BODY`."""
        return getattr(self, "request")  # noqa: B009 - most operations have a field of this name, and no base class does

    @classmethod
    def _require_declared(cls) -> None:
        super()._require_declared()
        if not hasattr(cls, "event"):
            raise TypeError(f"operation {cls.__name__} must declare its event, or NoEvent with the reason")


class SystemTask(Operation, abstract=True):
    """Work of the gateway itself. The door admits it for the tasks in `system_tasks` only, never for a caller.

    It demands no relation; policies decide. `continue_reason` is the reason why it continues in read-only maintenance.
    """

    system_tasks: ClassVar[frozenset[str]] = frozenset()
    event: ClassVar[EventDeclaration] = NoEvent("most tasks change no object of the catalog")
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    continue_reason: ClassVar[str] = ""

    @classmethod
    def pauses(cls) -> bool:
        return cls.changes() and not cls.continue_reason

    @classmethod
    def _require_declared(cls) -> None:
        if not cls.system_tasks:
            raise TypeError(f"operation {cls.__name__}: a system task must define system_tasks")
        if cls._demands_something() or cls.open_to is not None:
            raise TypeError(f"operation {cls.__name__} is a system task: it must define neither open_to nor demands()")
        if cls.continue_reason and not cls.changes():
            raise TypeError(f"operation {cls.__name__} changes nothing, so it must not define continue_reason")


class Step(Operation, abstract=True):
    """A decision that precedes an operation: acting as a role, reading through a view, or repeating a response.

    `occasion` is one word for the situation in which the door admits it. `preconditions._require_way` checks the
    situation.
    """

    occasion: ClassVar[str] = ""

    @classmethod
    def _require_declared(cls) -> None:
        if not cls.occasion:
            raise TypeError(f"operation {cls.__name__}: a step must define occasion")
        if cls.open_to is not None:
            raise TypeError(f"operation {cls.__name__} is a step: it must not define open_to")


@cache
def _snake_case(name: str) -> str:
    """Return `load_table` for the class name `LoadTable`. Cached, because every request needs it ten times."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
