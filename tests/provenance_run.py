# SPDX-License-Identifier: Apache-2.0
"""The long comparison of witnesses and repairs with brute force and with OpenFGA: `python -m tests.provenance_run`.

Half of the worlds use the shipped model, the others random variants of it. World `n` of a seed is the same in every
run; a variant that OpenFGA rejects is replaced. The result is kept in `tests/results/provenance.json`. A run that finds
a difference ends with an error, which names the world, and writes no result.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import aiohttp

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.fga.confirmation import to_contextual
from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.model import push_model
from gateway.fga.relationships import CURRENT_TIME, rfc3339
from gateway.fga.wire import BatchAnswer, decoded
from tests.support.rows.naive import the_model
from tests.support.rows.provenance_checks import (
    TABLE,
    Expected,
    all_repairs,
    all_witnesses,
    expectations,
    offered_in,
    reasons_of,
)
from tests.support.rows.provenance_worlds import (
    ALICE,
    CYCLE,
    EDGES,
    NOW,
    RELATIONS,
    random_variant,
    random_world,
)
from tests.support.servers.openfga_server import KEY, openfga_in_memory

RESULT = Path(__file__).with_name("results") / "provenance.json"
#: Worlds of one model. Every second model is the shipped one.
WORLDS_OF_A_MODEL = 250
_AT_ONCE = 125
_CHECKS_OF_A_BATCH = 50
_ATTEMPTS = 3
#: The run has a low priority, so an answer may take long.
_PATIENT = {"OPENFGA_REQUEST_TIMEOUT": "900s", "OPENFGA_HTTP_UPSTREAM_TIMEOUT": "901s"}

_Check = tuple[str, frozenset[HeldTuple]]
"""A relation of the user on the table, and all tuples that exist."""


@dataclass(frozen=True)
class _Model:
    """A model, and its id in OpenFGA; None without OpenFGA. `answers` are those that OpenFGA gave."""

    name: str
    model: Mapping[str, Any]
    excludes_grants: bool
    id: str | None
    answers: dict[_Check, bool] = field(default_factory=dict)

    @cached_property
    def rules(self) -> ModelRules:
        return ModelRules(self.model)


@dataclass(frozen=True)
class _World:
    """A random world as text, its relation, and what an engine must answer."""

    about: str
    relation: str
    expected: Sequence[Expected]

    def check(self, expected: Expected) -> _Check:
        return self.relation, frozenset(expected.tuples)


class _OpenFga:
    """Asks OpenFGA about sets of tuples, each sent as contextual tuples to a store without any."""

    def __init__(self, endpoint: str, session: aiohttp.ClientSession) -> None:
        self._endpoint, self._session = endpoint, session
        self._store = ""

    async def write(self, model: Mapping[str, Any]) -> str:
        """Write a model and return its id. Raises DecisionEngineUnavailable if OpenFGA rejects it."""
        written = await push_model(self._endpoint, KEY, "provenance", compiled=model)
        self._store = written.store_id
        return written.model_id

    async def ask(self, of: _Model, checks: Sequence[_Check]) -> None:
        """Add OpenFGA's answers to those of the model. Checks that fail, as by a timeout, are sent again."""
        unanswered = checks
        for _ in range(_ATTEMPTS):
            async with asyncio.TaskGroup() as group:
                for first in range(0, len(unanswered), _CHECKS_OF_A_BATCH):
                    some = unanswered[first : first + _CHECKS_OF_A_BATCH]
                    group.create_task(self._ask(of, some, self._store))
            unanswered = [each for each in checks if each not in of.answers]
            if not unanswered:
                return
        raise DecisionEngineUnavailable(f"OpenFGA failed {_ATTEMPTS} times for {unanswered}")

    async def _ask(self, of: _Model, checks: Sequence[_Check], store: str) -> None:
        body = {"authorization_model_id": of.id, "checks": list(map(_wire_check, checks, itertools.count()))}
        url = f"{self._endpoint}/stores/{store}/batch-check"
        async with self._session.post(url, json=body, headers={"Authorization": f"Bearer {KEY}"}) as response:
            content = await response.read()
        if response.status != 200:
            print(f"checks failed: {content.decode()}", flush=True)
            return
        answers = decoded(content, BatchAnswer).result
        for number, check in enumerate(checks):
            found = answers[str(number)]
            if found.error is None:
                of.answers[check] = bool(found.allowed)
            else:
                print(f"a check failed: {found.error}", flush=True)


def _wire_check(check: _Check, number: int) -> dict[str, Any]:
    relation, tuples = check
    return {
        "tuple_key": {"user": ALICE, "relation": relation, "object": TABLE},
        "contextual_tuples": {"tuple_keys": [_wire(each) for each in map(to_contextual, tuples)]},
        "context": {CURRENT_TIME: rfc3339(NOW)},
        "correlation_id": str(number),
    }


def _wire(each: Any) -> dict[str, Any]:
    key = {"user": each.user, "relation": each.relation, "object": each.object}
    if each.condition is None:
        return key
    return {**key, "condition": {"name": each.condition.name, "context": each.condition.context}}


def _compared(of: _Model, seed: str, counts: Counter[str]) -> _World:
    """Compare the reasons in one random world with brute force. Raises AssertionError."""
    rnd = random.Random(seed)
    world, relation = random_world(rnd), rnd.choice(RELATIONS)
    offered = offered_in(world, random_world(rnd))
    reasons = reasons_of(of.rules, world, offered, relation)
    about = f"world {seed!r}, model {of.name}, {relation}: {world}, candidates {offered}"
    if not reasons.was_cut:
        bare = {each - set(EDGES) for each in reasons.witnesses}
        by_force = all_witnesses(of.model, world, relation)
        # With exclusions of grants, each witness is minimal, but not each minimal set is found.
        assert bare <= by_force and bool(bare) is bool(by_force), f"other witnesses by brute force: {about}"
        assert bare == by_force or of.excludes_grants, f"fewer witnesses than by brute force: {about}"
        if not reasons.witnesses:
            effective = all_repairs(of.model, world, offered, relation)
            assert set(reasons.repairs) == effective, f"other repairs by brute force: {about}"
    counts.update({
        "worlds": 1,
        "worlds of the shipped model": of.name == "shipped",
        "witnesses": len(reasons.witnesses),
        "repairs": len(reasons.repairs),
        "incomplete": reasons.was_cut,
    })  # fmt: skip
    # Below an exclusion of grants, OpenFGA answers no as soon as it meets a cycle of roles, which the gateway refuses.
    if of.excludes_grants and set(CYCLE) <= set(world):
        counts["worlds with a cycle below an exclusion, not asked"] += 1
        return _World(about, relation, ())
    return _World(about, relation, expectations(of.model, world, reasons, relation))


async def _confirmed(openfga: _OpenFga, of: _Model, worlds: Sequence[_World], counts: Counter[str]) -> None:
    """Compare the reasons in some worlds with OpenFGA, which answers each different check once.

    Raises AssertionError.
    """
    # A list of the keys keeps the order, so that a run can be repeated.
    asked = list(dict.fromkeys(world.check(each) for world in worlds for each in world.expected))
    unknown = [each for each in asked if each not in of.answers]
    await openfga.ask(of, unknown)
    counts["different checks by OpenFGA"] += len(unknown)
    for world in worlds:
        wrong = [each for each in world.expected if of.answers[world.check(each)] is not each.holds]
        assert not wrong, f"OpenFGA differs on {wrong}: {world.about}"
        counts.update({"worlds confirmed by OpenFGA": bool(world.expected), "answers of OpenFGA": len(world.expected)})


async def _variant(openfga: _OpenFga | None, number: int, seed: int, counts: Counter[str]) -> _Model:
    """Return the random variant of the model for the worlds from `number` on."""
    excludes_grants = number // WORLDS_OF_A_MODEL % 4 == 3
    for attempt in itertools.count():
        name = f"{seed} model {number} {attempt}"
        model = random_variant(random.Random(name), excludes_grants=excludes_grants)
        try:
            id = await openfga.write(model) if openfga else None
        except DecisionEngineUnavailable:
            counts["random models that OpenFGA rejected"] += 1
            continue
        counts["random models with exclusions of grants" if excludes_grants else "random models"] += 1
        return _Model(name, model, excludes_grants, id)
    raise AssertionError


async def run(openfga: _OpenFga | None, total: int, seconds: float, seed: int) -> dict[str, object]:
    """Compare `total` worlds, or as many as `seconds` allow. Returns the record of the run."""
    start, counts = time.monotonic(), Counter[str]()
    shipped = _Model("shipped", the_model(), False, await openfga.write(the_model()) if openfga else None)
    confirmation = asyncio.create_task(asyncio.sleep(0))
    for number in range(0, total, _AT_ONCE):
        if time.monotonic() - start > seconds:
            break
        if number % WORLDS_OF_A_MODEL == 0:
            turn = number // WORLDS_OF_A_MODEL
            of = shipped if turn % 2 == 0 else await _variant(openfga, number, seed, counts)
            print(f"after {time.monotonic() - start:.0f} s: {dict(counts)}", flush=True)
        names = [f"{seed} {each}" for each in range(number, min(number + _AT_ONCE, total))]
        # OpenFGA answers about these worlds while the next are compared with brute force.
        worlds = await asyncio.to_thread(lambda of, names: [_compared(of, each, counts) for each in names], of, names)
        await confirmation
        if openfga is not None:
            confirmation = asyncio.create_task(_confirmed(openfga, of, worlds, counts))
    await confirmation
    return {**counts, "differences": 0, "seed": seed, "seconds": round(time.monotonic() - start)}


async def _run_on_openfga(total: int, seconds: float, seed: int) -> dict[str, object]:
    with openfga_in_memory(_PATIENT) as endpoint:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout()) as session:
            return await run(_OpenFga(endpoint, session), total, seconds, seed)


def main() -> None:
    """Run the comparison, and keep its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total", type=int, default=100_000, help="random worlds")
    parser.add_argument("--seconds", type=float, default=24 * 3600.0, help="the limit of the run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, default=RESULT, help="the file that keeps the result")
    parser.add_argument("--without-openfga", action="store_true", help="compare with brute force only")
    options = parser.parse_args()
    limits = options.total, options.seconds, options.seed
    name = "brute force" if options.without_openfga else "brute force and OpenFGA"
    record = asyncio.run(run(None, *limits) if options.without_openfga else _run_on_openfga(*limits))
    kept = json.loads(options.record.read_text()) if options.record.exists() else {}
    options.record.write_text(json.dumps({**kept, name: record}, indent=2, sort_keys=True) + "\n")
    print(f"{name}: {record}")


if __name__ == "__main__":
    main()
