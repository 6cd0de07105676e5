# SPDX-License-Identifier: Apache-2.0
"""Endpoints for probes, which test whether engines enforce restrictions."""

from __future__ import annotations

from gateway.access.operations.engine_probes import (
    CreateEngineProbe,
    ListEngineProbes,
    RecordEngineProbe,
    RunEngineProbe,
)
from gateway.api.serves import replay_by, serve
from gateway.features.engines.engine_probes import EngineProbes

serve(ListEngineProbes, EngineProbes.list)
serve(CreateEngineProbe, EngineProbes.create, replay=replay_by(CreateEngineProbe, EngineProbes.repeat_create))
serve(RecordEngineProbe, EngineProbes.record, replay=replay_by(RecordEngineProbe, EngineProbes.repeat_record))
serve(RunEngineProbe, EngineProbes.run, replay=replay_by(RunEngineProbe, EngineProbes.repeat_record))
