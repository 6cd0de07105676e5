# SPDX-License-Identifier: Apache-2.0
"""Time `lakegate policy diff` on a million decisions: `python -m tests.bench.policy_replay [DECISIONS] [CALLERS...]`.

The records are those of the door for a load, credentials and a drop, with other ids and times. Each number of callers
is a run with three times as many different questions. The new policies freeze the table. Prints the seconds, and the
CPU time of the command and of OPA.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
from click.testing import CliRunner
from uuid_utils.compat import uuid7

from gateway.access.audit.audit_facts import record_of
from gateway.access.audit.audit_record import AuditRecord, encode_record
from gateway.access.door.request_context import RequestContext
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.cli import main
from lakegate.local.policy_repository import create_repository
from tests.support.door import world
from tests.support.door.world import DoorFixture

_DECISIONS = 1_000_000
_CALLERS = (150, 30_000)
_ROLES = tuple(f"0195c0de-0000-7000-8000-{number:012x}" for number in range(5))
_OPERATIONS = (LoadTable(world.TABLE), VendCredentials(world.TABLE), DropTable(world.TABLE))


async def _record(operation: Operation) -> AuditRecord:
    fixture = DoorFixture()
    fixture.resolver.roles = _ROLES
    context = RequestContext(actor=world.ALICE, request_id="r", user_agent="spark", client_address="10.0.0.1")
    resolution, decisions, groups = await fixture.door._judge(context, (operation,))
    return record_of(context, (operation,), decisions, groups, resolution)


def _write(file: Path, decisions: int, callers: int) -> None:
    records = [asyncio.run(_record(each)) for each in _OPERATIONS]
    with file.open("wb") as log:
        for number in range(decisions):
            record = records[number % len(records)]
            actor = msgspec.structs.replace(record.actor, id=f"oidc~user{number // len(records) % callers}")
            at = record.at + timedelta(milliseconds=number)
            ids = {"id": uuid7(), "request_id": str(number), "actor": actor, "at": at}
            log.write(encode_record(msgspec.structs.replace(record, **ids)) + b"\n")


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _run(directory: Path, decisions: int, callers: int) -> str:
    file, frozen = directory / "decisions.jsonl", directory / "frozen"
    _write(file, decisions, callers)
    before = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    arguments = ["policy", "diff", "packaged", str(frozen), "--replay", str(file), "--format", "json"]
    done = CliRunner().invoke(main, arguments)
    after = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
    if done.exit_code:
        raise SystemExit(done.output)
    found = json.loads(done.stdout)
    seconds, own, opa = (late - early for early, late in zip(before, after, strict=True))
    questions = f"{found['decisions']:,} decisions, {found['questions']:,} different questions"
    return f"{questions}: {seconds:.1f} s; CPU of the command {own:.1f} s, of OPA {opa:.1f} s"


def _main(arguments: Sequence[str]) -> None:
    decisions = int(arguments[0]) if arguments else _DECISIONS
    with tempfile.TemporaryDirectory(prefix="lakegate-bench-") as created:
        create_repository(Path(created) / "frozen")
        frozen = Path(created) / "frozen/policies/policy_data/freeze/data.json"
        frozen.write_text(json.dumps({"tables": [str(world.TABLE_ID)]}))
        for callers in map(int, arguments[1:] or _CALLERS):
            print(_run(Path(created), decisions, callers), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
