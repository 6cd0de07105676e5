# SPDX-License-Identifier: Apache-2.0
"""``lakegate serve``: run Granian with its worker processes, and serve their metrics on a separate port."""

from __future__ import annotations

import resource
import shutil
import tempfile
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIServer

from granian import Granian
from granian.constants import Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels

from gateway.settings import Settings, certificate_sources, export_metrics_directory
from gateway.settings.tracing import headers_of
from gateway.tls import trusted
from gateway.worker_processes import return_large_blocks, share_modules

if TYPE_CHECKING:
    from gateway.telemetry.otlp_metrics import MetricsExport

_MODULE = "gateway.app"
_TARGET = f"{_MODULE}:create_worker"
_KEEP_ALIVE = True
_DRAIN_SECONDS = 5
_METRICS_SECONDS = 5.0

_BACKLOG = 4096
"""Connections that wait to be accepted. The kernel drops further ones, and clients try again after a second or more."""

_OTHER_FILES = 1024
"""File descriptors of a worker process beside those of clients: connections to other components, logs, metrics."""


class CannotListen(Exception):
    """The gateway cannot listen on an address. The message names the setting."""


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM. Workers then get five seconds to finish their requests.

    Each worker process creates its own application with ``gateway.app:create_worker``. Granian replaces a worker that
    dies. The module is imported here, so that the workers share its memory.

    Raises:
        CannotListen: the port for metrics is in use, or the process may not listen on it.
    """
    # Set before the import of the application: the Prometheus client reads this variable when it is imported.
    directory = tempfile.mkdtemp(prefix="lakegate-metrics-")
    export_metrics_directory(directory)
    try:
        _reduce_memory(settings)
        allow_connections(settings.max_connections)
        metrics = _serve_metrics(settings, directory)
        export = _export_metrics(settings, directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    try:
        Granian(
            _TARGET,
            factory=True,
            address=settings.bind_ip,
            port=settings.listen_port,
            interface=Interfaces.ASGI,
            loop=Loops.uvloop,
            workers=settings.workers,
            websockets=False,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(settings.max_header_time * 1000), keep_alive=_KEEP_ALIVE
            ),
            log_level=LogLevels(settings.log_level),
            log_access=False,
            respawn_failed_workers=True,
            workers_kill_timeout=_DRAIN_SECONDS,
            backlog=_BACKLOG,
            backpressure=settings.max_connections,
        ).serve()
    finally:
        if export is not None:
            export.end()
        metrics.shutdown()
        metrics.server_close()
        shutil.rmtree(directory, ignore_errors=True)


def allow_connections(number: int) -> int:
    """Raise the limit of open files of this process and of its workers for a number of client connections.

    Return the number of allowed files. It is smaller than needed if the administrator's limit is.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = number + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return soft
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return raised


def _reduce_memory(settings: Settings) -> None:
    if settings.memory.large_block:
        return_large_blocks(settings.memory.large_block)
    if settings.memory.shared_modules:
        share_modules(_MODULE)


def _serve_metrics(settings: Settings, directory: str) -> WSGIServer:
    """Serve the metrics, summed over all workers, at ``/metrics``. Runs in a thread of the parent process. Raises
    CannotListen.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from gateway.telemetry.worker_metrics import LivingWorkers

    registry = CollectorRegistry()
    registry.register(LivingWorkers(directory))
    try:
        server, _ = start_http_server(settings.metrics.port, settings.bind_ip, registry)
    except OSError as error:
        raise CannotListen(f"METRICS__PORT {settings.metrics.port} at {settings.bind_ip}: {error.strerror}") from error
    return server


def _export_metrics(settings: Settings, directory: str) -> MetricsExport | None:
    """Export the metrics, summed over all workers, by OTLP. Runs in a thread of the parent process. Return None without
    a collector.
    """
    wanted = settings.metrics_export
    if wanted.endpoint is None:
        return None
    from gateway.telemetry.otlp_client import PROTOBUF, OtlpClient
    from gateway.telemetry.otlp_metrics import MetricsExport
    from gateway.telemetry.worker_metrics import LivingWorkers

    client = OtlpClient(
        wanted.endpoint,
        encoding=PROTOBUF,
        headers=headers_of(wanted.headers, "METRICS_EXPORT__HEADERS"),
        timeout=_METRICS_SECONDS,
        tls=trusted(*certificate_sources()).context,
    )
    return MetricsExport(
        LivingWorkers(directory).collect, client, seconds=wanted.interval, service_name=wanted.service_name
    )
