# SPDX-License-Identifier: Apache-2.0
"""Change events of a running gateway reach a webhook although the gateway and the webhook failed meanwhile."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jsonschema_rs
import pytest

from gateway.access.events.event_schema import SCHEMA_FILE
from tests.support.lakegate_command import run_lakegate
from tests.support.load.kills import SOON, Killable
from tests.support.stack.access_requests import asked, decide, on_table, read
from tests.support.stack.world import Person, Table, World

pytestmark = pytest.mark.servers

SECRET = "a signing secret of the tests"


class Receiver:
    """A webhook on loopback. It answers 503 until `works`, and keeps the events of requests with a right signature."""

    def __init__(self) -> None:
        self.works = False
        self.asked = 0
        self.events: list[dict[str, Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.asked += 1
                body = self.rfile.read(int(self.headers["content-length"]))
                signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
                expected = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
                if receiver.works and self.headers["webhook-signature"] == f"v1,{expected}":
                    receiver.events.append(json.loads(body))
                self.send_response(204 if receiver.works else 503)
                self.end_headers()

            def do_HEAD(self) -> None:
                self.send_response(405)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of a sink `hook`."""
        at = "EVENTS__SINKS__HOOK"
        url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        return {f"{at}__KIND": "webhook", f"{at}__URL": url, f"{at}__SECRET": SECRET}

    def types(self) -> list[str]:
        """Return the types of the received events, in order."""
        return [event["type"] for event in self.events]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.1)


def test_a_change_is_announced_although_the_sink_and_the_gateway_failed_meanwhile(
    stopped_gateway: Killable, receiver: Receiver
) -> None:
    with stopped_gateway.serving(**receiver.settings, EVENTS__MAX_BACKOFF="1s") as world:
        _announced_after_failures(stopped_gateway, world, receiver)


def _announced_after_failures(gateway: Killable, world: World, receiver: Receiver) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    assert world.admin.post(table.path, {"requirements": [], "updates": []}).status_code == 200
    update = [{"action": "set-properties", "updates": {"a": "b"}}]
    assert world.admin.post(table.path, {"requirements": [], "updates": update}).status_code == 200
    world.grant("select", world.people["bob"], "table", table.uuid)
    assert world.admin.delete(table.path, params={"purgeRequested": "true"}).status_code == 204
    # A change that is refused announces nothing.
    assert world.people["alice"].delete(f"{world.root}/namespaces/{namespace}").status_code in (403, 404)
    _until(lambda: receiver.asked > 0)
    gateway.kill()
    receiver.works = True
    gateway.start(**receiver.settings, EVENTS__MAX_BACKOFF="1s")
    expected = ["createNamespace", "createTable", "updateTable", "changeGrants", "dropTable"]
    _until(lambda: "dropTable" in receiver.types())
    own = (world.namespace_id(namespace), table.uuid)  # the gateway also announces the restored rights of the users
    once = {event["id"]: event for event in receiver.events if event["objectid"] in own}
    types = [event["type"] for event in once.values()]
    assert [type for type in types if type in expected or type == "dropNamespace"] == [
        *expected[:3], *(["updateTable"] if types.count("updateTable") == 2 else []), *expected[3:],
    ]  # fmt: skip
    (created,) = [event for event in receiver.events if event["type"] == "createTable"]
    assert created["tabularid"] == table.uuid
    assert created["data"]["name"] == created["name"] == table.name
    assert json.loads(created["actor"]) == {"type": "principal", "principal": world.admin.id}
    environment = gateway.environment | {f"LAKEGATE__{name}": value for name, value in receiver.settings.items()}
    listed = run_lakegate("events", "sinks", environment=environment)
    assert "hook: waiting 0, oldest 0 s, dead letters 0" in listed.stdout.splitlines(), listed.stderr
    received = len(receiver.events)
    again = run_lakegate("events", "replay", "--from", "0", "--sink", "hook", environment=environment)
    assert again.returncode == 0, again.stderr
    _until(lambda: len(receiver.events) >= received + len(expected))
    unknown = run_lakegate("events", "replay", "--from", "0", "--sink", "other", environment=environment)
    assert unknown.returncode == 1 and "the settings have no event sink other" in unknown.stderr


def test_sinks_that_hang_take_no_connection_of_requests(stopped_gateway: Killable) -> None:
    """As many sinks as the gateway has connections for changes accept a request and never answer."""
    posted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        threading.Thread(target=_accept_posts, args=(silent, posted), daemon=True).start()
        settings: dict[str, str] = {}
        for name in ("A", "B", "C"):
            at = f"EVENTS__SINKS__{name}"
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            settings |= {f"{at}__KIND": "webhook", f"{at}__URL": url, f"{at}__SECRET": SECRET, f"{at}__TIMEOUT": "300"}
        settings |= {"PG_WRITE_POOL_CONNECTIONS": "2", "PG_ACQUIRE_TIMEOUT": "2"}
        with stopped_gateway.serving(**settings) as world:
            table = world.table(world.namespace())
            _until(lambda: len(posted) == 3)
            answer = world.admin.post(table.path, {"requirements": [], "updates": []})
            assert answer.status_code == 200, answer.text
    for each in posted:
        each.close()


def _accept_posts(server: socket.socket, posted: list[socket.socket]) -> None:
    """Accept connections until the server is closed. Keep those with a POST request open, and close the others."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        if connection.recv(4) == b"POST":
            posted.append(connection)
        else:
            connection.close()


def test_each_step_of_an_access_request_arrives_with_its_full_shape(
    stopped_gateway: Killable, receiver: Receiver
) -> None:
    receiver.works = True
    with stopped_gateway.serving(**receiver.settings) as world:
        table, bob = world.table(world.namespace()), world.stranger()
        world.grant("describe", bob, "table", table.uuid)
        approved, denied, withdrawn = (asked(bob, on_table(world, table), each) for each in _REQUESTED)
        grant, body = f"select:user:{bob.id}", {"privileges": ["select"], "duration-seconds": 60}
        assert decide(world.admin, approved, "approve", body).status_code == 204
        assert decide(world.admin, denied, "deny", {"reason": "use the copy"}).status_code == 204
        assert decide(bob, withdrawn, "withdraw").status_code == 204
        assert decide(bob, approved, "end").status_code == 204
        ends, giving, ending = (
            read(bob, approved)["ends-at"].replace("Z", "+00:00"),
            _writing([grant], []),
            _writing([], [grant]),
        )
        steps = (
            ("createAccessRequest", approved, bob, _created(table, "select")),
            ("createAccessRequest", denied, bob, _created(table, "modify")),
            ("createAccessRequest", withdrawn, bob, _created(table, "manage_grants")),
            (
                "approveAccessRequest",
                table.uuid,
                world.admin,
                _decided(approved, bob) | giving | {"write_ends": [ends]},
            ),
            ("denyAccessRequest", table.uuid, world.admin, _decided(denied, bob)),
            ("withdrawAccessRequest", withdrawn, bob, {"access_request": withdrawn}),
            ("endAccess", table.uuid, bob, _decided(approved, bob) | ending),
        )
        types = {step[0] for step in steps}
        _until(lambda: len([each for each in receiver.events if each["type"] in types]) >= len(steps))
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA_FILE.read_text()), validate_formats=True)
    for type, object, actor, data in steps:
        some = {each["id"]: each for each in receiver.events if (each["type"], each["objectid"]) == (type, object)}
        (found,) = some.values()
        validator.validate(found)
        assert (json.loads(found["actor"])["principal"], found["data"]) == (actor.id, data), type
    changed = [each for each in receiver.events if each["type"] == "changeGrants" and each["objectid"] == table.uuid]
    assert [each["data"]["writes"] for each in changed if grant in each["data"]["writes"]] == [[grant]]
    assert [each["data"]["deletes"] for each in changed if grant in each["data"]["deletes"]] == [[grant]]


_REQUESTED = ("select", "modify", "manage_grants")


def _created(table: Table, privilege: str) -> dict[str, Any]:
    """Return the data of the event of a new request."""
    return {"object_type": "table", "object": table.uuid, "privileges": [privilege], "duration_seconds": None}


def _writing(writes: list[str], deletes: list[str]) -> dict[str, Any]:
    """Return the part of the data about changed grants."""
    return {"writes": writes, "deletes": deletes, "write_ends": [], "all_reasoned": True}


def _decided(id: str, requester: Person) -> dict[str, Any]:
    """Return the part of the data that names the request."""
    return {"access_request": id, "requested_by": requester.id}
