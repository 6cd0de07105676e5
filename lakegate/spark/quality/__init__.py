# SPDX-License-Identifier: Apache-2.0
"""Data quality: expectations as data (`expectations`), the rules of this lakehouse (`rules`), and their results.

Every result is recorded in `ops.quality_results`. A violation of severity `fail` also stops the run before it changes
the tables of the layer.
"""
