# SPDX-License-Identifier: Apache-2.0
"""Run Spark sessions in one engine, one for each principal, and SQL statements in them.

The token must not be on a command line. PySpark passes every option of the *builder* to the JVM as `--conf key=value`,
where any local account can read it. The builder therefore gets no secret, and the catalog is configured on the running
session.

Sessions of different principals share no catalog client. Each one is a `newSession()` with its own catalog manager,
table cache and HTTP client, so a token is used only by its session. The object store is not configured: the catalog
returns endpoint, region and keys with each table.

Statements are read from a pipe. Each request and each response is one line of JSON. Each request has its own token and
gets a new session for its one statement. The catalog therefore decides about each statement separately, and a grant or
revocation takes effect without a restart of the engine.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

import msgspec
from pyspark.sql import SparkSession

from lakegate.spark.classes import class_options
from lakegate.spark.config import Catalog, DirectoryCatalog, Engine, RestCatalog, StatementsConfig
from lakegate.spark.errors import cause_of
from lakegate.value_messages import in_words

CATALOG = "lake"


def engine_options(engine: Engine, java_options: str | None = None) -> dict[str, str]:
    """Return the options of the engine. They become part of the JVM's command line, so none may be a secret.

    `java_options` are further options of Java; by default, those that use the recorded classes.

    They are chosen for a small machine. In a run of some minutes the C1 compiler and the serial collector save more
    than they cost. With C1 alone the code cache has 48 MB by default, which one run fills; from then on Java
    interprets.
    """
    if java_options is None:
        java_options = class_options(engine.jars)
    return {
        "spark.master": f"local[{engine.cores}]",
        "spark.app.name": "lakegate-pipeline",
        "spark.driver.memory": engine.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": ":".join(engine.jars),
        "spark.driver.extraJavaOptions": (
            "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m "
            f"-Djava.io.tmpdir={engine.work_dir} {java_options}"
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


def catalog_options(catalog: Catalog, name: str = CATALOG) -> dict[str, str]:
    """Return the options that bind a session to one catalog as one principal. They can contain a secret.

    `name` is the name of the catalog in SQL. The default name becomes the default catalog of the session.
    """
    prefix = f"spark.sql.catalog.{name}"
    options = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    if name == CATALOG:
        options["spark.sql.defaultCatalog"] = CATALOG
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
                # The catalog deletes the files of `DROP TABLE … PURGE`: the engine, or its keys, may end before all
                # files are deleted. Without this option, Spark drops the table and then deletes the same files as the
                # catalog.
                f"{prefix}.rest-catalog-purge": "true",
            }
            options |= {f"{prefix}.{name}": value for name, value in _identity(catalog).items()}
    return options


def _identity(catalog: RestCatalog) -> dict[str, str]:
    """Return the options for the identity of the client.

    For a plain token, renewal is disabled. Otherwise the client would request a new token from the catalog.
    """
    if catalog.token is not None:
        return {"token": catalog.token, "token-refresh-enabled": "false"}
    identity = {"credential": catalog.credential or "", "oauth2-server-uri": catalog.token_endpoint or ""}
    if catalog.scope is not None:
        identity["scope"] = catalog.scope
    return identity


def start_engine(engine: Engine, java_options: str | None = None) -> SparkSession:
    """Start the JVM, and return its root session, which is bound to no catalog. The caller stops it.

    `java_options` is a parameter of `engine_options`.
    """
    Path(engine.work_dir).mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder
    for key, value in engine_options(engine, java_options).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def as_principal(root: SparkSession, catalog: Catalog) -> SparkSession:
    """Return a new session of the running engine, bound to `catalog` with the identity that it contains."""
    if isinstance(catalog, DirectoryCatalog):
        Path(catalog.path).mkdir(parents=True, exist_ok=True)
    session = root.newSession()
    for key, value in catalog_options(catalog).items():
        session.conf.set(key, value)
    return session


def bind_catalog(session: SparkSession, name: str, catalog: RestCatalog, *, role: str | None = None) -> None:
    """Add a catalog to a session under the name `name`. Loaded tables are not cached.

    `role`: the id of the role that the principal assumes.
    """
    options = catalog_options(catalog, name) | {f"spark.sql.catalog.{name}.cache-enabled": "false"}
    if role is not None:
        options[f"spark.sql.catalog.{name}.header.x-assume-role"] = role
    for key, value in options.items():
        session.conf.set(key, value)


MAX_ROWS = 1000
_MAX_MESSAGE = 2000


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request: one statement, to be run as the holder of `token`."""

    token: str
    statement: str


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The response: rows as text (at most `MAX_ROWS`), or an error with class and message of the innermost Java
    cause.
    """

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
    # An error of the statement is its result. Spark, Java and the catalog client raise errors of any type.
    except Exception as error:
        name, message = cause_of(error)
        return Answer(seconds=_since(started), error=name, message=message.replace(question.token, "…")[:_MAX_MESSAGE])
    texts = [[None if value is None else str(value) for value in row] for row in rows]
    return Answer(seconds=_since(started), rows=texts)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 2)


def serve(config: StatementsConfig, questions: BinaryIO, answers: BinaryIO) -> int:
    """Answer requests until `questions` ends, then return 0.

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
