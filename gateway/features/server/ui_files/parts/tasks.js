// SPDX-License-Identifier: Apache-2.0
// Tasks of a warehouse or a project: their states and attempts, and what can be done with them.

import { html, nothing } from "lit";

import { ask, change, get, path } from "../core/api.js";
import { words } from "../core/format.js";
import { openDialog } from "./dialog.js";
import "./long-list.js";
import { badge, when } from "./small.js";

/** Where tasks are: in a warehouse, or in a project itself. @typedef {{warehouse?: string, project?: string}} Place */

/** @type {Record<string, "good" | "bad" | "warn" | "plain">} */
const KINDS = { SUCCESS: "good", FAILED: "bad", RUNNING: "warn", STOPPING: "warn" };
export const STATES = ["SCHEDULED", "RUNNING", "STOPPING", "SUCCESS", "FAILED", "CANCELLED"];

/** @param {Place} place */
export function tasksPath({ warehouse }) {
  return "/management/v1" + (warehouse === undefined ? "/project" : path`/warehouse/${warehouse}`);
}

/** Return a source of tasks, of one state if `status` is not empty. @param {Place} place @param {string} status */
export function tasksOf(place, status) {
  return async (/** @type {string | null} */ token) => {
    const body = { "page-size": 200, ...(status === "" ? {} : { status: [status] }), ...(token === null ? {} : { "page-token": token }) };
    const answer = await ask(`${tasksPath(place)}/task/list`, body, { project: place.project });
    return { rows: answer.tasks, next: answer["next-page-token"] ?? null };
  };
}

/** @param {string} status */
function state(status) {
  return badge(status.toLowerCase(), KINDS[status] ?? "plain");
}

/** Show a task with its attempts. @param {any} task @param {Place} place @param {boolean} allowed @param {(notice: string) => void} changed */
async function open(task, place, allowed, changed) {
  const found = await get(tasksPath(place) + path`/task/by-id/${task["task-id"]}` + "?numAttempts=20", { project: place.project });
  const waits = found.status === "SCHEDULED";
  const runs = found.status === "RUNNING";
  /** @type {[string, string][]} */
  const possible = [...(waits ? [["run-now", "Run now"], ["cancel", "Cancel"]] : []), ...(runs ? [["stop", "Stop the attempt"]] : [])].map(([name, label]) => [name, label]);
  const acts = allowed && possible.length > 0;
  void openDialog({
    title: `Task ${words(found["queue-name"])}`,
    action: acts ? "Do it" : "Close",
    submit: async ({ action }) => {
      if (acts) {
        await change("POST", `${tasksPath(place)}/task/control`, { action: { "action-type": action }, "task-ids": [found["task-id"]] }, { project: place.project });
        changed(`Done: ${possible.find(([name]) => name === action)?.[1].toLowerCase()}.`);
      }
    },
    body: html`<dl class="facts">
        <dt>State</dt><dd>${state(found.status)} ${found.message ?? nothing}</dd>
        <dt>About</dt><dd>${found["entity-name"]?.join(".") ?? "the whole"} <code>${found["task-id"]}</code></dd>
        <dt>Scheduled for</dt><dd>${when(found["scheduled-for"])}</dd>
        <dt>Last sign of life</dt><dd>${when(found["last-heartbeat-at"])}</dd>
      </dl>
      <h3>Attempts</h3>
      ${found.attempts.length === 0
        ? html`<p class="quiet">No attempt has ended yet.</p>`
        : html`<table>
            <thead><tr><th scope="col">Attempt</th><th scope="col">Result</th><th scope="col">Started</th><th scope="col">Ended</th><th scope="col">Message</th></tr></thead>
            <tbody>${found.attempts.map((/** @type {any} */ each) => html`<tr><th scope="row">${each.attempt}</th><td>${state(each.status)}</td><td>${when(each["started-at"])}</td><td>${when(each["created-at"])}</td><td>${each.message ?? nothing}</td></tr>`)}</tbody>
          </table>`}
      ${acts
        ? html`<div class="field"><label for="task-action">Action</label><select id="task-action" name="action">${possible.map(([name, label]) => html`<option value=${name}>${label}</option>`)}</select></div>
            <p class="quiet">A cancelled task never runs: files of dropped tables then stay in the store. A stopped attempt is tried again.</p>`
        : nothing}
      ${!allowed && possible.length > 0 ? html`<p class="quiet">To run or cancel it you need “control tasks” here; ask an administrator.</p>` : nothing}`,
  });
}

/** Draw a list of tasks. @param {unknown} source @param {Place} place @param {boolean} allowed @param {(notice: string) => void} changed */
export function taskList(source, place, allowed, changed) {
  const columns = [
    { label: "State", draw: (/** @type {any} */ each) => state(each.status), width: "9rem" },
    { label: "Queue", draw: (/** @type {any} */ each) => words(each["queue-name"]) },
    { label: "About", draw: (/** @type {any} */ each) => each["entity-name"]?.join(".") ?? "", width: "minmax(10rem, 2fr)" },
    { label: "Scheduled for", draw: (/** @type {any} */ each) => when(each["scheduled-for"]), width: "minmax(14rem, 1.5fr)" },
    { label: "Attempt", draw: (/** @type {any} */ each) => each.attempt, width: "6rem" },
    { label: "Task", draw: (/** @type {any} */ each) => html`<button type="button" class="small" @click=${() => void open(each, place, allowed, changed)}>Open</button>`, width: "6rem" },
  ];
  return html`<lg-long-list label="Tasks" .source=${source} .columns=${columns} .empty=${"No task in this state. Drops of tables and clean-ups make tasks."}></lg-long-list>`;
}
