# SPDX-License-Identifier: Apache-2.0
"""Evaluate many inputs with the program `opa` and a directory of policies, in batches.

Each batch is one process of `opa eval`, so no server listens. An input for which a policy fails is found by halving its
batch.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.opa.decider import WireAnswer
from gateway.opa.policy_files import shipped_policies
from gateway.opa.replay_records import Recorded
from gateway.opa.syntax import InvalidPolicies

QUESTIONS: Final = 200
"""The maximum number of questions of one caller in one evaluation. The gateway combines questions too."""

_BATCH: Final = 8_000
"""The number of questions in one process."""

_SECONDS: Final = 600
#: Less frequent collections of unused memory: a quarter less CPU time in each process, for some more memory.
_GO_RUNTIME: Final = {"GOGC": "400"}
_MODULE: Final = "replay_of_recorded_decisions.rego"
#: The answers alone: the time until which they are valid depends on the time of the request.
_RULES: Final = """package replay_of_recorded_decisions

answers := [_answers(each) | some each in input.batch]

_found := [answer | some index, _ in input.questions; answer := data.gateway._answer(index)]

_answers(each) := found if {
	found := _found with input as each
	count(found) == count(each.questions)
} else := null
"""
_ENTRY: Final = "gateway/main.rego"

Answers = Sequence[WireAnswer] | None
"""The answers to the questions of one evaluation; None if the policies fail or return none."""

Asked = Sequence[Recorded]
"""Questions with the same frame."""


def deployed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that decisions of the gateway need: no tests, schemas, or rules for other questions."""
    left_out = ("schemas/", "trino/", "system/authz", "gateway/residual.rego")
    return {
        name: content
        for name, content in files.items()
        if not name.endswith("_test.rego") and not name.startswith(left_out)
    }


def has_shipped_entry(files: Mapping[str, bytes]) -> bool:
    """Return True if the rules of the decision are those of this version. The replay uses one of its helpers."""
    return files.get(_ENTRY) == (shipped_policies() / _ENTRY).read_bytes()


def policy_data(files: Mapping[str, bytes]) -> list[Any]:
    """Return the decoded files that are no rules. Raises InvalidPolicies if one is no JSON."""
    try:
        return [msgspec.json.decode(content) for name, content in files.items() if not name.endswith(".rego")]
    except msgspec.DecodeError as error:
        raise InvalidPolicies(f"a file of policy data is not JSON: {error}") from None


def write_policies(files: Mapping[str, bytes], directory: Path) -> None:
    """Write the policies, and the rules of the replay, to a new directory."""
    for name, content in {**files, _MODULE: _RULES.encode()}.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def evaluate(
    opa: Path, directory: Path, recorded: Sequence[Recorded], *, exact: bool, done: Callable[[int], None]
) -> Iterator[WireAnswer | None]:
    """Yield the answer to each question, in the order of `recorded`; None if the policies fail for it.

    `recorded` is sorted by frame. Without `exact`, None can also stand for questions near one that fails. `done`
    receives the number of questions after each batch. Raises InvalidPolicies if OPA cannot read the policies.
    """
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        batches = list(_batches(recorded))
        answered = pool.map(lambda each: _answered(opa, directory, each, exact), batches)
        for batch, answers in zip(batches, answered, strict=True):
            done(sum(map(len, batch)))
            yield from answers


def _batches(recorded: Sequence[Recorded]) -> Iterator[list[Asked]]:
    batch: list[Asked] = []
    room = _BATCH
    for _, alike in itertools.groupby(recorded, key=lambda each: each.frame):
        questions = list(alike)
        for start in range(0, len(questions), QUESTIONS):
            batch.append(questions[start : start + QUESTIONS])
            room -= len(batch[-1])
            if room <= 0:
                yield batch
                batch, room = [], _BATCH
    if batch:
        yield batch


def _answered(opa: Path, directory: Path, batch: Sequence[Asked], exact: bool) -> list[WireAnswer | None]:
    found: list[WireAnswer | None] = []
    for asked, answers in zip(batch, _halved(opa, directory, batch), strict=True):
        if answers is not None and len(answers) == len(asked):
            found += answers
        elif exact and len(asked) > 1:
            found += _answered(opa, directory, [[each] for each in asked], exact)
        else:
            found += [None] * len(asked)
    return found


def _halved(opa: Path, directory: Path, batch: Sequence[Asked]) -> Sequence[Answers]:
    """Return the answers of each evaluation. If one fails, evaluate both halves of the batch."""
    sent = b'{"batch":[' + b",".join(_input(each) for each in batch) + b"]}"
    found = _run(opa, directory, sent)
    if found is not None:
        return found
    if len(batch) == 1:
        return [None]
    half = len(batch) // 2
    return [*_halved(opa, directory, batch[:half]), *_halved(opa, directory, batch[half:])]


def _input(asked: Asked) -> bytes:
    return asked[0].frame[:-1] + b',"questions":[' + b",".join(each.question for each in asked) + b"]}"


def _run(opa: Path, directory: Path, sent: bytes) -> Sequence[Answers] | None:
    """Return the answers to a batch; None if a policy fails for one of its inputs."""
    command = [str(opa), "eval", "--data", str(directory), "--format", "raw", "--strict-builtin-errors"]
    try:
        ran = subprocess.run(
            [*command, "--stdin-input", f"data.{_MODULE.removesuffix('.rego')}.answers"],
            input=sent,
            env=_GO_RUNTIME,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidPolicies(f"OPA did not evaluate a batch within {_SECONDS} seconds.") from None
    except OSError as error:
        raise InvalidPolicies(f"the program {opa} cannot be run: {error.strerror}; run `lakegate setup`.") from None
    if ran.returncode == 0:
        return msgspec.json.decode(ran.stdout, type=list[list[WireAnswer] | None])
    output = (ran.stdout + ran.stderr).decode(errors="replace")
    if "rego_parse_error" in output or "rego_compile_error" in output or "rego_type_error" in output:
        raise InvalidPolicies(f"OPA cannot read the policies: {output[-2000:]}")
    return None
