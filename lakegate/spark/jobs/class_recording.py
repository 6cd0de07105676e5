# SPDX-License-Identifier: Apache-2.0
"""Load the classes that most statements need, in a Java that writes them to a file at its end.

`lakegate setup` runs `python -m lakegate.spark.jobs.class_recording FILE JAR…`.
"""

import contextlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types and has no stubs
from pyspark.sql import SparkSession

from lakegate.spark.config import DirectoryCatalog, Engine
from lakegate.spark.session import as_principal, start_engine

_STATEMENTS = (
    "CREATE NAMESPACE a",
    "CREATE TABLE a.t (id INT, name STRING, at TIMESTAMP) USING iceberg PARTITIONED BY (days(at))",
    "INSERT INTO a.t VALUES (1, 'one', now()), (2, 'two', now())",
    "MERGE INTO a.t USING (SELECT 1 AS id, 'uno' AS name) AS s ON a.t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
    "SELECT l.name, count(*) FROM a.t AS l JOIN a.t AS r ON l.id = r.id GROUP BY l.name ORDER BY l.name",
    "DELETE FROM a.t WHERE id = 2",
    "ALTER TABLE a.t ADD COLUMN more DOUBLE",
    "SELECT * FROM a.t.snapshots",
    "DROP TABLE a.t",
)


def record(jars: Sequence[str], file: Path) -> None:
    """Run statements in an engine with these archives. Its Java writes the loaded classes to `file` when it ends.

    It ends after this process: wait for the end of its standard output.
    """
    with tempfile.TemporaryDirectory(prefix="lakegate-classes-") as scratch:
        engine = Engine(jars=list(jars), work_dir=scratch, cores=1, shuffle_partitions=1)
        root = start_engine(engine, f"-Xlog:cds*=off -XX:ArchiveClassesAtExit={file}")
        session = as_principal(root, DirectoryCatalog(path=f"{scratch}/warehouse"))
        for statement in _STATEMENTS:
            session.sql(statement).collect()
        _ask_a_store(root)
        root.stop()


def _ask_a_store(root: SparkSession) -> None:
    """Send a request to an object store that does not exist, which loads the classes of its client."""
    java: Any = root.sparkContext._jvm
    options = {
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "client.region": "us-east-1",
    }
    with contextlib.suppress(Py4JError):
        store = java.org.apache.iceberg.aws.s3.S3FileIO()
        store.initialize(options)
        store.newInputFile("s3://bucket/key").exists()


if __name__ == "__main__":
    record(sys.argv[2:], Path(sys.argv[1]))
