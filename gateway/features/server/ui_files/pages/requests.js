// SPDX-License-Identifier: Apache-2.0
// Access requests: my own, those that I can decide, and one request with all of its objects.

import { html, nothing } from "lit";

import { change, get, path } from "../core/api.js";
import { duration } from "../core/format.js";
import { Page } from "../core/page.js";
import { pageOf } from "../core/objects.js";
import { address, go, setState } from "../core/router.js";
import { typed } from "../core/role-names.js";
import { openDialog } from "../parts/dialog.js";
import { endField, secondsOf } from "../parts/end-field.js";
import { privilegesIn } from "../parts/grant-dialog.js";
import { asCode, title } from "../parts/heading.js";
import { answered, objectField, objectLink, objectOf, opening } from "../parts/object-field.js";
import { openRequest } from "../parts/request-dialog.js";
import { badge, copied, principal, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import "../parts/long-list.js";

const REQUESTS = "/management/v1/access/requests";
const STATUSES = ["pending", "approved", "denied", "withdrawn", "expired", "ended"];
/** @type {Record<string, "good" | "bad" | "warn">} */
const COLOURS = { pending: "warn", approved: "good", denied: "bad" };

/** @param {string} status */
function state(status) {
  return badge(status, COLOURS[status]);
}

export default class RequestsPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
    /** @type {Map<string, import("../parts/long-list.js").Source>} */
    this.sources = new Map();
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ parts }) {
    this.sources = new Map();
    const id = parts[0];
    const [me, request] = await Promise.all([get("/management/v1/whoami"), id === undefined ? null : get(REQUESTS + path`/${decodeURIComponent(id)}`)]);
    return { me, request };
  }

  /** @param {any} data */
  body({ me, request }) {
    return html`${request === null ? this.lists() : this.one(request, request.principal.user === me.id)}
      ${asCode()}`;
  }

  lists() {
    return html`${title("Access requests", "Ask for a privilege that ends by itself. A principal that may grant it decides.")}
      <p role="status">${this.notice}</p>
      ${tabs({
        mine: { label: "Mine", draw: () => this.list(true) },
        inbox: { label: "To decide", draw: () => this.list(false) },
        new: { label: "New", draw: () => this.start() },
      })}`;
  }

  /** @param {boolean} mine */
  list(mine) {
    const status = this.route.query.status ?? (mine ? "" : "pending");
    const list = `${REQUESTS}?mine=${mine}&pageSize=100${status === "" || status === "all" ? "" : "&status=" + status}`;
    if (!this.sources.has(list)) {
      this.sources.set(list, async (token) => {
        const answer = await get(list + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)));
        return { rows: answer["access-requests"], next: answer["next-page-token"] ?? null };
      });
    }
    const columns = [
      { label: "Object", width: "minmax(12rem, 2fr)", draw: (/** @type {any} */ row) => html`<a href=${address("requests", [row.bundle ?? row.id])}>${row.object.type.replaceAll("_", " ")} ${row.name}</a>` },
      { label: "Privileges", draw: (/** @type {any} */ row) => row.privileges.join(", ") },
      { label: "Status", width: "8rem", draw: (/** @type {any} */ row) => state(row.status) },
      ...(mine ? [] : [{ label: "Of", draw: (/** @type {any} */ row) => principal(row.principal) }]),
      { label: "Reason", draw: (/** @type {any} */ row) => html`<span title=${row.reason}>${row.reason}</span>` },
      { label: "Made", draw: (/** @type {any} */ row) => when(row["created-at"]) },
      { label: "Ends", draw: (/** @type {any} */ row) => when(row["ends-at"]) },
    ];
    return html`<form class="question">
        <label>Status
          <select name="status" @change=${(/** @type {Event} */ event) => setState({ status: /** @type {HTMLSelectElement} */ (event.target).value })}>
            <option value="all">all</option>
            ${STATUSES.map((each) => html`<option value=${each} ?selected=${each === status}>${each}</option>`)}
          </select></label>
      </form>
      <lg-long-list label="Access requests" .source=${this.sources.get(list)} .columns=${columns}
        .empty=${mine ? "You requested nothing with this status. Open “New”, or an object's page." : "Nothing with this status waits for you."}></lg-long-list>`;
  }

  start() {
    return html`<form class="question" @submit=${this.begin}>
      <div>${objectField(this.route.query.on ?? "")}</div>
      <button type="submit" class="primary">Choose privileges</button>
    </form>`;
  }

  /** @param {SubmitEvent} event */
  async begin(event) {
    event.preventDefault();
    const text = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("object"));
    try {
      const made = await openRequest(await objectOf(text, this.route.query.project), text);
      if (made !== null) {
        go(address("requests", [made.bundle ?? made.id]));
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {any} request @param {boolean} mine */
  one(request, mine) {
    const items = request.items ?? [request];
    return html`${title(`Access request: ${items.map((/** @type {any} */ each) => each.name).join(", ")}`)}
      <p>${state(request.status)} ${copied(request.bundle ?? request.id, "the id")} <a href=${address("requests", [], { tab: mine ? undefined : "inbox" })}>All requests</a></p>
      <p role="status">${this.notice}</p>
      <dl class="facts">
        <dt>Requester</dt><dd>${principal(request.principal)}</dd>
        <dt>Reason</dt><dd>${request.reason}</dd>
        <dt>Made</dt><dd>${when(request["created-at"])}</dd>
        <dt>Length</dt><dd>${duration(request["duration-seconds"])} from the approval</dd>
        ${request.status === "pending" ? html`<dt>Waits until</dt><dd>${when(request["expires-at"])}</dd>` : nothing}
        ${request["decided-by"] ? html`<dt>Decided</dt><dd>by <code>${request["decided-by"]}</code>, ${when(request["decided-at"])}${request.comment ? html`: “${request.comment}”` : nothing}</dd>` : nothing}
      </dl>
      <table>
        <caption>Objects</caption>
        <thead><tr><th scope="col">Object</th><th scope="col">Privileges</th><th scope="col">Status</th><th scope="col">An approval opens</th><th scope="col">Granted</th><th scope="col">Explain</th></tr></thead>
        <tbody>
          ${items.map(
            (/** @type {any} */ each) => html`<tr>
              <th scope="row">${objectLink(each.object, each.name)}</th>
              <td>${each.privileges.join(", ")}</td><td>${state(each.status)}</td><td>${opening(each.opens)}</td>
              <td>${each.granted?.length ? html`${each.granted.join(", ")} until ${when(each["ends-at"])}` : "—"}</td>
              <td><a href=${pageOf(answered(each.object, each.name), { tab: "why", who: typed(request.principal) })}>Why, now</a></td>
            </tr>`,
          )}
        </tbody>
      </table>
      <p class="buttons">${this.actions(request, items, mine)}</p>`;
  }

  /** @param {any} request @param {any[]} items @param {boolean} mine */
  actions(request, items, mine) {
    const waits = items.some((each) => each.status === "pending");
    const runs = items.some((each) => each.status === "approved");
    const button = (/** @type {string} */ label, /** @type {() => unknown} */ run, kind = "") => html`<button type="button" class=${kind} @click=${run}>${label}</button>`;
    return html`${waits && !mine ? html`${button("Approve …", () => this.approve(request, items), "primary")}${button("Deny …", () => this.deny(request))}` : nothing}
      ${waits && mine ? html`${button("Withdraw", () => this.post(request, "withdraw", "The request was withdrawn."))}${button("Remind", () => this.post(request, "remind", "The request was announced again."))}` : nothing}
      ${runs ? button("End access …", () => this.end(request)) : nothing}`;
  }

  /** @param {any} request @param {string} verb @param {string} notice @param {unknown} [body] */
  async send(request, verb, notice, body) {
    await change("POST", REQUESTS + path`/${request.bundle ?? request.id}/` + verb, body);
    this.notice = notice;
    void this.reload();
  }

  /** @param {any} request @param {string} verb @param {string} notice */
  async post(request, verb, notice) {
    try {
      await this.send(request, verb, notice);
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {any} request @param {any[]} items */
  approve(request, items) {
    const waiting = items.filter((each) => each.status === "pending");
    const single = waiting.length === 1;
    const choices = single
      ? waiting[0].privileges.map((/** @type {string} */ each) => ({ name: `privilege:${each}`, label: each }))
      : waiting.map((each) => ({ name: `request:${each.id}`, label: `${each.privileges.join(", ")} on ${each.object.type} ${each.name}` }));
    return openDialog({
      title: "Approve",
      action: "Approve",
      body: html`<fieldset class="choices"><legend>${single ? "Privileges" : "Objects"}</legend>
          ${choices.map((/** @type {any} */ each) => html`<label class="choice"><input type="checkbox" name=${each.name} checked /> <span>${each.label}</span></label>`)}
        </fieldset>
        ${waiting.map((each) => html`<p>${each.name}: opens ${opening(each.opens)}.</p>`)}
        ${endField({ days: request["duration-seconds"] / 86_400, never: false })}
        <p><label>Comment <input name="comment" maxlength="900" autocomplete="off" /></label></p>`,
      submit: (values) =>
        this.send(request, "approve", "The request was approved.", {
          ...(single ? { privileges: privilegesIn(values) } : { requests: Object.keys(values).filter((each) => each.startsWith("request:")).map((each) => each.slice("request:".length)) }),
          "duration-seconds": Math.min(secondsOf(values), request["duration-seconds"]),
          ...(values.comment === "" ? {} : { comment: values.comment }),
        }),
    });
  }

  /** @param {any} request */
  deny(request) {
    return openDialog({
      title: "Deny",
      action: "Deny",
      danger: true,
      body: html`<p><label>Reason, which the requester sees <input name="reason" required maxlength="900" autocomplete="off" /></label></p>`,
      submit: ({ reason }) => this.send(request, "deny", "The request was denied.", { reason }),
    });
  }

  /** @param {any} request */
  end(request) {
    return openDialog({
      title: "End the access",
      action: "End access",
      danger: true,
      body: html`<p>The grants of this request are revoked now. A new access needs a new request. Credentials for files that were issued before stay valid until they expire.</p>`,
      submit: () => this.send(request, "end", "The access has ended."),
    });
  }
}
