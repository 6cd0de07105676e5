# SPDX-License-Identifier: Apache-2.0
"""Worker processes: shared modules, settings of the C library that forked processes inherit, and their end."""

from __future__ import annotations

import ctypes
import gc
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gateway import worker_processes

_SERVE = """
import gc, multiprocessing, sys
from gateway import serving
from gateway.settings import load

multiprocessing.set_start_method({method!r})

class Server:
    def __init__(self, *target, **options):
        pass

    def serve(self):
        from prometheus_client import values
        print("gateway.app" in sys.modules, gc.get_freeze_count() > 0, values.ValueClass.__name__)

serving.Granian = Server
serving.serve(load({{"LAKEGATE__METRICS__PORT": {port!r}, "LAKEGATE__MEMORY__SHARED_MODULES": {shared!r}}}))
"""


def _state_before_workers(method: str, shared: str) -> list[str]:
    """Return whether the application is imported, whether objects are frozen, and the metrics' class of values."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    code = _SERVE.format(method=method, shared=shared, port=port)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("method", "shared", "imported"), [("fork", "true", "True"), ("fork", "false", "False"), ("spawn", "true", "False")]
)
def test_the_application_is_imported_before_workers_are_forked(method: str, shared: str, imported: str) -> None:
    assert _state_before_workers(method, shared) == [imported, imported, "MmapedValue"], (
        "the metrics' directory must be set before the import: else workers count in memory of their own"
    )


def test_objects_of_a_block_without_collection_are_skipped_afterwards() -> None:
    before = gc.get_freeze_count()
    with worker_processes.collection_paused():
        assert not gc.isenabled()
        kept = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_the_collector_runs_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), worker_processes.collection_paused():
        1 / 0  # noqa: B018 - the error of the block
    assert gc.isenabled()


def test_importing_the_application_starts_no_thread_and_imports_no_large_optional_package() -> None:
    """A forked worker has only the thread that forked it. The named packages are large, and few workers need them."""
    large = [
        "alembic",
        "azure",
        "boto3",
        "botocore",
        "google.auth",
        "granian",
        "httpx",
        "httpx2",
        "opentelemetry.exporter",
        "opentelemetry.sdk",
        "pyarrow",
        "pydantic",
    ]
    large += ["pyspark", "requests"]
    code = (
        "import os, sys, gateway.app; "
        f"print(len(os.listdir('/proc/self/task')), *(name for name in {large} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["1"]


def test_large_blocks_are_returned_to_the_system() -> None:
    """A block of the size is not on the heap, also after a larger one was freed; by default, it would be."""
    code = (
        "import ctypes, sys; from gateway.worker_processes import return_large_blocks; "
        "c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; c.free.argtypes = [ctypes.c_void_p]; "
        "c.mallinfo2.restype = type('Info', (ctypes.Structure,), {'_fields_': [(n, ctypes.c_size_t) for n in "
        "'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost'.split()]}); "
        "sys.argv[1] == 'on' and return_large_blocks(1 << 20); "
        "c.free(c.malloc(16 << 20)); before = c.mallinfo2().hblks; "
        "block = c.malloc(2 << 20); print(c.mallinfo2().hblks - before)"
    )
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("not the GNU C library, or an old one")

    def blocks(switch: str) -> str:
        done = subprocess.run([sys.executable, "-c", code, switch], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert (blocks("on"), blocks("off")) == ("1", "0")


def test_a_c_library_without_the_option_is_left_alone() -> None:
    library: Any = SimpleNamespace()
    assert not worker_processes.return_large_blocks(1 << 20, library)


@pytest.mark.parametrize("refused", [-1, -3, -8])
def test_a_refused_option_is_reported(refused: int) -> None:
    library: Any = SimpleNamespace(mallopt=lambda parameter, value: int(parameter != refused))
    assert not worker_processes.return_large_blocks(1 << 20, library)


# Each line is one write. With PYTHONUNBUFFERED, `print` writes the newline separately, after that of the other process.
_MAIN = """
import multiprocessing, os, time
from gateway.worker_processes import end_with_main_process

def work():
    while {orphan} and os.getppid() == multiprocessing.parent_process().pid:
        time.sleep(0.01)
    end_with_main_process()
    os.write(1, b"served\\n")
    time.sleep(60)

multiprocessing.set_start_method("fork")
multiprocessing.Process(target=work).start()
os.write(1, b"started\\n")
time.sleep({seconds})
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("orphan", "printed"), [(False, ["started", "served"]), (True, ["started"])], ids=["later", "before the call"]
)
def test_a_worker_ends_with_its_killed_main_process(orphan: bool, printed: list[str]) -> None:
    """The output ends when no process has it open any more."""
    code = _MAIN.format(orphan=orphan, seconds=1)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    assert sorted(done.stdout.split(), reverse=True) == printed
    assert done.returncode == -signal.SIGKILL
