# SPDX-License-Identifier: Apache-2.0
"""No child process outlives the process that started it, however that one ended. Uses real, trivial processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lakegate.local.children import Children, ChildSpec
from lakegate.local.errors import ChildFailed
from tests.support.processes import at_work, processes, values_of

pytestmark = pytest.mark.chaos

_GONE_SECONDS = 60.0

# A parent like `lakegate up`. It starts a child that ends on SIGTERM, one that ignores it, and one whose grandchild
# left its process group. Then it writes their pids and waits forever.
_PARENT = """
import asyncio, json, sys
from pathlib import Path
from lakegate.local.children import Children, ChildSpec
from lakegate.local.up import until_signal

PY = sys.executable
SPAWNER = '''
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
'''
STUBBORN = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
time.sleep(600)
'''

async def stay(logs, report):
    async with Children(logs, remove=[logs.parent / "sockets"]) as children:
        polite = await children.start(ChildSpec(name="polite", argv=[PY, "-c", "import time; time.sleep(600)"]))
        stubborn = await children.start(ChildSpec(name="stubborn", argv=[PY, "-c", STUBBORN], grace=0.5))
        spawner = await children.start(ChildSpec(name="spawner", argv=[PY, "-c", SPAWNER], order=2, grace=0.5))
        while not (logs / "spawner.log").read_text().strip() or not (logs / "stubborn.log").read_text():
            await asyncio.sleep(0.02)
        pids = [children.supervisor_pid, polite.pid, stubborn.pid, spawner.pid, int((logs / "spawner.log").read_text())]
        part = report.with_suffix(".part")
        part.write_text(json.dumps(pids))
        part.rename(report)
        if "fail" in sys.argv:
            await children.run(ChildSpec(name="broken", argv=[PY, "-c", "raise SystemExit(3)"]), timeout=60)
        await asyncio.Event().wait()

root = Path(sys.argv[1])
asyncio.run(until_signal(stay(root / "logs", root / "pids.json")))
"""


def _start_parent(root: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    (root / "logs").mkdir()
    (root / "sockets").mkdir()
    process = subprocess.Popen([sys.executable, "-c", _PARENT, str(root), *arguments], stderr=subprocess.DEVNULL)
    report = root / "pids.json"
    deadline = time.monotonic() + 60
    while not report.exists():
        assert time.monotonic() < deadline and (process.poll() is None or report.exists()), (
            "the parent process did not start before the deadline"
        )
        time.sleep(0.02)
    return process, json.loads(report.read_text())


def _left_after(pids: list[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    left = processes(pids)
    while left and time.monotonic() < deadline:
        left = at_work(left)
        time.sleep(0.02)
    return [process.pid for process in left]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_child_outlives_a_parent_ended_by_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    parent, pids = _start_parent(tmp_path)
    assert all(psutil.pid_exists(pid) for pid in pids)
    parent.send_signal(number)
    parent.wait(_GONE_SECONDS)
    assert _left_after(pids, _GONE_SECONDS) == []
    assert not (tmp_path / "sockets").exists()


def test_no_child_outlives_a_start_that_fails(tmp_path: Path) -> None:
    parent, pids = _start_parent(tmp_path, "fail")
    assert parent.wait(_GONE_SECONDS) != 0
    assert _left_after(pids, _GONE_SECONDS) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, which signals a child when its parent is killed")
def test_no_child_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    parent, (supervisor, polite, _, spawner, _) = _start_parent(tmp_path)
    os.kill(supervisor, signal.SIGKILL)
    assert _left_after([supervisor, polite, spawner], _GONE_SECONDS) == []
    parent.kill()
    parent.wait()
    for process in psutil.process_iter(["cmdline"]):  # the two that end only on SIGKILL
        if str(tmp_path) in " ".join(process.info["cmdline"] or ()):
            values_of(psutil.Process.kill, [process])
    values_of(psutil.Process.kill, processes(json.loads((tmp_path / "pids.json").read_text())))


async def test_a_suspended_child_is_ended(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        child = await children.start(
            ChildSpec(name="frozen", argv=[sys.executable, "-c", "import time; time.sleep(600)"], grace=2.0)
        )
        os.kill(child.pid, signal.SIGSTOP)
    assert _left_after([child.pid], _GONE_SECONDS) == []


async def test_children_of_a_higher_order_are_stopped_first(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "def stop(*_):\n    print(time.monotonic(), flush=True); sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop); print('up', flush=True); time.sleep(600)"
    )
    async with Children(tmp_path) as children:
        for name, order in (("first", 2), ("last", 0)):
            await children.start(ChildSpec(name=name, argv=[sys.executable, "-c", script], order=order))
        while not all((tmp_path / f"{name}.log").read_text() for name in ("first", "last")):
            await asyncio.sleep(0.02)
    ended = {name: float((tmp_path / f"{name}.log").read_text().split()[1]) for name in ("first", "last")}
    assert ended["first"] < ended["last"]


async def test_a_child_has_only_the_environment_it_was_given(tmp_path: Path) -> None:
    script = "import os; print(sorted(name for name in os.environ if name != 'LC_CTYPE'))"
    async with Children(tmp_path) as children:
        spec = ChildSpec(name="env", argv=[sys.executable, "-c", script], env={"GIVEN": "1"})
        await children.run(spec, timeout=60)
    assert (tmp_path / "env.log").read_text().strip() == "['GIVEN']"


async def test_missing_program_is_named_with_the_reason(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        with pytest.raises(ChildFailed, match="ghost cannot be started: .*No such file"):
            await children.start(ChildSpec(name="ghost", argv=["/nonexistent/ghost"]))


@pytest.mark.parametrize("text", ["listen tcp 127.0.0.1:1: bind: address already in use", "Address already in use"])
async def test_taken_port_is_distinguished_from_other_failures(text: str, tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        for log_text, expected in ((text, True), ("out of memory", False)):
            spec = ChildSpec(name="server", argv=[sys.executable, "-c", f"raise SystemExit({log_text!r})"])
            with pytest.raises(ChildFailed) as failure:
                await children.run(spec, timeout=60)
            assert failure.value.port_taken is expected


async def test_child_exceeding_its_start_timeout_is_ended(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        with pytest.raises(ChildFailed, match="did not finish within"):
            await children.run(
                ChildSpec(name="slow", argv=[sys.executable, "-c", "import time; time.sleep(600)"]), timeout=0.2
            )


async def test_secrets_given_to_a_child_are_in_no_command_line(tmp_path: Path) -> None:
    async with Children(tmp_path) as children:
        spec = ChildSpec(
            name="reader",
            argv=[sys.executable, "-c", "import sys, time; sys.stdin.read(); time.sleep(600)"],
            env={"KEY": "s3cret-in-environment"},
            text="s3cret-in-input",
        )
        await children.start(spec)
        lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if "s3cret" in line and "pytest" not in line]
    assert "s3cret" not in repr(spec)
