# SPDX-License-Identifier: Apache-2.0
"""Commands of the pipeline: `run` (the medallion once), `statements` (SQL statements, each with its own token) and
`copy` (a governed copy of a table).
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types and has no stubs
from pyspark.errors import PySparkException

from lakegate.spark.config import CopyConfig, PipelineConfig, StatementsConfig, parse_config, read_config
from lakegate.spark.errors import ConfigError, PipelineError, cause_of
from lakegate.spark.jobs.governed_copy import copy
from lakegate.spark.run import Progress, run
from lakegate.spark.session import serve


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lakegate.spark", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run_verb = verbs.add_parser("run", help="run the medallion pipeline once and print its report as one line of JSON")
    copy_verb = verbs.add_parser("copy", help="update a masked and filtered copy of a table for one user or role")
    for verb in (run_verb, copy_verb):
        verb.add_argument(
            "--config", required=True, metavar="FILE", help="JSON configuration, file mode 0600; - reads standard input"
        )
        verb.add_argument("--report", metavar="FILE", help="write the report to this file instead of standard output")
    verbs.add_parser(
        "statements",
        help="execute SQL statements from standard input: first a line of configuration, then one statement per line",
    )
    return parser


def execute(job: Callable[[Progress], msgspec.Struct], out: BinaryIO) -> int:
    """Run a job, write its report to `out` as one line of JSON, and return the exit status.

    Progress and errors are written to standard error. Exit status 0: success; 2: configuration; 3: quality; 4: a
    delivered file; 5: restrictions that cannot be applied; 6: a refused governed read; 7: a reader without access; 1:
    any other error.
    """
    try:
        report = job(lambda line: print(line, file=sys.stderr, flush=True))
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


def _job(options: argparse.Namespace, stdin: BinaryIO) -> Callable[[Progress], msgspec.Struct]:
    """Read the configuration of the command, and return its job."""
    if options.verb == "copy":
        return partial(copy, read_config(options.config, stdin, CopyConfig))
    return partial(run, read_config(options.config, stdin, PipelineConfig))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments`, by default those of the process, and return the exit status."""
    options = _parser().parse_args(arguments)
    # Output of the engine is redirected to standard error: standard output contains only the results.
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if options.verb == "statements":
                return serve(parse_config(questions.readline(), StatementsConfig), questions, answers)
            job = _job(options, questions)
            if options.report is None:
                return execute(job, answers)
            with Path(options.report).open("wb") as report:
                return execute(job, report)
    except ConfigError as error:
        print(f"pipeline: {error}", file=sys.stderr)
        return error.exit_status
