# SPDX-License-Identifier: Apache-2.0
"""What operators see of a running gateway: log lines, metrics and health.

`logs` writes one JSON object per line and `redaction` is its last fence against secrets, `metrics` holds every
Prometheus metric, `health` polls the outside systems. The audit record is none of this: it is evidence and lives in
`gateway/audit`. Imports nothing of the gateway, so that every room that does something may use it; the pure rooms
(iceberg, scope, obligations) and the door report by what they return instead.
"""
