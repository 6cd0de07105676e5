// SPDX-License-Identifier: Apache-2.0
// Tasks of a project and its warehouses, and the settings of their queues.

import { html, nothing } from "lit";

import { change, get } from "../core/api.js";
import { words } from "../core/format.js";
import { actionsOn, projectOf, projects, warehouses } from "../core/objects.js";
import { Page } from "../core/page.js";
import { setState } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { field, projectChoice, warehouseChoice } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import { empty } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import { STATES, taskList, tasksOf, tasksPath } from "../parts/tasks.js";

const QUEUES = ["soft_deletion", "tabular_purge", "expire_staged_table"];
const PROJECT_QUEUES = ["task_log_cleanup"];

export default class TasksPage extends Page {
  static properties = { ...Page.properties, notice: { state: true }, queues: { state: true } };

  constructor() {
    super();
    this.notice = "";
    /** @type {any[] | "loading" | null} */
    this.queues = null;
  }

  /** @param {import("../core/router.js").Route} from @param {import("../core/router.js").Route} to */
  same(from, to) {
    return super.same(from, to) && from.query.warehouse === to.query.warehouse && from.query.status === to.query.status;
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const [all, project] = await Promise.all([projects(), projectOf(query.project)]);
    if (project === null) {
      return { project };
    }
    const id = project["project-id"];
    const rows = [{ "warehouse-id": "", name: "the project itself" }, ...(await warehouses(id))];
    const row = rows.find((each) => each["warehouse-id"] === query.warehouse) ?? rows[1] ?? rows[0];
    const inside = row["warehouse-id"];
    const place = { project: id, ...(inside === "" ? {} : { warehouse: inside }) };
    const actions = await actionsOn(inside === "" ? { type: "project", id, name: "" } : { type: "warehouse", id: inside, name: row.name });
    this.queues = null;
    return { all, project: id, rows, row, place, actions, source: tasksOf(place, query.status ?? "") };
  }

  /** @param {any} data */
  body({ all, project, rows, row, place, actions, source }) {
    if (project === null) {
      return html`${title("Tasks")} ${empty("You see no project.")}`;
    }
    const inside = row["warehouse-id"];
    const may = actions.has(inside === "" ? "control_project_tasks" : "control_all_tasks");
    const choose = (/** @type {Event} */ event) => setState({ status: /** @type {HTMLSelectElement} */ (event.target).value });
    const status = this.route.query.status ?? "";
    return html`${title("Tasks", "Work that the gateway does later or again: deletion of files, clean-ups.")} ${projectChoice(all, project)} ${warehouseChoice(rows, inside)}
      <p role="status">${this.notice}</p>
      ${tabs({
        tasks: {
          label: "Tasks",
          draw: () => html`<p><label>State <select @change=${choose}>${["", ...STATES].map((each) => html`<option value=${each} ?selected=${each === status}>${each.toLowerCase() || "all"}</option>`)}</select></label></p>
            ${taskList(source, place, may, (notice) => this.changed(notice))}`,
        },
        queues: { label: "Queues", draw: () => this.drawQueues(place, inside === "" ? PROJECT_QUEUES : QUEUES, actions) },
      }, ["warehouse"])}
      ${asCode()}`;
  }

  /** @param {string} notice */
  changed(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {import("../parts/tasks.js").Place} place @param {string[]} names @param {Set<string>} actions */
  drawQueues(place, names, actions) {
    if (this.queues === null) {
      this.queues = "loading";
      Promise.all(names.map((name) => get(`${tasksPath(place)}/task-queue/${name}/config`, { project: place.project }))).then(
        (found) => (this.queues = found),
        (error) => this.fail(error),
      );
    }
    if (this.queues === "loading") {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    const may = actions.has("modify_task_queue_config");
    const missing = "needs “modify task queue config”; ask an administrator";
    return html`<table>
      <caption>Queues</caption>
      <thead><tr><th scope="col">Queue</th><th scope="col">A worker without a sign of life counts as dead after</th><th scope="col">Keeps</th><th scope="col">Runs every</th><th scope="col">Action</th></tr></thead>
      <tbody>
        ${this.queues.map((each, at) => {
          const config = each["queue-config"];
          const seconds = each["max-seconds-since-last-heartbeat"];
          return html`<tr>
            <th scope="row">${words(names[at])}</th><td>${seconds === null || seconds === undefined ? "the default" : `${seconds} seconds`}</td>
            <td>${config["retention-period"] ?? nothing}</td><td>${config["cleanup-period"] ?? nothing}</td>
            <td><button type="button" class="small" ?disabled=${!may} title=${may ? "" : missing} @click=${() => this.configure(place, names[at], each)}>Change …</button></td>
          </tr>`;
        })}
      </tbody>
    </table>`;
  }

  /** @param {import("../parts/tasks.js").Place} place @param {string} name @param {any} now */
  configure(place, name, now) {
    const config = now["queue-config"];
    const cleans = name === "task_log_cleanup";
    const texts = { help: "An ISO 8601 duration, such as P90D. Empty: the default." };
    void openDialog({
      title: `Queue ${words(name)}`,
      action: "Save",
      body: html`${field({ name: "seconds", label: "A worker counts as dead after (seconds)", type: "number", value: String(now["max-seconds-since-last-heartbeat"] ?? ""), help: "Its task is then tried again. Empty: the default." })}
        ${cleans ? html`${field({ name: "retention-period", label: "Keep ended tasks for", value: config["retention-period"] ?? "", ...texts })} ${field({ name: "cleanup-period", label: "Run every", value: config["cleanup-period"] ?? "", ...texts })}` : nothing}`,
      submit: (values) => {
        const kept = ["retention-period", "cleanup-period"].filter((each) => cleans && values[each] !== "").map((each) => [each, values[each]]);
        const body = { "queue-config": { "queue-name": name, ...Object.fromEntries(kept) }, ...(values.seconds === "" ? {} : { "max-seconds-since-last-heartbeat": Number(values.seconds) }) };
        return change("POST", `${tasksPath(place)}/task-queue/${name}/config`, body, { project: place.project });
      },
    }).then((done) => done && this.changed("The queue was changed."));
  }
}
