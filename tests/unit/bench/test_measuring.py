# SPDX-License-Identifier: Apache-2.0
"""The parts of the measurements: variables, settings, configurations of catalogs, CPU time, and the load."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.bench import catalogs, options, people, stacks
from tests.bench.catalogs import has_credentials, prefix_of
from tests.bench.cpu import seconds_by_group
from tests.bench.load import Load, Request, send
from tests.bench.pairs import Slices
from tests.bench.people import Mixes, interleaved
from tests.bench.versions import Measured, parsed, setting, slices_of


@pytest.mark.parametrize(
    ("config", "prefix"),
    [
        ({"defaults": {"prefix": "a"}, "overrides": {}}, "a/"),
        ({"defaults": {"prefix": "a"}, "overrides": {"prefix": "b/c"}}, "b/c/"),
        ({"defaults": {}, "overrides": {}}, ""),
        ({"defaults": None, "overrides": {"prefix": "/d/"}}, "d/"),
    ],
)
def test_prefix_of_the_configuration_is_used_and_overrides_win(config: Any, prefix: str) -> None:
    assert prefix_of(config) == prefix


@pytest.mark.parametrize("config", [[], {}, {"status": "ok"}, None])
def test_answer_of_another_service_is_no_configuration(config: Any) -> None:
    with pytest.raises(ValueError, match="neither defaults nor overrides"):
        prefix_of(config)


def test_load_without_credentials_does_not_count_as_vended() -> None:
    assert has_credentials({"storage-credentials": [{"prefix": "s3://a"}]})
    assert has_credentials({"config": {"s3.secret-access-key": "x"}})
    assert not has_credentials({"config": {"s3.endpoint": "x"}, "storage-credentials": []})
    assert not has_credentials({"config": None})


def test_words_select_names_and_a_semicolon_allows_commas() -> None:
    assert options.selects("", "anything")
    assert options.selects("config,commit", "commit, 64 tables")
    assert not options.selects("config,commit", "loadTable")
    assert options.selects("loadTable, vended;config", "loadTable, vended")
    assert not options.selects("loadTable, vended;config", "loadTable")


def test_variables_change_only_what_they_name() -> None:
    found = options.read({"BENCH_CONNECTIONS": "8,32", "BENCH_ROUNDS": "2", "BENCH_ONLY": "mix"})

    assert found == options.Options(connections=(8, 32), rounds=2, only="mix")


def test_setting_has_a_name_of_the_gateway() -> None:
    assert setting("LAKEGATE__A__B=x=y") == ("LAKEGATE__A__B", "x=y")
    for wrong in ("LAKEGATE__A", "PATH=/bin"):
        with pytest.raises(argparse.ArgumentTypeError, match="LAKEGATE__NAME=VALUE"):
            setting(wrong)


def test_settings_belong_to_one_side() -> None:
    found = parsed(["../base", "--ours", "LAKEGATE__A=1", "--base", "LAKEGATE__B=2", "--base", "LAKEGATE__C=3"])

    assert (found.base, found.our_checkout) == (Path("../base"), stacks.OURS)
    assert found.ours == [("LAKEGATE__A", "1")]
    assert found.base_settings == [("LAKEGATE__B", "2"), ("LAKEGATE__C", "3")]


def test_directory_without_the_product_is_refused_as_checkout(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no checkout of Lakegate"), stacks.stack(tmp_path):
        pass


def test_first_touch_ends_the_cached_allows_of_each_side_and_later_mixes_are_warmed() -> None:
    ours, base = (Measured({}, Mixes(sent={}, one_pass=250, forget=lambda: None)) for _ in range(2))
    assert ours.mixes is not None and base.mixes is not None
    plan = Slices(pairs=2, seconds=2.0, warm_seconds=1.0)

    first = slices_of(people.FIRST, (ours, base), plan)
    steady = slices_of(people.STEADY, (ours, base), plan)

    assert (first.requests, first.warm_requests, first.warm_seconds) == (250, 0, 0.0)
    assert first.before == (ours.mixes.forget, base.mixes.forget)
    assert (steady.requests, steady.warm_requests, steady.before) == (0, 1000, None)
    assert slices_of(catalogs.COMMIT, (ours, base), plan).warm_requests == 4 * catalogs.COMMITTED
    assert slices_of(catalogs.CONFIG, (ours, base), plan) == plan


_CHILD = """
import sys, time
while time.process_time() < 0.5: pass
print(flush=True)
if sys.argv[1] == "living": sys.stdin.read()
"""
_PARENT = """
import subprocess, sys
command = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
if sys.argv[2] == "ended": child.wait()
print(flush=True)
sys.stdin.read()
child.stdin.close()
child.wait()
"""


@pytest.mark.parametrize("child", ["living", "ended"])
def test_cpu_time_of_a_group_includes_its_descendants_and_no_other_process(child: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, _CHILD, child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        found = seconds_by_group({"parent": [parent.pid], "none": [], "gone": [2**22 + 1]})
        parent.communicate("")

    assert found["parent"] >= 0.45  # the clock of /proc ticks every hundredth of a second
    assert (found["none"], found["gone"]) == (0.0, 0.0)


def test_all_processes_of_this_user_are_counted_once() -> None:
    own = os.getpid()

    assert seconds_by_group({"one": [own], "twice": [own, own]})["twice"] == pytest.approx(
        seconds_by_group({"one": [own]})["one"], abs=0.2
    )


def test_mix_contains_every_request_once() -> None:
    requests = [Request(method="GET", url=str(number), headers={}) for number in range(250)]

    assert sorted(int(each.url) for each in interleaved(requests)) == list(range(250))


async def _served(handler: Any) -> tuple[web.AppRunner, str]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def _load(url: str, **changed: Any) -> Load:
    described: dict[str, Any] = {
        "method": "GET",
        "headers": {},
        "body": None,
        "connections": 1,
        "seconds": 5.0,
        "first": 0,
    }
    return Load(url=url, **{**described, **changed})


async def test_limited_load_sends_each_number_and_each_table_in_turn() -> None:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response()

    runner, base = await _served(handler)
    result = await send(_load(f"{base}/{{n}}/{{k}}", requests=7, first=5, vary=3))
    again = await send(_load(f"{base}/{{n}}/{{k}}", requests=1, first=result.last))
    await runner.cleanup()

    assert paths[:7] == [f"/{n}/{n % 3:03}" for n in range(5, 12)]
    assert (result.answered, result.refused, again.answered) == (7, 0, 1)
    assert paths[7] not in paths[:7]


async def test_mix_changes_the_table_after_each_pass() -> None:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response()

    runner, base = await _served(handler)
    mix = [Request(method="GET", url=f"{base}/{name}/{{k}}", headers={}) for name in ("a", "b")]
    await send(_load("", requests=4, mix=mix, vary=100))
    await runner.cleanup()

    assert paths == ["/a/000", "/b/000", "/a/001", "/b/001"]


async def test_redirect_is_a_failed_request_and_is_not_followed() -> None:
    followed: list[str] = []

    async def record(request: web.Request) -> web.Response:
        followed.append(request.path)
        return web.Response()

    other, target = await _served(record)

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"{target}/elsewhere")

    runner, base = await _served(redirect)
    result = await send(_load(f"{base}/x", requests=3))
    await runner.cleanup()
    await other.cleanup()

    assert (result.answered, result.refused) == (0, 3)
    assert followed == []
