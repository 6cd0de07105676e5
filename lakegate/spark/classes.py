# SPDX-License-Identifier: Apache-2.0
"""Name the file of the classes that Spark loads, and the Java options that use it.

Half of the time of a start of Spark is the loading of its classes. `lakegate setup --with-spark` records them once
(`lakegate.spark.jobs.class_recording`), and Java then maps the file.
"""

import hashlib
import importlib.util
import os
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
    place, equal = _digest(found.origin), _digest(str(installed), str(java), release, *map(str, jars))
    return Path(jars[0]).with_name(f"classes-{place}-{equal}.jsa")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def class_options(jars: Sequence[str | Path]) -> str:
    """Return the Java options for an engine with these archives and the Java in `JAVA_HOME`.

    Return an empty text without that variable, and if the classes were not recorded.
    """
    archive = class_archive(jars, Path(os.environ.get("JAVA_HOME", "/nowhere")))
    if archive is None or not archive.is_file() or archive.stat().st_size == 0:
        return ""
    # By default, Java prints to standard output that it ignores a file. The responses of the engine are written there.
    return f"-Xlog:cds*=off -XX:SharedArchiveFile={archive}"
