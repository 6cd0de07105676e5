# SPDX-License-Identifier: Apache-2.0
"""Log lines, metrics and health of a running gateway, for operators.

`logs` writes one JSON object per line, and `redaction` removes secrets from it. `metrics` contains every Prometheus
metric. `health` checks the external systems periodically. Audit records are evidence and therefore separate, in
`gateway/audit`.

This package imports nothing of the gateway, so that all packages that do I/O may import it. The pure packages (iceberg,
scope, obligations) and the code that decides operations do not use it. They report through their results.
"""
