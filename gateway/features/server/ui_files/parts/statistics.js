// SPDX-License-Identifier: Apache-2.0
// Requests of a project over time, and the operations that were called most.

import { LitElement, html, nothing } from "lit";

import { ask } from "../core/api.js";
import { count } from "../core/format.js";
import "./chart.js";
import { problem } from "./problem.js";
import { empty } from "./small.js";

const FAILED = 400;
const TOP = 15;

/** The statistics of the endpoints of a project. */
class EndpointStatistics extends LitElement {
  static properties = { project: {}, answer: { state: true }, failure: { state: true } };

  constructor() {
    super();
    this.project = "";
    /** @type {any} */
    this.answer = null;
    /** @type {unknown} */
    this.failure = null;
  }

  createRenderRoot() {
    return this;
  }

  connectedCallback() {
    super.connectedCallback();
    void this.read();
  }

  /** Read a page of hours: the newest one without a token. @param {string} [token] */
  async read(token) {
    try {
      const range = token === undefined ? {} : { "range-specifier": { type: "page-token", token } };
      this.answer = await ask("/management/v1/endpoint-statistics", { warehouse: { type: "all" }, ...range }, { project: this.project });
    } catch (error) {
      this.failure = error;
    }
  }

  render() {
    if (this.failure !== null) {
      return problem(this.failure);
    }
    if (this.answer === null) {
      return html`<p class="loading" role="status">Loading …</p>`;
    }
    const { timestamps, "called-endpoints": called } = this.answer;
    const turn = html`<p class="buttons">
      <button type="button" @click=${() => void this.read(this.answer["previous-page-token"])}>Earlier</button>
      <button type="button" @click=${() => void this.read(this.answer["next-page-token"])}>Later</button>
    </p>`;
    if (timestamps.length === 0) {
      return html`${empty("No request was counted in this time.", "Counts are written every few minutes.")} ${turn}`;
    }
    const sum = (/** @type {any[]} */ some) => some.reduce((whole, each) => whole + each.count, 0);
    const order = timestamps.map((/** @type {string} */ each, /** @type {number} */ at) => [each, called[at]]).sort((/** @type {any[]} */ one, /** @type {any[]} */ other) => (one[0] < other[0] ? -1 : 1));
    const lines = [
      { label: "all", colour: "--accent", values: order.map((/** @type {any[]} */ each) => sum(each[1])) },
      { label: "refused or failed", colour: "--bad", values: order.map((/** @type {any[]} */ each) => sum(each[1].filter((/** @type {any} */ one) => one["status-code"] >= FAILED))) },
    ];
    return html`<lg-chart label="Requests" .times=${order.map((/** @type {any[]} */ each) => each[0])} .lines=${lines}></lg-chart> ${turn} ${this.top(called.flat())}`;
  }

  /** @param {any[]} calls */
  top(calls) {
    /** @type {Map<string, {all: number, failed: number}>} */
    const found = new Map();
    for (const each of calls) {
      const row = found.get(each["http-route"]) ?? { all: 0, failed: 0 };
      row.all += each.count;
      row.failed += each["status-code"] >= FAILED ? each.count : 0;
      found.set(each["http-route"], row);
    }
    const rows = [...found].sort(([, one], [, other]) => other.all - one.all).slice(0, TOP);
    return html`<table>
      <caption>Operations</caption>
      <thead><tr><th scope="col">Operation</th><th scope="col">Requests</th><th scope="col">Refused or failed</th></tr></thead>
      <tbody>${rows.map(([route, { all, failed }]) => html`<tr><th scope="row"><code>${route}</code></th><td>${count(all)}</td><td>${failed === 0 ? nothing : count(failed)}</td></tr>`)}</tbody>
    </table>`;
  }
}

customElements.define("lg-endpoint-statistics", EndpointStatistics);
