// SPDX-License-Identifier: Apache-2.0
// The server: its health and version, the rights on it, and its requests over time.

import { html, nothing } from "lit";

import { get } from "../core/api.js";
import { projectOf, projects } from "../core/objects.js";
import { Page } from "../core/page.js";
import { address } from "../core/router.js";
import { accessTabs } from "../parts/access.js";
import { projectChoice } from "../parts/forms.js";
import { asCode, title } from "../parts/heading.js";
import { badge, copied, when } from "../parts/small.js";
import "../parts/statistics.js";
import { tabs } from "../parts/tabs.js";

/** @type {Record<string, "good" | "bad" | "warn">} */
const KINDS = { ok: "good", error: "bad", unknown: "warn" };

export default class ServerPage extends Page {
  async load() {
    const [health, info, all, project] = await Promise.all([get("/health"), get("/management/v1/info"), projects(), projectOf(this.route.query.project)]);
    return { health, info, all, project: project?.["project-id"] ?? "" };
  }

  /** @param {any} data */
  body({ health, info, all, project }) {
    const on = { type: /** @type {const} */ ("server"), id: "", name: "server" };
    return html`${title("Server")}
      ${info.bootstrapped ? nothing : html`<p class="problem">This server is new. <a href=${address("first-run")}>Accept the terms and become its administrator</a></p>`}
      ${tabs({
        health: { label: "Health", draw: () => this.health(health, info) },
        requests: {
          label: "Requests",
          draw: () => html`${projectChoice(all, project)}<lg-endpoint-statistics project=${project}></lg-endpoint-statistics>`,
        },
        ...accessTabs(on),
      })}
      ${asCode()}`;
  }

  /** @param {any} health @param {any} info */
  health(health, info) {
    const identities = ["aws", "azure", "gcp"].filter((each) => info[`${each}-system-identities-enabled`]);
    return html`<p>${badge(health.health, KINDS[health.health])} ${health.maintenance_mode === "off" ? nothing : badge(`maintenance: ${health.maintenance_mode}`, "warn")}</p>
      <table>
        <caption>What the gateway needs</caption>
        <thead><tr><th scope="col">Part</th><th scope="col">Service</th><th scope="col">State</th><th scope="col">Last check</th></tr></thead>
        <tbody>
          ${Object.entries(health.services).flatMap(([part, services]) =>
            services.map((/** @type {any} */ each) => html`<tr><td>${part}</td><th scope="row">${each.name}</th><td>${badge(each.status, KINDS[each.status])}</td><td>${when(each.lastCheck, "never")}</td></tr>`),
          )}
        </tbody>
      </table>
      <dl class="facts">
        <dt>Version</dt><dd>${info.version}</dd>
        <dt>Server id</dt><dd>${copied(info["server-id"], "the server's id")}</dd>
        <dt>Rights are kept in</dt><dd>${info["authz-backend"]}</dd>
        <dt>Own identities for stores</dt><dd>${identities.join(", ") || "none"}</dd>
        <dt>Queues</dt><dd>${info.queues.join(", ")}</dd>
        <dt>License</dt><dd>${info["license-status"]["license-type"]}</dd>
        <dt>Metrics</dt><dd>for Prometheus, at the address in the operator's settings</dd>
      </dl>`;
  }
}
