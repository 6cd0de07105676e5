// SPDX-License-Identifier: Apache-2.0
// The tasks of one table or view: expiry after a drop, purges, maintenance.

import { html } from "lit";

import { ask, path } from "../core/api.js";
import { badge, when } from "./small.js";
import "./long-list.js";

/** @type {Record<string, "good" | "bad" | "warn">} */
const STATES = { SUCCESS: "good", FAILED: "bad", RUNNING: "warn", STOPPING: "warn" };

/** @type {import("./long-list.js").Column[]} */
const COLUMNS = [
  { label: "Queue", draw: (each) => each["queue-name"] },
  { label: "State", draw: (each) => badge(each.status, STATES[each.status] ?? "plain") },
  { label: "Scheduled", draw: (each) => when(each["scheduled-for"]), width: "minmax(16rem, 2fr)" },
  { label: "Attempt", draw: (each) => each.attempt },
];

/** Return a source of the tasks of an object. @param {import("../core/objects.js").Thing} on @returns {import("./long-list.js").Source} */
export function tasksOf(on) {
  return async (token) => {
    const entity = { type: on.type, [`${on.type}-id`]: on.id };
    const body = { entities: [entity], "page-size": 200, ...(token === null ? {} : { "page-token": token }) };
    const answer = await ask("/management/v1" + path`/warehouse/${on.warehouse ?? ""}/task/list`, body);
    return { rows: answer.tasks, next: answer["next-page-token"] ?? null };
  };
}

/** Draw a list of tasks. @param {import("./long-list.js").Source} source */
export function taskList(source) {
  return html`<lg-long-list label="Tasks" .source=${source} .columns=${COLUMNS} .empty=${"No task for this object."}></lg-long-list>`;
}
