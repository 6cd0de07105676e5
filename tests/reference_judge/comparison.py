# SPDX-License-Identifier: Apache-2.0
"""Ask the catalog's pure core and the Java library the same question, and compare the answers."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from gateway.iceberg import wire
from gateway.iceberg.commit import commit_table, commit_view
from gateway.iceberg.creation import new_table_metadata, new_view_metadata
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.metadata import decode_stored_table_metadata, decode_table_metadata, encode_table_metadata
from gateway.iceberg.views import decode_stored_view_metadata, decode_view_metadata, encode_view_metadata
from tests.reference_judge.cases import Case, compare
from tests.reference_judge.exceptions import EXCEPTIONS
from tests.reference_judge.judge import Judge, Verdict

JSON = dict[str, Any]
LOCATION = "s3://bucket/t"
BASE_FILE = "memory/base.json"
NEW_UUID = UUID("0193a5b2-4c1e-7f00-8000-00000000abcd")


@dataclass(slots=True)
class Tally:
    """The results of a run: how many questions of each kind were accepted and refused, and how many fell under each
    exception. `differences` are the cases that no exception explains.
    """

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    excepted: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, case: Case) -> None:
        """Compare both answers of a case."""
        name = f"{'view' if case.question['view'] else 'table'} {case.question['kind']}"
        (self.accepted if case.ours is not None else self.refused)[name] += 1
        if (difference := compare(case)) is None:
            return
        for exception, holds in EXCEPTIONS.items():
            if holds(case):
                self.excepted[exception] += 1
                return
        self.differences.append(f"{difference}\n{json.dumps(case.question)}")


def answer(question: JSON, judge: Judge) -> Case:
    """Ask both sides. The library also opens the document that the catalog would store."""
    ours: JSON | None = None
    refusal: str | None = None
    try:
        ours = json.loads(_ours(question))
    except CatalogError as error:
        assert error.code in (400, 409), error
        refusal = f"{error.type}: {error.message}"
    verdict: Verdict = judge.ask({**question, "ours": ours})
    return Case(question=question, ours=ours, refusal=refusal, verdict=verdict)


def _ours(question: Mapping[str, Any]) -> bytes:
    now_ms = int(time.time() * 1000)
    if question["kind"] == "read":
        data = json.dumps(question["document"]).encode()
        if question["view"]:
            return encode_view_metadata(decode_view_metadata(data))
        return encode_table_metadata(decode_table_metadata(data))
    body = json.dumps(question["request"]).encode()
    if question["kind"] == "create":
        if question["view"]:
            view = wire.decode(body, wire.CreateViewRequest)
            return encode_view_metadata(
                new_view_metadata(view, view_uuid=NEW_UUID, location=view.location or LOCATION, now_ms=now_ms)
            )
        table = wire.decode(body, wire.CreateTableRequest)
        return encode_table_metadata(
            new_table_metadata(table, table_uuid=NEW_UUID, location=table.location or LOCATION, now_ms=now_ms)
        )
    base = None if question["base"] is None else json.dumps(question["base"]).encode()
    if question["view"]:
        assert base is not None
        change = wire.decode(body, wire.CommitViewRequest)
        before = decode_stored_view_metadata(base)
        done = commit_view(before, change.requirements, change.updates, now_ms=now_ms)
        return encode_view_metadata(done.metadata)
    request = wire.decode(body, wire.CommitTableRequest)
    known = None if base is None else decode_stored_table_metadata(base)
    outcome = commit_table(
        known, None if known is None else BASE_FILE, request.requirements, request.updates, now_ms=now_ms
    )
    return encode_table_metadata(outcome.metadata)
