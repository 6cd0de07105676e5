# SPDX-License-Identifier: Apache-2.0
"""The long comparison of engines with the reference interpreter: `python -m tests.policy_agreement_run duckdb`.

The result of each engine is kept in `tests/results/policy_agreement.json`. A run that finds a difference ends with an
error, which names the predicate or mask, and writes no result.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.support.policies.policy_agreement import Engine, compare_masks, compare_predicates
from tests.support.policies.policy_engines import duckdb_engine, governed_spark_engine, reader_engine, spark_engine

RESULT = Path(__file__).with_name("results") / "policy_agreement.json"
ROWS = 16
ROWS_OF_MASKS = 50


@contextmanager
def _duckdb() -> Iterator[Engine]:
    yield duckdb_engine()


@contextmanager
def _reader() -> Iterator[Engine]:
    yield reader_engine()


@contextmanager
def _spark(of_session: Callable[[Any], Engine]) -> Iterator[Engine]:
    import os

    from gateway.settings import java_home, load, search_path
    from lakegate.local import jdk, spark_jars, toolchain
    from lakegate.spark.config import Engine as Settings
    from lakegate.spark.session import start_engine

    os.environ["JAVA_HOME"] = str(jdk.find(java_home(), search_path()))
    jars = [str(jar) for jar in spark_jars.locate(toolchain.cache(load({})).jars())]
    # Otherwise every function sends the line of its caller to the JVM. A session cannot change this setting.
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.python.sql.dataFrameDebugging.enabled=false pyspark-shell"
    with tempfile.TemporaryDirectory() as work_dir:
        session = start_engine(Settings(jars=jars, work_dir=work_dir, cores=1, shuffle_partitions=1))
        session.conf.set("spark.sql.session.timeZone", "America/St_Johns")
        # Generated Java for hundreds of different predicates takes longer to compile than to run.
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        with _java_members_cached():
            yield of_session(session)
        session.stop()


@contextmanager
def _java_members_cached() -> Iterator[None]:
    """Keep the classes and methods that Python looks up in the JVM: half of the messages are such lookups."""
    from py4j.java_gateway import (  # type: ignore[import-untyped]  # Py4J has no types
        JavaClass,
        JavaMember,
        JVMView,
    )

    def caching(find: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def found(owner: Any, name: str) -> Any:
            member = find(owner, name)
            if isinstance(member, JavaClass | JavaMember):
                vars(owner)[name] = member
            return member

        return found

    originals = {each: each.__getattr__ for each in (JavaClass, JVMView)}
    for owner, find in originals.items():
        owner.__getattr__ = caching(find)
    try:
        yield
    finally:
        for owner, find in originals.items():
            owner.__getattr__ = find


#: Each engine: how to open it, its package, and the number of predicates of one query.
ENGINES: Mapping[str, tuple[Callable[[], AbstractContextManager[Engine]], str, int]] = {
    "duckdb": (_duckdb, "duckdb", 1000),
    "reader": (_reader, "pyarrow", 1000),
    "spark": (partial(_spark, spark_engine), "pyspark", 200),
    "governed-spark": (partial(_spark, governed_spark_engine), "pyspark", 200),
}


def run(name: str, total: int, seconds: float, seed: int) -> dict[str, object]:
    """Compare `total` predicates and masks, or as many as `seconds` allow. Returns the record of the run."""
    opened, package, batch = ENGINES[name]
    start = time.monotonic()
    predicates = masks = number = 0
    with opened() as engine:
        while predicates + masks < total and time.monotonic() - start < seconds:
            rnd = random.Random(f"{seed} {number}")
            predicates += compare_predicates(engine, rnd, rows=ROWS, predicates=batch)
            masks += compare_masks(engine, rnd, rows=ROWS_OF_MASKS)
            number += 1
            if number % 20 == 0:
                print(f"{name}: {predicates} predicates, {masks} masks", flush=True)
    return {
        "version": version(package),
        "seed": seed,
        "predicates": predicates,
        "masks": masks,
        "rows of a predicate": ROWS,
        "rows of a mask": ROWS_OF_MASKS,
        "differences": 0,
        "seconds": round(time.monotonic() - start),
    }


def main() -> None:
    """Run the comparison for the engines of the command line, and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=list(ENGINES), help=f"some of: {', '.join(ENGINES)}")
    parser.add_argument("--total", type=int, default=1_000_000, help="predicates and masks of each engine")
    parser.add_argument("--seconds", type=float, default=24 * 3600.0, help="the limit of each engine")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name in options.engines:
        record = run(name, options.total, options.seconds, options.seed)
        kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**kept, name: record}, indent=2, sort_keys=True) + "\n")
        print(f"{name}: {record}")


if __name__ == "__main__":
    main()
