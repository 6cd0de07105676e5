# SPDX-License-Identifier: Apache-2.0
"""Data quality: expectations as data (`expectations`), the rules of this lake (`rules`), their record (`results`).

A result is always counted and recorded. Severity `fail` stops the run before the layer's tables are touched;
severity `warn` lets it go on and shows up in `ops.quality_results`.
"""
