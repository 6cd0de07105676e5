// SPDX-License-Identifier: Apache-2.0
// Care for the objects of a warehouse: changes that wait for approval, dropped objects, protection against drops.

import { LitElement, html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { words } from "../core/format.js";
import { managementPath } from "../core/objects.js";
import { current, setState } from "../core/router.js";
import { openDialog } from "./dialog.js";
import { problem } from "./problem.js";
import { badge, when } from "./small.js";
import "./long-list.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

const STATUSES = ["pending", "approved", "rejected", "used", "lapsed"];

/** What the parts of this file share: the object, a list that is read again after a change, and a notice. */
class Care extends LitElement {
  static properties = { on: { attribute: false }, status: {}, source: { state: true }, notice: { state: true } };

  constructor() {
    super();
    /** @type {Thing | null} */
    this.on = null;
    this.status = "";
    /** @type {import("./long-list.js").Source | null} */
    this.source = null;
    this.notice = "";
  }

  createRenderRoot() {
    return this;
  }

  get object() {
    return /** @type {Thing} */ (this.on);
  }

  /** Return the path and the member of the list. @returns {[string, string]} */
  list() {
    return ["", ""];
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("on") || changed.has("status")) {
      this.refresh();
    }
  }

  refresh() {
    const [list, member] = this.list();
    this.source = async (token) => {
      const answer = await get(list + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)));
      return { rows: answer[member], next: answer["next-page-token"] ?? null };
    };
  }

  /** @param {string} notice */
  changed(notice) {
    this.notice = notice;
    this.refresh();
  }
}

/** Changes of a warehouse that a verifier left to an approver. */
class ChangeTickets extends Care {
  list() {
    return /** @type {[string, string]} */ ([`${managementPath(this.object)}/change-tickets?pageSize=100${this.status === "all" ? "" : "&status=" + this.status}`, "change-tickets"]);
  }

  columns() {
    return [
      { label: "Change", width: "minmax(11rem, 2fr)", draw: (/** @type {any} */ row) => html`<button type="button" class="small" @click=${() => this.decide(row, null)}>${words(row.kind)} ${row.name}</button>` },
      { label: "By", draw: (/** @type {any} */ row) => html`<code>${row.principal}</code>` },
      { label: "Because", draw: (/** @type {any} */ row) => html`<span title=${row.reasons.join("\n")}>${row.reasons.join("; ")}</span>` },
      { label: "Status", width: "7rem", draw: (/** @type {any} */ row) => badge(row.status, row.status === "pending" ? "warn" : "plain") },
      { label: "Made", draw: (/** @type {any} */ row) => when(row["created-at"]) },
      { label: "Ends", draw: (/** @type {any} */ row) => when(row["expires-at"]) },
      {
        label: "Decide",
        width: "11rem",
        draw: (/** @type {any} */ row) =>
          row.status !== "pending"
            ? html`${row["decided-by"] ?? nothing}`
            : html`<button type="button" class="small" @click=${() => this.decide(row, "approve")}>Approve</button>
                <button type="button" class="small" @click=${() => this.decide(row, "reject")}>Reject</button>`,
      },
    ];
  }

  /** Show a change, and decide about it. @param {any} row @param {"approve" | "reject" | null} verb */
  async decide(row, verb) {
    const ticket = managementPath(this.object) + path`/change-tickets/${row.id}`;
    /** @type {unknown} */
    let content;
    try {
      const whole = await get(ticket);
      const updates = whole.change.updates ?? [whole.change];
      content = html`${updates.map((/** @type {any} */ each) => html`<details open><summary>${words(each.action ?? "change")}</summary><pre tabindex="0">${JSON.stringify(each, null, 2)}</pre></details>`)}`;
    } catch (error) {
      content = problem(error);
    }
    const done = await openDialog({
      title: `${verb === null ? "Change" : verb === "approve" ? "Approve the change" : "Reject the change"}: ${words(row.kind)} ${row.name}`,
      action: verb === null ? "Close" : verb === "approve" ? "Approve" : "Reject",
      danger: verb === "reject",
      body: html`<p>By <code>${row.principal}</code>. ${row.reasons.join("; ")}</p>
        ${content}
        ${row.comment ? html`<p>${row["decided-by"]}: “${row.comment}”</p>` : nothing}
        ${verb === null
          ? nothing
          : html`<p>${verb === "approve" ? "The next run of the statement succeeds." : "The statement is refused with your comment."}</p>
              <p><label>Comment <input name="comment" maxlength="900" ?required=${verb === "reject"} autocomplete="off" /></label></p>`}`,
      submit: async ({ comment }) => (verb === null ? undefined : change("POST", `${ticket}/${verb}`, comment ? { comment } : {})),
    });
    if (done && verb !== null) {
      this.changed(verb === "approve" ? "The change was approved." : "The change was rejected.");
    }
  }

  render() {
    return html`<form class="question">
        <label>Status
          <select name="status" @change=${(/** @type {Event} */ event) => setState({ status: /** @type {HTMLSelectElement} */ (event.target).value })}>
            ${[...STATUSES, "all"].map((each) => html`<option value=${each} ?selected=${each === this.status}>${each}</option>`)}
          </select></label>
      </form>
      <p role="status">${this.notice}</p>
      <lg-long-list label="Changes that need approval" .source=${this.source} .columns=${this.columns()} .empty=${`No change that you may see is ${this.status === "all" ? "recorded" : this.status}.`}></lg-long-list>`;
  }
}

/** Dropped objects of a warehouse that still can be restored. */
class Deleted extends Care {
  list() {
    return /** @type {[string, string]} */ ([`${managementPath(this.object)}/deleted-tabulars?pageSize=100`, "tabulars"]);
  }

  columns() {
    return [
      { label: "Object", width: "minmax(11rem, 2fr)", draw: (/** @type {any} */ row) => html`${row.typ.replaceAll(/[_-]/g, " ")} ${[...row.namespace, row.name].join(".")}` },
      { label: "Dropped", draw: (/** @type {any} */ row) => when(row["deleted-at"]) },
      { label: "Can be restored until", draw: (/** @type {any} */ row) => when(row["expiration-date"], "no end") },
      { label: "Change", width: "7rem", draw: (/** @type {any} */ row) => html`<button type="button" class="small" aria-label="Undrop ${row.name}" @click=${() => this.undrop(row)}>Undrop</button>` },
    ];
  }

  /** @param {any} row */
  async undrop(row) {
    const name = [...row.namespace, row.name].join(".");
    const done = await openDialog({
      title: `Undrop ${name}`,
      action: "Undrop",
      body: html`<p>The object returns with its data and its grants. Otherwise it is deleted for good ${row["expiration-date"] ? when(row["expiration-date"]) : "when its time ends"}.</p>`,
      submit: () => change("POST", `${managementPath(this.object)}/deleted-tabulars/undrop`, { targets: [{ type: row.typ.replaceAll("_", "-"), id: row.id }] }),
    });
    if (done) {
      this.changed(`${name} was restored.`);
    }
  }

  render() {
    return html`<p role="status">${this.notice}</p>
      <lg-long-list label="Dropped objects" .source=${this.source} .columns=${this.columns()} .empty=${"No dropped object that you may see can be restored."}></lg-long-list>`;
  }
}

/** The protection of an object against drops; it is read when it is opened. */
class Protection extends LitElement {
  static properties = { on: { attribute: false }, state: { state: true }, failure: { state: true } };

  constructor() {
    super();
    /** @type {(Thing & {row?: any}) | null} */
    this.on = null;
    /** @type {boolean | null} */
    this.state = null;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {() => Promise<boolean>} run */
  async attempt(run) {
    try {
      this.state = await run();
      this.failure = null;
    } catch (error) {
      this.failure = error;
    }
  }

  /** @param {Event} event */
  opened(event) {
    const on = /** @type {Thing & {row?: any}} */ (this.on);
    if (/** @type {HTMLDetailsElement} */ (event.currentTarget).open && this.state === null) {
      void this.attempt(async () => (on.type === "warehouse" ? on.row.protected : (await get(`${managementPath(on)}/protection`)).protected));
    }
  }

  set() {
    const on = /** @type {Thing & {row?: any}} */ (this.on);
    const wanted = !this.state;
    void this.attempt(async () => (await change("POST", `${managementPath(on)}/protection`, { protected: wanted })).protected);
  }

  render() {
    return html`<details @toggle=${this.opened}>
      <summary>Protection against drops</summary>
      ${this.failure === null ? nothing : problem(this.failure)}
      ${this.state === null
        ? nothing
        : html`<p role="status">${this.state ? "A drop is refused until the protection is removed." : "A principal with the right to drop it can drop it."}</p>
            <button type="button" id="protect" @click=${this.set}>${this.state ? "Remove the protection" : "Protect"}</button>`}
    </details>`;
  }
}

customElements.define("lg-change-tickets", ChangeTickets);
customElements.define("lg-deleted", Deleted);
customElements.define("lg-protection", Protection);

/** Return the tabs of a warehouse for its steward, for `tabs`. @param {Thing} on */
export function stewardTabs(on) {
  return {
    changes: { label: "Changes", draw: () => html`<lg-change-tickets .on=${on} status=${current().query.status ?? "pending"}></lg-change-tickets>` },
    deleted: { label: "Deleted", draw: () => html`<lg-deleted .on=${on}></lg-deleted>` },
  };
}
