# SPDX-License-Identifier: Apache-2.0
"""Drive dbt with Spark on the project `tests/e2e/dbt`, with the method `session`: Spark runs in the process of dbt."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dbt_project import Project
from drive_loop import serve
from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
CATALOG = "spark.sql.catalog.lake"


class Lake(Project):
    """The project, with a Spark session whose default catalog is the warehouse."""

    def __init__(self) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="lakegate-dbt-"))
        builder = SparkSession.builder.master("local[1]").config("spark.jars", os.environ["SPARK_JARS"])
        for name, value in {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "768m",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(scratch / "spark"),
            "spark.sql.shuffle.partitions": "1",
        }.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        # Options of the builder are on the command line of Java, so the token is set on the running session.
        for name, value in {
            CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{CATALOG}.type": "rest",
            f"{CATALOG}.uri": os.environ["CATALOG_URI"],
            f"{CATALOG}.warehouse": os.environ["WAREHOUSE"],
            f"{CATALOG}.rest.auth.type": "oauth2",
            f"{CATALOG}.token": os.environ["TOKEN"],
            f"{CATALOG}.token-refresh-enabled": "false",
            f"{CATALOG}.header.X-Iceberg-Access-Delegation": "vended-credentials",
            f"{CATALOG}.cache-enabled": "false",
            "spark.sql.defaultCatalog": "lake",
        }.items():
            self._spark.conf.set(name, value)
        super().__init__(HERE.parent / "dbt", "spark", scratch)

    def namespaces(self) -> list[str]:
        super().namespaces()
        return [row[0] for row in self._spark.sql("SHOW NAMESPACES IN lake").collect()]


serve(Lake, "dbt-core", "dbt-spark", "pyspark")
