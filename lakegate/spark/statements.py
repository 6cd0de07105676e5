# SPDX-License-Identifier: Apache-2.0
"""SQL for several principals in one engine. Each request and each answer is one line of JSON.

Each request has its own token and gets a new session for its one statement. The catalog therefore decides anew about
each statement, and a grant or revocation is visible without the start of another engine. Tokens are passed through the
pipe, never on a command line.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

import msgspec
from pyspark.sql import SparkSession

from lakegate.spark.config import RestCatalog, StatementsConfig
from lakegate.spark.errors import cause_of
from lakegate.spark.session import as_principal, start_engine
from lakegate.value_messages import in_words

MAX_ROWS = 1000
_MAX_MESSAGE = 2000


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request: one statement, to be run as the holder of `token`."""

    token: str
    statement: str


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rows as text (at most `MAX_ROWS`), or an error: class and message of the innermost Java cause."""

    seconds: float
    rows: list[list[str | None]] = []
    error: str | None = None
    message: str | None = None


def evaluate(root: SparkSession, config: StatementsConfig, question: Question) -> Answer:
    """Run one statement in a new session. An error of the statement is returned, not raised."""
    started = time.monotonic()
    principal = RestCatalog(uri=config.uri, warehouse=config.warehouse, token=question.token)
    try:
        rows = as_principal(root, principal).sql(question.statement).take(MAX_ROWS)
    # The error of a statement is its answer: an error of Spark, of Java or of the catalog client.
    except Exception as error:
        name, message = cause_of(error)
        return Answer(seconds=_since(started), error=name, message=message.replace(question.token, "…")[:_MAX_MESSAGE])
    texts = [[None if value is None else str(value) for value in row] for row in rows]
    return Answer(seconds=_since(started), rows=texts)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 2)


def serve(config: StatementsConfig, questions: BinaryIO, answers: BinaryIO) -> int:
    """Answer requests until the end of `questions`. Return 0.

    The first line of output is `{"seconds": …}`, the start time of the engine, and shows that it is ready.
    """
    work_dir = Path(config.engine.work_dir)
    work_dir.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="statements-", dir=work_dir)
    started = time.monotonic()
    root = start_engine(msgspec.structs.replace(config.engine, work_dir=scratch))
    try:
        _reply(answers, Answer(seconds=_since(started)))
        for line in questions:
            try:
                question = msgspec.json.decode(line, type=Question)
            except msgspec.MsgspecError as error:
                _reply(answers, Answer(seconds=0.0, error="MalformedQuestion", message=in_words(error, Question)))
                continue
            _reply(answers, evaluate(root, config, question))
    finally:
        root.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


def _reply(answers: BinaryIO, answer: Answer) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()
