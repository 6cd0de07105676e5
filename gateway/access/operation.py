# SPDX-License-Identifier: Apache-2.0
"""What every operation is: what must be true, what policies may look at, and how it is audited.

An operation is a frozen dataclass in `operations/<noun>.py`. Its base class says what it does:

- over HTTP: `ReadOperation` (GET and HEAD), `QuestionOperation` (another method that changes nothing),
  `VendingOperation` (credentials leave with the answer) and `ChangeOperation`;
- without a request of its own: `SystemTask` (the gateway's background work) and `Step` (on the way to an operation).

Lock 1 of the door: an operation of no kind, or one that demands nothing without saying so, cannot be created.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import ClassVar, Final

from gateway.access.authz_errors import not_found
from gateway.access.demand import Demand, Facts
from gateway.access.refs import Ref
from gateway.iceberg.errors import CatalogError
from gateway.obligations.application import Place

OPERATIONS: dict[str, type[HttpOperation]] = {}
"""Every operation of a request by class name, filled as the classes are created and never changed afterwards."""

UNROUTED: dict[str, type[Operation]] = {}
"""Operations that no route can serve: system tasks and steps. Filled like OPERATIONS."""

NO_DETAILS: Final[Mapping[str, str]] = MappingProxyType({})

_ENDPOINT = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) /\S+")
_READING = ("GET", "HEAD")


class Durability(StrEnum):
    """When the audit record of an allowed operation is durable."""

    BUFFERED = "buffered"
    """Reads: within 200 ms."""
    BEFORE_ANSWER = "before_answer"
    """Vending and signing: committed before the answer leaves, by group commit."""
    WITH_CHANGE = "with_change"
    """Mutations: in the transaction of the change itself."""


class Audience(StrEnum):
    """Callers that an operation admits although they hold no relation."""

    EVERYBODY = "all"
    """Without a token too. Such an operation demands nothing, and passes neither OpenFGA nor OPA."""
    AUTHENTICATED = "authenticated"
    """Every verified caller. OPA and the audit bind the operation all the same."""
    SELF = "self"
    """Callers for themselves. Where nothing is demanded, the door checks that the operation is about nobody else."""


@dataclass(frozen=True, slots=True)
class OpenTo:
    """An audience, and the reason why it needs no relation. SECURITY.md lists every use."""

    audience: Audience
    reason: str = ""


class Operation:
    """Describe one thing that the door decides. Concrete classes derive from one of the kinds below.

    A class with `abstract=True` is no operation: it has the common parts of several (`families.py`).
    """

    durability: ClassVar[Durability] = Durability.BUFFERED
    open_to: ClassVar[OpenTo | None] = None
    place: ClassVar[Place | None] = None
    """Where something of a table leaves or comes in; the door refuses what carries an obligation unenforced there."""

    def demands(self) -> tuple[Demand, ...]:
        """Return everything that must be true, in the order in which refusals are answered."""
        return ()

    def parts(self) -> Sequence[Operation]:
        """Return the operations that this one consists of, if it is several.

        Each is decided by itself, with a question of its own to the policies, and this one is allowed if all of them
        are. Their demands are its demands.
        """
        return ()

    def looks_up(self) -> tuple[Ref, ...]:
        """Return further references whose rows the use case needs; they are not demanded."""
        return ()

    def whose(self) -> str | None:
        """Return the user that an operation open to SELF is about; None if it can only be about the caller."""
        return None

    def hidden(self, ref: Ref) -> CatalogError:
        """Return the answer if `ref`, which a demand is about, is absent or invisible: the same for both."""
        return not_found(ref)

    def questions(self) -> int:
        """Return the number of questions to the decision engines that are charged to the caller's share."""
        # The only part of an operation may be the operation itself.
        return sum(max(1, len(each.demands())) for each in self.parts() or (self,))

    def facts(self) -> Facts:
        """Return what policies receive beyond the name and the resource."""
        return {}

    def told(self) -> Mapping[str, str]:
        """Return what the audit records beside the resources; bounded, and never a secret."""
        return NO_DETAILS

    @classmethod
    def name(cls) -> str:
        """The snake_case name in audit records, metrics and policy input: `LoadTable` is `load_table`."""
        return _snake_case(cls.__name__)

    @classmethod
    def is_open(cls, audience: Audience) -> bool:
        """Return True if this audience needs no relation for it."""
        return cls.open_to is not None and cls.open_to.audience is audience

    @classmethod
    def is_public(cls) -> bool:
        """Return True if no token is needed."""
        return cls.is_open(Audience.EVERYBODY)

    @classmethod
    def changes(cls) -> bool:
        """Return True if it changes anything beside the audit. `Database.change` takes permits of no other."""
        return cls.durability is Durability.WITH_CHANGE

    @classmethod
    def pauses(cls) -> bool:
        """Return True if it is refused in read-only maintenance."""
        return cls.changes()

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """Return True when clients of the catalog protocol would read a 5xx answer as "state unknown"."""
        return False

    @classmethod
    def heeds_keys(cls) -> bool:
        """Return True if it is done once for each idempotency key."""
        return False

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Return True if it is part of the catalog that engines use, and not of management.

        A deactivated warehouse has no such operations, and engines do no others in the name of their users.
        """
        return False

    @classmethod
    def is_provisioning(cls) -> bool:
        """Return True if it is SCIM's, and so open to the tokens that are for nothing else."""
        return False

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        cls._require_declared()
        # dataclass(slots=True) would create the class a second time under the same name; plain frozen dataclasses do
        # not.
        if cls.__name__ in OPERATIONS or cls.__name__ in UNROUTED:
            raise TypeError(f"operation {cls.__name__} is declared twice")
        cls._register()

    @classmethod
    def _require_declared(cls) -> None:
        """Raise TypeError for a declaration that the kind does not allow."""
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
    """An operation of a request. `endpoint` is its method and path template; `returns` the status of success.

    `also_at` are older paths of the same endpoint, with the same method: one operation, so that policies, audit and
    metrics know it by one name. `authenticates_itself` gives the reason why the handler verifies the token; the door
    admits no caller without one.
    """

    methods: ClassVar[tuple[str, ...]] = ()
    endpoint: ClassVar[str]
    also_at: ClassVar[tuple[str, ...]] = ()
    returns: ClassVar[int] = 200
    authenticates_itself: ClassVar[str] = ""

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        method, path = cls.endpoint.split(" ", 1)
        return path.startswith(("/catalog/", "/lakekeeper/")) and method not in _READING

    @classmethod
    def heeds_keys(cls) -> bool:
        """Return True for changes, and for operations that the same request admits before one."""
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
            raise TypeError(f"operation {cls.__name__} is a {cls._kind()}: its method is no {method}")
        if any(not path.startswith("/") for path in cls.also_at):
            raise TypeError(f"operation {cls.__name__}: an older path begins with a slash, and has no method")
        if not cls._demands_something() and cls.open_to is None:
            raise TypeError(f"operation {cls.__name__} must define demands() or say to whom it is open in open_to")
        if cls.is_public() and cls._demands_something():
            raise TypeError(f"operation {cls.__name__} is open to everybody, so it demands nothing")

    @classmethod
    def _kind(cls) -> str:
        kinds = (ReadOperation, QuestionOperation, VendingOperation, ChangeOperation)
        return next(each.__name__ for each in kinds if issubclass(cls, each))

    @classmethod
    def _register(cls) -> None:
        OPERATIONS[cls.__name__] = cls


class ReadOperation(HttpOperation, abstract=True):
    """A GET or HEAD. It changes nothing, and read-only maintenance rests on that."""

    methods: ClassVar[tuple[str, ...]] = _READING


class QuestionOperation(HttpOperation, abstract=True):
    """A request with another method that changes nothing, and is served in read-only maintenance.

    `pauses_because` gives the reason why one is refused in maintenance nevertheless.
    """

    methods: ClassVar[tuple[str, ...]] = ("POST", "PUT", "PATCH", "DELETE")
    pauses_because: ClassVar[str] = ""

    @classmethod
    def pauses(cls) -> bool:
        return bool(cls.pauses_because)


class VendingOperation(HttpOperation, abstract=True):
    """A request whose answer holds credentials: its audit record is durable before the answer leaves."""

    methods: ClassVar[tuple[str, ...]] = ("GET", "POST")
    durability: ClassVar[Durability] = Durability.BEFORE_ANSWER


class ChangeOperation(HttpOperation, abstract=True):
    """A request that changes something: refused in read-only maintenance, and done once for each idempotency key.

    `refused_for_good` is the answer in maintenance to a change that clients must not retry. `for_every_token` allows a
    change outside of projects for a token that is valid in one project.
    """

    methods: ClassVar[tuple[str, ...]] = ("POST", "PUT", "PATCH", "DELETE")
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    refused_for_good: ClassVar[str] = ""
    for_every_token: ClassVar[bool] = False


class SystemTask(Operation, abstract=True):
    """The gateway's own work: the door admits it for the background tasks in `system_tasks` and for no caller.

    It demands no relation; policies decide. `goes_on_because` gives the reason why it continues in read-only
    maintenance.
    """

    system_tasks: ClassVar[frozenset[str]] = frozenset()
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    goes_on_because: ClassVar[str] = ""

    @classmethod
    def pauses(cls) -> bool:
        return cls.changes() and not cls.goes_on_because

    @classmethod
    def _require_declared(cls) -> None:
        if not cls.system_tasks:
            raise TypeError(f"operation {cls.__name__}: a system task names its system_tasks")
        if cls._demands_something() or cls.open_to is not None:
            raise TypeError(f"operation {cls.__name__} is a system task: it is never open and demands no relation")
        if cls.goes_on_because and not cls.changes():
            raise TypeError(f"operation {cls.__name__} changes nothing, so it goes on in maintenance anyway")


class Step(Operation, abstract=True):
    """A decision on the way to an operation: acting as a role, reading through a view, repeating an answer.

    `occasion` says in one word when the door admits it; `_require_way` of the door checks that it is one.
    """

    occasion: ClassVar[str] = ""

    @classmethod
    def _require_declared(cls) -> None:
        if not cls.occasion:
            raise TypeError(f"operation {cls.__name__}: a step names its occasion")
        if cls.open_to is not None:
            raise TypeError(f"operation {cls.__name__} is a step: it is never open")


@cache
def _snake_case(name: str) -> str:
    """Return `load_table` for `LoadTable`. Cached, because every request needs it ten times."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
