# SPDX-License-Identifier: Apache-2.0
"""One Spark process for all tests of the engine. Each input line is JSON with a principal and a statement; each output
line is JSON with the answer.

Unlike `lakegate.spark.session` it keeps one session per principal, as a notebook does: the effects of `SET` last,
and the catalog's own table cache is active. Tokens are passed through the pipe only.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import Row, SparkSession

from lakegate.spark.config import Engine, RestCatalog
from lakegate.spark.errors import cause_of
from lakegate.spark.session import as_principal, start_engine


def plain(value: Any) -> Any:
    """Convert a value for JSON: a struct to the list of its members, a date or decimal to its text."""
    if isinstance(value, (Row, tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def orphans_removed(session: SparkSession, table: str) -> list[list[str]]:
    """Remove the orphan files of a table regardless of their age, which SQL refuses; return one row for each file.

    The error message of the SQL procedure recommends this action for intervals below 24 hours.
    """
    java: Any = session.sparkContext._jvm
    iceberg = java.org.apache.iceberg.spark
    java.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    action = iceberg.actions.SparkActions.get(session._jsparkSession).deleteOrphanFiles(
        iceberg.Spark3Util.loadIcebergTable(session._jsparkSession, table)
    )
    removed = action.olderThan(java.System.currentTimeMillis() + 1000).usePrefixListing(True).execute()
    return [[str(each)] for each in removed.orphanFileLocations()]


def answer(session: SparkSession, question: dict[str, str]) -> dict[str, Any]:
    """Return the rows of a statement, or the innermost error and its message."""
    try:
        if "orphans" in question:
            return {"rows": orphans_removed(session, question["orphans"])}
        return {"rows": [plain(row) for row in session.sql(question["statement"]).collect()]}
    except Exception as error:  # any error of the statement is part of the answer
        name, message = cause_of(error)
        return {"error": name, "message": message}


def main() -> None:
    """Answer statements until the pipe is closed."""
    setup = json.loads(sys.stdin.readline())
    root = start_engine(Engine(jars=setup["jars"], work_dir=setup["work_dir"], cores=1, shuffle_partitions=1))
    sessions: dict[str, SparkSession] = {}
    print(json.dumps({"rows": []}), flush=True)
    try:
        for line in sys.stdin:
            question = json.loads(line)
            who = question["session"]
            if who not in sessions:
                warehouse = question.get("warehouse", setup["warehouse"])
                login = {name: question[name] for name in ("token", "credential", "token_endpoint") if name in question}
                catalog = RestCatalog(uri=setup["uri"], warehouse=warehouse, **login)
                sessions[who] = as_principal(root, catalog)
                for key, value in question.get("options", {}).items():
                    sessions[who].conf.set(key, value)
            print(json.dumps(answer(sessions[who], question)), flush=True)
    finally:
        root.stop()


if __name__ == "__main__":
    main()
