// SPDX-License-Identifier: Apache-2.0
// The audit log: search by time, actor, operation, outcome and object. The address holds the question, so that it can be
// kept as a bookmark and shared.

import { html, nothing } from "lit";

import { ask } from "../core/api.js";
import { csv, download } from "../core/csv.js";
import { words } from "../core/format.js";
import { projectOf } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address, current, setState } from "../core/router.js";
import { openDialog } from "../parts/dialog.js";
import { asCode, title } from "../parts/heading.js";
import { badge, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";
import "../parts/audit-over-time.js";
import "../parts/break-glass-reviews.js";
import "../parts/long-list.js";

const DAY_MS = 86_400_000;
/** Names in the address that a tab keeps. */
const FILTERS = ["since", "until", "actor", "operation", "object", "text", "request", "on", "outcome"];
const OUTCOMES = ["allowed", "hidden", "forbidden", "unavailable", "unauthenticated"];
/** @type {Record<string, "good" | "bad" | "warn">} */
const KINDS = { allowed: "good", hidden: "bad", forbidden: "bad", unavailable: "warn", unauthenticated: "warn" };
/** Operations that read the rows of a table, or give the keys to them. */
const READS = "load_table,vend_credentials,sign_request";

/** Prepared questions: text and state of the address. @type {[string, Record<string, string>][]} */
const QUESTIONS = [
  ["Refusals of the last day", { outcome: "forbidden,hidden" }],
  ["Reads of tables and keys", { operation: READS, outcome: "allowed" }],
  ["Requests without a valid login", { outcome: "unauthenticated" }],
  ["Decisions during an outage", { outcome: "unavailable" }],
];

/** @param {string} [text] */
function split(text = "") {
  return text.split(",").map((each) => each.trim()).filter((each) => each !== "");
}

/** Return a time of the address; null if it has none, or no valid one. @param {string | undefined} text */
function timeOf(text) {
  const time = new Date(text ?? "");
  return Number.isNaN(time.getTime()) ? null : time;
}

/** Return the filters of a question. @param {Record<string, string>} query */
function filtersOf(query) {
  const until = timeOf(query.until);
  const since = timeOf(query.since) ?? new Date((until?.getTime() ?? Date.now()) - DAY_MS);
  const [type, ...rest] = (query.object ?? "").split(":");
  const id = rest.join(":");
  return {
    since: since.toISOString(),
    ...(until === null ? {} : { until: until.toISOString() }),
    ...(query.on === "project" && query.project ? { "project-id": query.project } : {}),
    ...(query.on?.startsWith("warehouse:") ? { "warehouse-id": query.on.slice("warehouse:".length) } : {}),
    ...(query.actor ? { actor: query.actor } : {}),
    ...(query.operation ? { operations: split(query.operation) } : {}),
    ...(query.outcome ? { outcomes: split(query.outcome) } : {}),
    ...(type && id ? { object: { type, id } } : {}),
    ...(query.request ? { "request-id": query.request } : {}),
    ...(query.text ? { text: query.text } : {}),
  };
}

/** Return a source of records. @param {ReturnType<typeof filtersOf>} filters @returns {import("../parts/long-list.js").Source} */
function recordsOf(filters) {
  return async (token) => {
    const answer = await ask("/management/v1/audit/search", { ...filters, "page-size": 200, ...(token === null ? {} : { "page-token": token }) });
    return { rows: answer.records, next: answer["next-page-token"] ?? null };
  };
}

/** @param {any} record */
function openRecord(record) {
  void openDialog({
    title: "Audit record",
    action: "Close",
    submit: async () => undefined,
    body: html`<pre tabindex="0">${JSON.stringify(record, null, 2)}</pre>`,
  });
}

/** @param {any} record */
function objectsOf(record) {
  return record.decisions.flatMap((/** @type {any} */ each) => each.objects ?? []).map((/** @type {any} */ each) => `${each.type} ${each.name ?? each.id ?? ""}`);
}

/** @type {import("../parts/long-list.js").Column[]} */
const COLUMNS = [
  { label: "Time", draw: (each) => when(each.at), width: "minmax(15rem, 1.3fr)" },
  { label: "Actor", draw: (each) => each.actor.id },
  { label: "Operation", draw: (each) => each.decisions.map((/** @type {any} */ one) => words(one.operation)).join(", ") },
  { label: "Object", draw: (each) => objectsOf(each).join(", "), width: "minmax(12rem, 2fr)" },
  { label: "Outcome", draw: (each) => each.decisions.map((/** @type {any} */ one) => badge(one.outcome, KINDS[one.outcome])) },
  { label: "Record", draw: (each) => html`<button type="button" class="small" @click=${() => openRecord(each)}>Open</button>`, width: "6rem" },
];

export default class AuditPage extends Page {
  /** Each question is another page. @param {import("../core/router.js").Route} from @param {import("../core/router.js").Route} to */
  same(from, to) {
    return super.same(from, to) && JSON.stringify(from.query) === JSON.stringify(to.query);
  }

  /** @param {import("../core/router.js").Route} route */
  async load({ query }) {
    const project = await projectOf(query.project);
    const filters = filtersOf({ ...query, project: project?.["project-id"] ?? "" });
    return { filters, source: recordsOf(filters), query };
  }

  /** @param {SubmitEvent} event */
  search(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const outcome = form.getAll("outcome").join(",");
    const values = Object.fromEntries([...form.entries()].map(([name, value]) => [name, String(value).trim()]));
    setState({ ...values, outcome });
  }

  /** @param {any} data */
  body({ source, filters, query }) {
    const chosen = split(query.outcome);
    const field = (/** @type {string} */ name, /** @type {string} */ label, type = "text", hint = "") =>
      html`<label>${label} <input name=${name} type=${type} .value=${query[name] ?? ""} placeholder=${hint} autocomplete="off" /></label>`;
    return html`${title("Audit", "Who did what, and what was refused. Without times: the last day. The address holds the question: keep it as a bookmark.")}
      <nav aria-label="Prepared questions" class="questions">${QUESTIONS.map(([text, state]) => html`<a href=${address("audit", [], state)}>${text}</a>`)}</nav>
      <form class="question" @submit=${this.search}>
        ${field("since", "From", "datetime-local")} ${field("until", "To", "datetime-local")} ${field("actor", "Actor", "text", "oidc~bob")}
        ${field("operation", "Operations", "text", "load_table, drop_table")} ${field("object", "Object", "text", "table:id")} ${field("text", "Reason contains")}
        ${field("request", "Request id")}
        <label>About
          <select name="on">
            <option value="" ?selected=${!query.on}>the server</option>
            <option value="project" ?selected=${query.on === "project"}>this project</option>
            ${query.on?.startsWith("warehouse:") ? html`<option value=${query.on} selected>one warehouse</option>` : nothing}
          </select>
        </label>
        <fieldset>
          <legend>Outcome</legend>
          ${OUTCOMES.map((each) => html`<label class="inline"><input type="checkbox" name="outcome" value=${each} ?checked=${chosen.includes(each)} /> ${each}</label>`)}
        </fieldset>
        <button type="submit" class="primary">Search</button>
      </form>
      ${tabs(
        {
          records: { label: "Records", draw: () => this.records(source) },
          time: { label: "Over time and integrity", draw: () => html`<lg-audit-over-time .filters=${filters}></lg-audit-over-time>` },
          reviews: { label: "Break-glass reviews", draw: () => html`<lg-break-glass-reviews></lg-break-glass-reviews>` },
        },
        FILTERS,
      )}
      ${asCode()}`;
  }

  /** @param {import("../parts/long-list.js").Source} source */
  records(source) {
    const save = () => {
      const list = /** @type {any} */ (this.querySelector("lg-long-list"));
      const rows = list.rows.map((/** @type {any} */ each) => [
        each.at, each.actor.id, each.decisions.map((/** @type {any} */ one) => one.operation).join(" "), objectsOf(each).join(" "),
        each.decisions.map((/** @type {any} */ one) => one.outcome).join(" "), each.id, each["request-id"], each["client-address"],
      ]);
      download("audit.csv", csv(["at", "actor", "operations", "objects", "outcomes", "id", "request-id", "client-address"], rows));
    };
    return html`<p><button type="button" @click=${save}>Download the shown records as CSV</button></p>
      <lg-long-list label="Audit records" .source=${source} .columns=${COLUMNS} .empty=${"No record meets these filters."}></lg-long-list>`;
  }
}

/** Return the address of the question who read a table. @param {import("../core/objects.js").Thing} on */
export function readersOf(on) {
  return address("audit", [], { project: current().query.project, on: `warehouse:${on.warehouse}`, object: `${on.type}:${on.id}`, operation: READS });
}
