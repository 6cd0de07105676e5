# SPDX-License-Identifier: Apache-2.0
"""Name the file of the classes that Spark loads, and the Java options that use it.

Half of the time of a start of Spark is the loading of its classes. `lakegate setup --with-spark` records them once
(`lakegate.spark.jobs.class_recording`), and Java then maps the file.
"""

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path


def class_archive(jars: Sequence[str | Path], java: Path) -> Path | None:
    """Return the path of the file for an engine with these archives and this Java. The file may not exist.

    It is beside the first archive. Java uses it only with the same installations of Java and PySpark, so its name is
    `classes-<digest of PySpark's path>-<digest of all that must be equal>.jsa`. Return None if one is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None or not jars:
        return None
    try:
        installed, release = Path(found.origin).stat().st_mtime_ns, (java / "release").read_text(errors="replace")
    except OSError:
        return None
    equal = _digest(str(installed), str(java), release, *map(str, jars))
    return Path(jars[0]).with_name(f"{_prefix(found.origin)}{equal}.jsa")


def _prefix(pyspark: str) -> str:
    """Return the start of the names of all files for this installation of PySpark. Only the last one is kept."""
    return f"classes-{_digest(pyspark)}-"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def class_options(jars: Sequence[str | Path]) -> str:
    """Return the Java options for an engine with these archives; an empty text if its classes were not recorded."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None or not jars:
        return ""
    recorded = Path(jars[0]).parent.glob(f"{_prefix(found.origin)}*.jsa")
    archive = next((each for each in recorded if each.stat().st_size), None)
    # Java ignores a file of another Java or class path. By default, it prints that to standard output, where the engine
    # writes its responses.
    return "" if archive is None else f"-Xlog:cds*=off -XX:SharedArchiveFile={archive}"
