// SPDX-License-Identifier: Apache-2.0
// A chart of counts over time (uPlot), with the same numbers as a table.

import { LitElement, html } from "lit";
import uPlot from "uplot";

import { count, time } from "../core/format.js";

const HEIGHT = 240;

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Load the style sheet of the library once. */
function style() {
  if (document.getElementById("chart-style") === null) {
    const link = document.createElement("link");
    Object.assign(link, { id: "chart-style", rel: "stylesheet", href: new URL("../vendor/uplot/dist/uPlot.min.css", import.meta.url).pathname });
    document.head.append(link);
  }
}

/** A chart. `times` are RFC 3339 texts; each line has a value for each of them. */
class Chart extends LitElement {
  static properties = { label: {}, times: { attribute: false }, lines: { attribute: false } };

  constructor() {
    super();
    this.label = "";
    /** @type {string[]} */
    this.times = [];
    /** @type {{label: string, colour: string, values: number[]}[]} */
    this.lines = [];
    /** @type {uPlot | null} */
    this.plot = null;
    this.watch = new ResizeObserver(() => this.plot?.setSize({ width: this.width(), height: HEIGHT }));
  }

  createRenderRoot() {
    return this;
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.watch.disconnect();
  }

  width() {
    return Math.max(200, this.clientWidth || 600);
  }

  updated() {
    style();
    this.plot?.destroy();
    const axis = { stroke: colour("--text"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    const series = this.lines.map((each) => ({ label: each.label, stroke: colour(each.colour), width: 2, points: { show: true } }));
    const data = /** @type {any} */ ([this.times.map((each) => new Date(each).getTime() / 1000), ...this.lines.map((each) => each.values)]);
    this.plot = new uPlot({ width: this.width(), height: HEIGHT, series: [{}, ...series], axes: [axis, { ...axis, size: 60 }] }, data, /** @type {HTMLElement} */ (this.querySelector(".plot")));
    this.watch.observe(this);
  }

  render() {
    return html`<figure class="chart">
      <figcaption>${this.label}</figcaption>
      <div class="plot" role="img" aria-label=${this.label}></div>
      <details><summary>The numbers</summary>
        <table>
          <thead><tr><th scope="col">From</th>${this.lines.map((each) => html`<th scope="col">${each.label}</th>`)}</tr></thead>
          <tbody>${this.times.map((each, at) => html`<tr><th scope="row">${time(each)}</th>${this.lines.map((line) => html`<td>${count(line.values[at])}</td>`)}</tr>`)}</tbody>
        </table>
      </details>
    </figure>`;
  }
}

customElements.define("lg-chart", Chart);
