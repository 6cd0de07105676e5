// SPDX-License-Identifier: Apache-2.0
// Events: the sinks that receive them, those that a sink refused, and the replay of old ones.

import { html } from "lit";

import { change, get } from "../core/api.js";
import { duration } from "../core/format.js";
import { Page } from "../core/page.js";
import { openDialog } from "../parts/dialog.js";
import { field } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import "../parts/long-list.js";
import { badge, empty, when } from "../parts/small.js";
import { tabs } from "../parts/tabs.js";

/** @param {string | null} token */
async function deadLetters(token) {
  const answer = await get("/management/v1/events/dead-letters?pageSize=200" + (token === null ? "" : "&pageToken=" + encodeURIComponent(token)));
  return { rows: answer["dead-letters"], next: answer["next-page-token"] ?? null };
}

const COLUMNS = [
  { label: "Sink", draw: (/** @type {any} */ each) => each.sink },
  { label: "Event", draw: (/** @type {any} */ each) => each.type },
  { label: "About", draw: (/** @type {any} */ each) => html`<code>${each.key}</code>` },
  { label: "Number", draw: (/** @type {any} */ each) => each.sequence, width: "7rem" },
  { label: "Refused", draw: (/** @type {any} */ each) => when(each["refused-at"]), width: "minmax(14rem, 1.4fr)" },
  { label: "Reason", draw: (/** @type {any} */ each) => html`<span title=${each.reason}>${each.reason}</span>`, width: "minmax(12rem, 2fr)" },
];

export default class EventsPage extends Page {
  static properties = { ...Page.properties, notice: { state: true } };

  constructor() {
    super();
    this.notice = "";
  }

  async load() {
    // A new function for each load, so that the list is read again.
    return { sinks: (await get("/management/v1/events/sinks")).sinks, letters: (/** @type {string | null} */ token) => deadLetters(token) };
  }

  /** @param {any} data */
  body({ sinks, letters }) {
    return html`${title("Events", "The gateway sends an event for each change. A sink that does not answer receives them later; what it refuses is kept here.")}
      <p role="status">${this.notice}</p>
      ${tabs({
        sinks: { label: "Sinks", draw: () => this.sinks(sinks) },
        refused: {
          label: "Refused events",
          draw: () => html`<lg-long-list label="Refused events" .source=${letters} .columns=${COLUMNS} .empty=${"No sink has refused an event."}></lg-long-list>`,
        },
      })}
      ${asCode()}`;
  }

  /** @param {any[]} sinks */
  sinks(sinks) {
    if (sinks.length === 0) {
      return empty("No sink is set up.", "The operator sets one with LAKEGATE__EVENTS (see the documentation of events).");
    }
    return html`<table>
      <caption>Sinks</caption>
      <thead><tr><th scope="col">Sink</th><th scope="col">State</th><th scope="col">Waiting</th><th scope="col">Oldest</th><th scope="col">Refused</th><th scope="col">Action</th></tr></thead>
      <tbody>
        ${sinks.map(
          (each) => html`<tr>
            <th scope="row">${each.name}</th>
            <td>${!each.configured ? badge("not set up any more", "warn") : each["dead-letters"] > 0 ? badge("has refused events", "bad") : each.waiting > 0 ? badge("sending", "warn") : badge("up to date", "good")}</td>
            <td>${each.waiting}</td><td>${each.waiting === 0 ? "—" : duration(each["oldest-seconds"])}</td><td>${each["dead-letters"]}</td>
            <td>
              <button type="button" class="small" ?disabled=${each["dead-letters"] === 0} @click=${() => this.retry(each)}>Send refused events again …</button>
              <button type="button" class="small" @click=${() => this.replay(each)}>Replay …</button>
            </td>
          </tr>`,
        )}
      </tbody>
    </table>`;
  }

  /** @param {string} notice */
  changed(notice) {
    this.notice = notice;
    void this.reload();
  }

  /** @param {any} sink */
  retry(sink) {
    void openDialog({
      title: "Send refused events again",
      action: "Send again",
      body: html`<p>The ${sink["dead-letters"]} events that ${sink.name} refused are sent again, after newer ones that it has received already. What it refuses again comes back here.</p>`,
      submit: () => change("POST", "/management/v1/events/dead-letters/retry", { sink: sink.name }),
    }).then((done) => done && this.changed("The events are being sent again."));
  }

  /** @param {any} sink */
  replay(sink) {
    void openDialog({
      title: `Replay events to ${sink.name}`,
      action: "Replay",
      body: html`${field({ name: "time", label: "From", type: "datetime-local", required: true, help: "All events since then are sent again. The sink must know events by their id, or it counts them twice." })}`,
      submit: ({ time }) => change("POST", "/management/v1/events/replay", { sink: sink.name, "from-time": new Date(time).toISOString() }),
    }).then((done) => done && this.changed("The events are being sent again."));
  }
}
