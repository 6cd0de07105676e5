# SPDX-License-Identifier: Apache-2.0
"""What every operation is: an endpoint, what must be true, what policies may look at, and how it is audited.

Lock 1 of the door: a class that names no endpoint, or that demands nothing without saying so, cannot be created.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import ClassVar, Final

from gateway.access.demand import Demand, Facts
from gateway.access.refs import Ref
from gateway.access.refusals import not_found
from gateway.iceberg.errors import CatalogError

OPERATIONS: dict[str, type[Operation]] = {}
"""Every operation by class name, filled as the classes are created and never changed afterwards."""

UNROUTED: dict[str, type[Operation]] = {}
"""Operations that no route can serve: background tasks, repeated answers, acting as a role. Filled like OPERATIONS."""

NOTHING_TOLD: Final[Mapping[str, str]] = MappingProxyType({})

_ENDPOINT = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) /\S+")
_UNROUTED_ENDPOINT = re.compile(r"(TASK|REPEAT|ASSUME|THROUGH) /\S+")


class Durability(StrEnum):
    """When the audit record of an allowed operation is durable (decision 14 of the design)."""

    BUFFERED = "buffered"
    """Reads: within 200 ms."""
    BEFORE_ANSWER = "before_answer"
    """Vending and signing: committed before the answer leaves, by group commit."""
    WITH_CHANGE = "with_change"
    """Mutations: in the transaction of the change itself."""


class Operation:
    """One thing that can be asked. Subclasses are frozen dataclasses in `operations/<noun>.py`.

    `endpoint` is the method and path template; `returns` the status of success. `open_to_all` needs no token.
    `for_every_token` is for a change about no project that a token for one project may make all the same.
    `tells_who_asks` gives the reason why its own request says by whom it is made: nobody is authenticated before its
    handler does so, and nobody who was not is admitted.
    `also_at` are older paths of the same endpoint, with the same method: one operation, so that policies, audit and
    metrics know it by one name wherever it comes in.
    `open_to_authenticated` gives the reason why any verified caller may do it; such an operation still passes OPA and
    the audit, and only such an operation may have nothing but optional demands. `open_to_self` gives the reason why
    callers may do it for themselves: where it demands nothing, the door sees to it that it is about nobody else
    (`whose`).

    An endpoint `TASK /…` is no route: the door admits it for the gateway's own tasks named in `system_tasks` and for
    nobody else, and those tasks for nothing else. `REPEAT /…` is admitted where a remembered success is repeated.
    `ASSUME /…` is admitted before anything else that a caller asks for; it has demands, and so
    has `THROUGH /…`, a view on the way to what a trusted engine reads for its readers.

    A class with `abstract=True` is no operation: it is what several have in common (`families.py`).

    `durability` also says whether it changes anything (`changes`), and read-only maintenance rests on that alone. So a
    route with a method that usually changes something has `Durability.WITH_CHANGE`, or tells in `reads_because` why it
    does not change anything after all; and `Database.change` takes no permit of an operation that says it does not.
    `goes_on_because` tells why a task that changes something goes on in read-only maintenance, `pauses_because` why
    what changes nothing does not, and `not_sent_again` what is told in maintenance of a change that no client shall
    wait for: it is refused for good and not until later.
    """

    endpoint: ClassVar[str]
    also_at: ClassVar[tuple[str, ...]] = ()
    returns: ClassVar[int] = 200
    open_to_all: ClassVar[bool] = False
    open_to_authenticated: ClassVar[str] = ""
    open_to_self: ClassVar[str] = ""
    durability: ClassVar[Durability] = Durability.BUFFERED
    reads_because: ClassVar[str] = ""
    goes_on_because: ClassVar[str] = ""
    pauses_because: ClassVar[str] = ""
    not_sent_again: ClassVar[str] = ""
    system_tasks: ClassVar[frozenset[str]] = frozenset()
    for_every_token: ClassVar[bool] = False
    tells_who_asks: ClassVar[str] = ""

    def demands(self) -> tuple[Demand, ...]:
        """Everything that must be true, in the order in which a refusal is told."""
        return ()

    def parts(self) -> Sequence[Operation]:
        """The operations this one consists of, when it is several: each is decided by itself, with a question of its
        own to the policies, and this one is allowed when all of them are. Their demands are its demands.
        """
        return ()

    def looks_up(self) -> tuple[Ref, ...]:
        """What else the use case needs the rows of, beyond what the demands are about; nothing is asked about it."""
        return ()

    def whose(self) -> str | None:
        """The id of the user that an operation which is open to oneself is about; None when it names nobody and so can
        only be about the caller.
        """
        return None

    def hidden(self, ref: Ref) -> CatalogError:
        """What is told when `ref`, which a demand is about, is not there or not seen: the same in both cases."""
        return not_found(ref)

    def questions(self) -> int:
        """Return the number of questions to the decision engines that are charged to the caller's share."""
        # The only part of an operation may be the operation itself.
        return sum(max(1, len(each.demands())) for each in self.parts() or (self,))

    @property
    def open(self) -> bool:
        """Whether it says of itself that it may be done without holding anything."""
        return self.open_to_all or bool(self.open_to_authenticated or self.open_to_self)

    def facts(self) -> Facts:
        """What policies may know about this operation beyond its name and target."""
        return {}

    def told(self) -> Mapping[str, str]:
        """What the audit says of this operation beside the things it is about; bounded, and never a secret."""
        return NOTHING_TOLD

    @classmethod
    def name(cls) -> str:
        """The snake_case name in audit records, metrics and policy input: `LoadTable` is `load_table`."""
        return _snake_case(cls.__name__)

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """True when clients of the catalog protocol would read a 5xx answer as "state unknown"."""
        method, path = cls.endpoint.split(" ", 1)
        return path.startswith(("/catalog/", "/lakekeeper/")) and method not in ("GET", "HEAD")

    @classmethod
    def heeds_keys(cls) -> bool:
        """Whether it is done once for each idempotency key: whatever changes anything, over whichever API, and what
        the same request is admitted for before it.
        """
        return cls.is_catalog_mutation() or (cls.routed() and (cls.changes() or bool(cls.pauses_because)))

    @classmethod
    def changes(cls) -> bool:
        """Whether it changes anything beside the audit."""
        return cls.durability is Durability.WITH_CHANGE

    @classmethod
    def pauses(cls) -> bool:
        """Whether it is refused in read-only maintenance."""
        return (cls.changes() or bool(cls.pauses_because)) and not cls.goes_on_because

    @classmethod
    def needs_active_warehouse(cls) -> bool:
        """Whether it is of the catalog, which a warehouse that was deactivated is no part of; management goes on."""
        return cls.is_of_catalog()

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Whether it is what engines come for, and no management."""
        return cls.paths()[0].startswith(("/catalog/", "/lakekeeper/"))

    @classmethod
    def is_provisioning(cls) -> bool:
        """Whether it is what directories come for (SCIM), and so open to the tokens that are for nothing else."""
        return cls.paths()[0].startswith("/scim/")

    @classmethod
    def paths(cls) -> tuple[str, ...]:
        """Every path it is asked at, the current one first."""
        return (cls.endpoint.split(" ", 1)[1], *cls.also_at)

    @classmethod
    def routed(cls) -> bool:
        """Whether it is asked over HTTP."""
        return _UNROUTED_ENDPOINT.fullmatch(cls.endpoint) is None

    @classmethod
    def is_task(cls) -> bool:
        """Whether it is the gateway's own work."""
        return cls.endpoint.startswith("TASK ")

    @classmethod
    def is_assumption(cls) -> bool:
        """Whether it makes somebody act as something else."""
        return cls.endpoint.startswith("ASSUME ")

    @classmethod
    def is_passage(cls) -> bool:
        """Whether it is a view on the way to something else."""
        return cls.endpoint.startswith("THROUGH ")

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        if "endpoint" in cls.__dict__ and _UNROUTED_ENDPOINT.fullmatch(cls.endpoint):
            cls._register_unrouted()
            return
        if any(not path.startswith("/") for path in cls.also_at):
            raise TypeError(f"operation {cls.__name__}: an older path begins with a slash, and has no method")
        if cls.system_tasks:
            raise TypeError(f"operation {cls.__name__} has a route, so it is no task of the system")
        if "endpoint" not in cls.__dict__ or not _ENDPOINT.fullmatch(cls.endpoint):
            raise TypeError(f"operation {cls.__name__} must name its endpoint as 'METHOD /path'")
        demanding = cls.demands is not Operation.demands
        if not (demanding or cls.open_to_all or cls.open_to_authenticated or cls.open_to_self):
            raise TypeError(
                f"operation {cls.__name__} must define demands() or say open_to_all / open_to_authenticated / "
                "open_to_self"
            )
        if cls.open_to_all and (demanding or cls.open_to_authenticated):
            raise TypeError(f"operation {cls.__name__} is open to all, so it demands nothing and nobody's token")
        if cls.open_to_self and (cls.open_to_all or cls.open_to_authenticated):
            raise TypeError(f"operation {cls.__name__} is open to oneself, so it is not open to others as well")
        cls._require_change_told()
        # dataclass(slots=True) would create the class a second time under the same name; plain frozen dataclasses do
        # not.
        if cls.__name__ in OPERATIONS:
            raise TypeError(f"operation {cls.__name__} is declared twice")
        if cls.__name__ in UNROUTED:
            raise TypeError(f"operation {cls.__name__} is declared twice")
        OPERATIONS[cls.__name__] = cls

    @classmethod
    def _require_change_told(cls) -> None:
        if cls.goes_on_because:
            raise TypeError(f"operation {cls.__name__} has a route, so it does not go on in read-only maintenance")
        if cls.pauses_because and cls.changes():
            raise TypeError(f"operation {cls.__name__} changes something, so it pauses in read-only maintenance anyway")
        method = cls.endpoint.split(" ", 1)[0]
        if method in ("GET", "HEAD"):
            if cls.changes() or cls.reads_because:
                raise TypeError(f"operation {cls.__name__}: a {method} changes nothing, and need not say so")
        elif cls.changes() == bool(cls.reads_because):
            raise TypeError(
                f"operation {cls.__name__}: a {method} is Durability.WITH_CHANGE when it changes anything, "
                "else why it does not in reads_because; read-only maintenance rests on it"
            )

    @classmethod
    def _register_unrouted(cls) -> None:
        if cls.goes_on_because and not (cls.is_task() and cls.changes()):
            raise TypeError(f"operation {cls.__name__}: only a TASK that changes something can go on in maintenance")
        if cls.is_task() != bool(cls.system_tasks):
            raise TypeError(f"operation {cls.__name__}: a TASK names its system_tasks, and nothing else has any")
        demanding = cls.demands is not Operation.demands
        if (
            demanding != (cls.is_assumption() or cls.is_passage())
            or cls.open_to_all
            or cls.open_to_authenticated
            or cls.open_to_self
        ):
            raise TypeError(f"operation {cls.__name__} has no route: it is never open and demands no relation")
        if cls.__name__ in OPERATIONS or cls.__name__ in UNROUTED:
            raise TypeError(f"operation {cls.__name__} is declared twice")
        UNROUTED[cls.__name__] = cls


@cache
def _snake_case(name: str) -> str:
    """`LoadTable` as `load_table`. Every request asks ten times."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
