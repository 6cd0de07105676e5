// SPDX-License-Identifier: Apache-2.0
// The tabs of a warehouse for its administrators.

import { html } from "lit";

import { managementPath } from "../core/objects.js";
import { credentialList, liveCredentials } from "./live-credentials.js";
import { taskList, tasksOf } from "./tasks.js";
import { warehouseSettings } from "./warehouse-settings.js";
import "./warehouse-storage.js";

/** Return the sources of these tabs; a page makes them once. @param {any} on */
export function warehouseSources(on) {
  return { tasks: tasksOf({ warehouse: on.id }, ""), credentials: liveCredentials(`${managementPath(on)}/live-credentials`) };
}

/**
 * @param {any} on @param {Set<string>} actions
 * @param {ReturnType<typeof warehouseSources>} sources
 * @param {(notice: string) => void} changed
 */
export function warehouseTabs(on, actions, sources, changed) {
  return {
    storage: { label: "Storage", draw: () => html`<lg-warehouse-storage .on=${on} .actions=${actions} @warehouse-changed=${() => changed("")}></lg-warehouse-storage>` },
    settings: { label: "Settings", draw: () => warehouseSettings({ on, actions, changed }) },
    tasks: { label: "Tasks", draw: () => taskList(sources.tasks, { warehouse: on.id }, actions.has("control_all_tasks"), changed) },
    credentials: { label: "Live credentials", draw: () => credentialList(sources.credentials, changed) },
  };
}
