// SPDX-License-Identifier: Apache-2.0
// The snapshots of a table as a timeline with its branches and tags, and what the current one holds.

import { html, nothing } from "lit";

import { bytes, count } from "../core/format.js";
import { badge, empty, when } from "./small.js";

/** @param {Record<string, string> | undefined} summary */
function changeOf(summary = {}) {
  const parts = [
    ["added-records", "+", " rows"],
    ["deleted-records", "−", " rows"],
    ["added-data-files", "+", " files"],
    ["deleted-data-files", "−", " files"],
  ];
  return parts.filter(([name]) => summary[name] !== undefined && summary[name] !== "0").map(([name, sign, unit]) => `${sign}${count(Number(summary[name]))}${unit}`);
}

/** Draw the snapshots, newest first. @param {any} metadata */
export function snapshots(metadata) {
  const rows = [...(metadata.snapshots ?? [])].sort((one, other) => other["timestamp-ms"] - one["timestamp-ms"]);
  if (rows.length === 0) {
    return empty("This table has no snapshot: nothing was written yet.");
  }
  const refs = Object.entries(/** @type {Record<string, any>} */ (metadata.refs ?? {}));
  return html`<ol class="timeline">
    ${rows.map(
      (each) => html`<li>
        ${when(each["timestamp-ms"])} <code>${each["snapshot-id"]}</code> ${badge(each.summary?.operation ?? "snapshot")}
        ${refs.filter(([, ref]) => ref["snapshot-id"] === each["snapshot-id"]).map(([name, ref]) => badge(`${ref.type} ${name}`, "good"))}
        <span class="quiet">${changeOf(each.summary).join(", ")}</span>
        ${each["parent-snapshot-id"] === undefined ? nothing : html`<span class="quiet">after ${each["parent-snapshot-id"]}</span>`}
      </li>`,
    )}
  </ol>`;
}

/** Draw what the current snapshot holds: rows, files, deletes, statistics. @param {any} metadata */
export function files(metadata) {
  const current = (metadata.snapshots ?? []).find((/** @type {any} */ each) => each["snapshot-id"] === metadata["current-snapshot-id"]);
  if (current === undefined) {
    return empty("This table has no file: nothing was written yet.");
  }
  const summary = current.summary ?? {};
  const size = summary["total-files-size"];
  const number = (/** @type {string} */ name) => (summary[name] === undefined ? "unknown" : count(Number(summary[name])));
  return html`<dl class="facts">
      <dt>Rows</dt><dd>${number("total-records")}</dd>
      <dt>Data files</dt><dd>${number("total-data-files")}</dd>
      <dt>Size</dt><dd>${size === undefined ? "unknown" : bytes(Number(size))}</dd>
      <dt>Delete files</dt><dd>${number("total-delete-files")}</dd>
      <dt>Manifest list</dt><dd><code>${current["manifest-list"]}</code></dd>
    </dl>
    ${(metadata.statistics ?? []).length === 0
      ? html`<p class="quiet">No statistics file.</p>`
      : html`<h3>Statistics</h3>
          <ul>${metadata.statistics.map((/** @type {any} */ each) => html`<li><code>${each["statistics-path"]}</code> ${bytes(each["file-size-in-bytes"])}</li>`)}</ul>`}`;
}
