# SPDX-License-Identifier: Apache-2.0
"""Spark sessions, one per principal, in one engine.

Two rules shape this module. The token never reaches a command line: PySpark passes every option of the *builder* to the
JVM as `--conf key=value`, where any local account can read it, so the builder gets only what is no secret and the
catalog is configured on the running session. And sessions of different principals share no catalog client: each one is
a `newSession()`, which has its own catalog manager, table cache and HTTP client: a token serves its session alone.

The object store is configured by nobody here: endpoint, region and keys arrive with each table from the catalog.
"""

from pathlib import Path

from pyspark.sql import SparkSession

from gateway.pipeline.config import Catalog, DirectoryCatalog, Engine, RestCatalog

CATALOG = "lake"


def engine_options(engine: Engine) -> dict[str, str]:
    """The options of the engine as a whole; they end up on the JVM's command line, so none may be a secret.

    Sized for a small machine: the quick compiler and a serial collector cost less than they save in a run of minutes.
    The quick compiler alone gets 48 MB for its code by default, which one run fills; from then on Java interprets.
    """
    return {
        "spark.master": f"local[{engine.cores}]",
        "spark.app.name": "lakegate-pipeline",
        "spark.driver.memory": engine.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(engine.jars),
        "spark.driver.extraJavaOptions": (
            "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m "
            f"-Djava.io.tmpdir={engine.work_dir}"
        ),
        "spark.local.dir": engine.work_dir,
        "spark.sql.warehouse.dir": str(Path(engine.work_dir) / "spark-warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(engine.shuffle_partitions),
        "spark.sql.adaptive.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }


def catalog_options(catalog: Catalog) -> dict[str, str]:
    """The options that bind a session to one catalog as one principal; they may hold a secret."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    options = {prefix: "org.apache.iceberg.spark.SparkCatalog", "spark.sql.defaultCatalog": CATALOG}
    match catalog:
        case DirectoryCatalog(path=path):
            options |= {f"{prefix}.type": "hadoop", f"{prefix}.warehouse": path}
        case RestCatalog():
            options |= {
                f"{prefix}.type": "rest",
                f"{prefix}.uri": catalog.uri,
                f"{prefix}.warehouse": catalog.warehouse,
                f"{prefix}.rest.auth.type": "oauth2",
                f"{prefix}.header.X-Iceberg-Access-Delegation": "vended-credentials",
                # `DROP TABLE … PURGE` is the catalog's work, which outlives keys and engine. Left to itself Spark
                # drops first and then deletes what the catalog, too, is deleting by then.
                f"{prefix}.rest-catalog-purge": "true",
            }
            options |= {f"{prefix}.{name}": value for name, value in _identity(catalog).items()}
    return options


def _identity(catalog: RestCatalog) -> dict[str, str]:
    """A plain token is never renewed: without this flag the client would ask the catalog itself for a new one."""
    if catalog.token is not None:
        return {"token": catalog.token, "token-refresh-enabled": "false"}
    identity = {"credential": catalog.credential or "", "oauth2-server-uri": catalog.token_endpoint or ""}
    if catalog.scope is not None:
        identity["scope"] = catalog.scope
    return identity


def start_engine(engine: Engine) -> SparkSession:
    """Starts the JVM and answers its root session, which is bound to no catalog. The caller stops it."""
    Path(engine.work_dir).mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder
    for key, value in engine_options(engine).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def as_principal(root: SparkSession, catalog: Catalog) -> SparkSession:
    """A fresh session of the running engine, bound to `catalog` as the principal it names."""
    if isinstance(catalog, DirectoryCatalog):
        Path(catalog.path).mkdir(parents=True, exist_ok=True)
    session = root.newSession()
    for key, value in catalog_options(catalog).items():
        session.conf.set(key, value)
    return session
