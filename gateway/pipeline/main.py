# SPDX-License-Identifier: Apache-2.0
"""The verbs of the pipeline: `run` (the medallion once) and `statements` (SQL as whoever asks; see that module)."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import BinaryIO

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types and has no stubs
from pyspark.errors import PySparkException

from gateway.pipeline.config import PipelineConfig, read_config
from gateway.pipeline.errors import PipelineError, cause_of
from gateway.pipeline.run import run
from gateway.pipeline.statements import serve


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway.pipeline", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, text in (
        ("run", "run the medallion once; prints its account as one line of JSON"),
        ("statements", "answer statements, one JSON document a line, each with the token of its principal"),
    ):
        command = verbs.add_parser(verb, help=text)
        command.add_argument("--config", required=True, metavar="FILE", help="JSON, mode 0600; - is standard input")
    return parser


def execute(config: PipelineConfig, out: BinaryIO) -> int:
    """Runs the medallion once and writes its account as one line of JSON to `out`. Answers the exit status.

    Progress and errors go to standard error. 0: done; 2: configuration; 3: quality; 4: a delivered file; 1: all else.
    """
    try:
        report = run(config, lambda line: print(line, file=sys.stderr, flush=True))
    except PipelineError as error:
        print(f"pipeline: {error}", file=sys.stderr)
        return error.exit_status
    except (PySparkException, Py4JError) as error:
        name, message = cause_of(error)
        print(f"pipeline: {name}: {message}", file=sys.stderr)
        return PipelineError.exit_status
    out.write(msgspec.json.encode(report) + b"\n")
    out.flush()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of `python -m gateway.pipeline`; answers the exit status."""
    options = _parser().parse_args(arguments)
    try:
        config = read_config(options.config, sys.stdin.buffer)
    except PipelineError as error:
        print(f"pipeline: {error}", file=sys.stderr)
        return error.exit_status
    # The engine's own chatter goes to standard error: standard output carries the answer and nothing else.
    answers = sys.stdout.buffer
    with contextlib.redirect_stdout(sys.stderr):
        if options.verb == "statements":
            return serve(config, sys.stdin.buffer, answers)
        return execute(config, answers)
