// SPDX-License-Identifier: Apache-2.0
// Break-glass: take rights in an emergency, confirm and end activations. Auditors review them on a page of their own.

import { html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { Page } from "../core/page.js";
import { setState } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { privilegesIn } from "../parts/grant-dialog.js";
import { asCode, title } from "../parts/heading.js";
import { objectField, objectLink, objectOf } from "../parts/object-field.js";
import { badge, principal, when } from "../parts/small.js";
import "../parts/long-list.js";

const PATH = "/management/v1/access/break-glass";
const STATUSES = ["active", "pending", "ended", "reviewed", "lapsed"];
const PRIVILEGES = ["describe", "select", "modify"];

export default class BreakGlassPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
    /** @type {Map<string, import("../parts/long-list.js").Source>} */
    this.sources = new Map();
  }

  async load() {
    this.sources = new Map();
    return { me: await get("/management/v1/whoami") };
  }

  /** @param {string} status */
  source(status) {
    const list = `${PATH}?pageSize=100${status === "all" ? "" : "&status=" + status}`;
    if (!this.sources.has(list)) {
      this.sources.set(list, async (token) => {
        const answer = await get(list + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)));
        return { rows: answer.activations, next: answer["next-page-token"] ?? null };
      });
    }
    return this.sources.get(list);
  }

  /** @param {any} data */
  body({ me }) {
    const status = this.route.query.status ?? "active";
    return html`${title("Break-glass", "Take rights alone for at most an hour. Each activation raises an alert, and another principal reviews it. With time for an approval, request access instead.")}
      <p role="status">${this.notice}</p>
      <div class="question">
        <button type="button" class="danger" @click=${this.activate}>Activate …</button>
        <label>Status
          <select name="status" @change=${(/** @type {Event} */ event) => setState({ status: /** @type {HTMLSelectElement} */ (event.target).value })}>
            ${[...STATUSES, "all"].map((each) => html`<option value=${each} ?selected=${each === status}>${each}</option>`)}
          </select></label>
      </div>
      <lg-long-list label="Activations" .source=${this.source(status)} .columns=${this.columns(me)} .empty=${`No activation that you may see is ${status === "all" ? "recorded" : status}.`}></lg-long-list>
      ${asCode()}`;
  }

  /** @param {any} me */
  columns(me) {
    return [
      { label: "Object", width: "minmax(11rem, 2fr)", draw: (/** @type {any} */ row) => objectLink(row.object, row.name) },
      { label: "Privileges", draw: (/** @type {any} */ row) => row.privileges.join(", ") },
      { label: "By", draw: (/** @type {any} */ row) => principal(row.principal) },
      { label: "Reason", draw: (/** @type {any} */ row) => html`<span title=${row.reason}>${row.reason}</span>` },
      { label: "Status", width: "7rem", draw: (/** @type {any} */ row) => badge(row.status, row.status === "active" ? "bad" : row.status === "pending" ? "warn" : "plain") },
      { label: "Ends", draw: (/** @type {any} */ row) => when(row["ends-at"] ?? row["ended-at"]) },
      {
        label: "Change",
        width: "10rem",
        draw: (/** @type {any} */ row) =>
          html`${row.status === "pending" && row.principal.user !== me.id ? html`<button type="button" class="small" @click=${() => this.decide(row, "confirm")}>Confirm</button>` : nothing}
          ${row.status === "pending" || row.status === "active" ? html`<button type="button" class="small" @click=${() => this.decide(row, "end")}>End</button>` : nothing}`,
      },
    ];
  }

  activate() {
    return openDialog({
      title: "Activate break-glass",
      action: "Activate",
      danger: true,
      body: html`<p>The security team is alerted at once, and all that you do on the object is marked in the audit.</p>
        ${objectField(this.route.query.on ?? "")}
        <fieldset class="choices"><legend>Privileges</legend>
          ${PRIVILEGES.map((each) => html`<label class="choice"><input type="checkbox" name="privilege:${each}" /> <span>${each}</span></label>`)}
        </fieldset>
        <p><label>Minutes <input name="minutes" type="number" min="15" max="60" value="30" required /></label></p>
        <p><label>Reason <input name="reason" required maxlength="900" autocomplete="off" /></label></p>
        <label class="choice"><input type="checkbox" name="second" /> <span>A second person must confirm it first</span></label>`,
      submit: async (values) => {
        const object = await objectOf(values.object, this.route.query.project);
        const more = values.second === undefined ? {} : { "second-person": true };
        const made = await change("POST", PATH, { object, privileges: privilegesIn(values), reason: values.reason, minutes: Number(values.minutes), ...more });
        this.notice = made.status === "pending" ? "Another person must confirm the activation." : "The activation is in force.";
        setState({ status: made.status });
        void this.reload();
      },
    });
  }

  /** @param {any} row @param {"confirm" | "end"} verb */
  decide(row, verb) {
    const text = verb === "confirm" ? "gets these rights now" : "loses these rights now. Credentials for files that were issued before stay valid until they expire";
    return openDialog({
      title: verb === "confirm" ? "Confirm the activation" : "End the activation",
      action: verb === "confirm" ? "Confirm" : "End",
      danger: verb === "end",
      body: html`<p>${principal(row.principal)} ${text}: ${row.privileges.join(", ")} on ${row.name}.</p>`,
      submit: async () => {
        await change("POST", PATH + path`/${row.id}/` + verb);
        this.notice = verb === "confirm" ? "The activation was confirmed." : "The activation has ended.";
        void this.reload();
      },
    });
  }
}
