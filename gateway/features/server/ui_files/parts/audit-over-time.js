// SPDX-License-Identifier: Apache-2.0
// Decisions over time by outcome, and how far the audit log is sealed.

import { LitElement, html, nothing } from "lit";

import { ask, get } from "../core/api.js";
import { count } from "../core/format.js";
import { copied, badge, when } from "./small.js";
import { problem } from "./problem.js";
import "./chart.js";

const HOUR_MS = 3_600_000;
/** The longest range that is counted by hours; longer ones are counted by days. */
const HOURS_MS = 7 * 24 * HOUR_MS;
/** @type {Record<string, string>} */
const COLOURS = { allowed: "--good", forbidden: "--bad", hidden: "--warn", unavailable: "--quiet", unauthenticated: "--accent" };

/** Return the times of all periods, and the counts of each outcome in them. @param {any} answer */
function linesOf(answer) {
  const step = answer.interval === "hour" ? HOUR_MS : 24 * HOUR_MS;
  const first = Math.floor(new Date(answer.since).getTime() / step) * step;
  const times = [];
  for (let at = first; at < new Date(answer.until).getTime(); at += step) {
    times.push(new Date(at).toISOString());
  }
  const found = [...new Set(answer.counts.map((/** @type {any} */ each) => each.outcome))];
  const lines = found.map((outcome) => {
    const values = times.map(() => 0);
    for (const each of answer.counts) {
      const at = Math.floor((new Date(each.at).getTime() - first) / step);
      if (each.outcome === outcome && at >= 0 && at < values.length) {
        values[at] += each.count;
      }
    }
    return { label: String(outcome), colour: COLOURS[String(outcome)] ?? "--text", values };
  });
  return { times, lines };
}

/** Return the operations with the most refusals. @param {any[]} counts */
function refused(counts) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const each of counts.filter((one) => one.outcome === "forbidden" || one.outcome === "hidden")) {
    sums.set(each.operation, (sums.get(each.operation) ?? 0) + each.count);
  }
  return [...sums].sort((one, other) => other[1] - one[1]).slice(0, 10);
}

/** Draws the counts of the records that `filters` select. */
class OverTime extends LitElement {
  static properties = { filters: { attribute: false }, answer: { state: true }, sealed: { state: true }, failure: { state: true } };

  constructor() {
    super();
    /** @type {any} */
    this.filters = {};
    /** @type {any} */
    this.answer = null;
    /** @type {any} */
    this.sealed = null;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  /** @param {Map<string, unknown>} changed */
  willUpdate(changed) {
    if (changed.has("filters")) {
      void this.read();
    }
  }

  async read() {
    const { object, text, "request-id": request, ...filters } = this.filters;
    const length = (filters.until === undefined ? Date.now() : new Date(filters.until).getTime()) - new Date(filters.since).getTime();
    try {
      this.answer = await ask("/management/v1/audit/statistics", { ...filters, interval: length > HOURS_MS ? "day" : "hour" });
      this.failure = null;
    } catch (error) {
      this.failure = error;
      return;
    }
    // Auditors of a project or a warehouse do not see the state of the whole log.
    this.sealed = await get("/management/v1/audit/integrity").catch(() => null);
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.answer === null) {
      return html`<p class="loading" role="status">Counting …</p>`;
    }
    const { times, lines } = linesOf(this.answer);
    const most = refused(this.answer.counts);
    return html`<p class="quiet">Filters of object, reason and request do not apply to counts.</p>
      ${lines.length === 0 ? html`<p class="empty">No record in this time.</p>` : html`<lg-chart label="Decisions by outcome" .times=${times} .lines=${lines}></lg-chart>`}
      ${most.length === 0
        ? nothing
        : html`<table>
            <caption>Most refused operations</caption>
            <thead><tr><th scope="col">Operation</th><th scope="col">Refusals</th></tr></thead>
            <tbody>${most.map(([name, number]) => html`<tr><th scope="row">${name}</th><td>${count(number)}</td></tr>`)}</tbody>
          </table>`}
      ${this.sealed === null ? nothing : this.seal(this.sealed)}`;
  }

  /** @param {any} sealed */
  seal(sealed) {
    const state = sealed.fault ? badge("fault", "bad") : sealed.block ? badge("last block unchanged", "good") : badge("not sealed yet", "warn");
    return html`<h2>Integrity ${state}</h2>
      <dl class="facts">
        <dt>Last block</dt><dd>${sealed.block ?? "none"}, sealed ${when(sealed["sealed-at"])}</dd>
        <dt>Newest sealed record</dt><dd>${when(sealed["newest-record-at"])}</dd>
        <dt>Records not sealed yet</dt><dd>${count(sealed.unsealed)}</dd>
        <dt>Anchor</dt><dd>${sealed.anchor ? copied(sealed.anchor, "the anchor") : "none"}</dd>
        ${sealed["removed-until"] ? html`<dt>Removed until</dt><dd>${when(sealed["removed-until"])}</dd>` : nothing}
        ${sealed.fault ? html`<dt>Fault</dt><dd>${sealed.fault}</dd>` : nothing}
      </dl>
      <p class="quiet">This verifies the records of the last block. <code>lakegate audit verify</code> verifies the whole chain against an anchor that you kept.</p>`;
  }
}

customElements.define("lg-audit-over-time", OverTime);
