// SPDX-License-Identifier: Apache-2.0
// A table: its schema as it applies to the reader, snapshots, files, properties, history, tasks, and the ways to reach it.

import { html, nothing } from "lit";

import { ApiError, ask, get, path } from "../core/api.js";
import { applyFile } from "../core/apply-file.js";
import { actionsOn, catalogPath, managementPath, tabularNamed } from "../core/objects.js";
import { Page } from "../core/page.js";
import { readersOf } from "./audit.js";
import { accessTabs } from "../parts/access.js";
import { connect } from "../parts/connect.js";
import { asCode, heading } from "../parts/heading.js";
import { layoutOf, schemaTable } from "../parts/schema.js";
import { problem } from "../parts/problem.js";
import { badge, empty, when } from "../parts/small.js";
import { files, snapshots } from "../parts/snapshots.js";
import { maskButton, policiesTab } from "../parts/table-policies.js";
import { tabs } from "../parts/tabs.js";
import { tabularMenu } from "../parts/tabular-menu.js";
import { tagsTab } from "../parts/tags.js";
import { taskList, tasksOf } from "../parts/tabular-tasks.js";
import "../parts/explain-form.js";

/** @typedef {import("../core/objects.js").Thing} Thing */

/** Return the answer, or null if the caller may not read this part of the page. @param {Promise<any>} answer */
async function ifAllowed(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) {
      return null;
    }
    throw error;
  }
}

/**
 * Return what a steward needs of a table that it may not load: a data policy hides a part of it. Throws the refusal.
 * @param {Thing} named @param {ApiError} refusal
 */
async function withoutMetadata(named, refusal) {
  const { tabulars } = await ask("/management/v1" + path`/warehouse/${named.warehouse ?? ""}/search-tabular`, { search: named.name });
  const levels = JSON.stringify(named.namespace);
  const found = tabulars.find((/** @type {any} */ each) => each["tabular-id"].type === "table" && each["tabular-name"] === named.name && JSON.stringify(each["namespace-name"]) === levels);
  if (found === undefined) {
    throw refusal;
  }
  return { on: { ...named, id: found["tabular-id"].id }, refusal };
}

export default class TablePage extends Page {
  /** @param {import("../core/router.js").Route} route */
  async load({ parts, query }) {
    const named = await tabularNamed("table", parts[0] ?? "", parts[1] ?? "", query.project);
    // The page needs no storage credentials, so none are vended.
    const headers = { "X-Iceberg-Access-Delegation": "client-managed" };
    const loaded = await get(catalogPath(named), { headers }).catch((error) => (error instanceof ApiError && error.status === 403 ? error : Promise.reject(error)));
    if (loaded instanceof ApiError) {
      return withoutMetadata(named, loaded);
    }
    const on = { ...named, id: loaded.metadata["table-uuid"] };
    const [actions, tagged, mine] = await Promise.all([
      actionsOn(on),
      ifAllowed(get(`${managementPath(on)}/column-tags`)),
      ifAllowed(get(`${managementPath(on)}/data-policies/preview`)),
    ]);
    const tags = new Map((tagged?.columns ?? []).map((/** @type {any} */ each) => [each["field-id"], each.tags.map((/** @type {any} */ tag) => tag.name)]));
    return { on, loaded, actions, tags, mine, tasks: tasksOf(on) };
  }

  /** @param {any} data */
  body(data) {
    return data.refusal === undefined ? this.whole(data) : this.restricted(data);
  }

  /** Draw what needs no metadata of the table. @param {any} data */
  restricted({ on, refusal }) {
    return html`${heading(on, { badges: badge("not loaded", "warn") })}
      <details><summary>You may not load this table</summary>${problem(refusal)}</details>
      ${tabs({
        ...accessTabs(on),
        ...policiesTab(on),
        ...tagsTab(on),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on} who=${this.route.query.who ?? ""} action=${this.route.query.action ?? ""}></lg-explain-form>` },
      })}
      ${asCode()}`;
  }

  /** @param {any} data */
  whole({ on, loaded, actions, tags, mine, tasks }) {
    const { metadata } = loaded;
    const restrictions = mine?.["read-restrictions"] ?? loaded["read-restrictions"] ?? null;
    return html`${heading(on, { badges: this.access(actions, restrictions), menu: tabularMenu(on, actions, () => this.reload()) })}
      ${tabs({
        schema: { label: "Schema", draw: () => html`${schemaTable(metadata, { tags, restrictions, menu: (field) => maskButton(on, field.name) })}${layoutOf(metadata)}` },
        snapshots: { label: "Snapshots", draw: () => snapshots(metadata) },
        files: { label: "Files", draw: () => files(metadata) },
        properties: { label: "Properties", draw: () => this.properties(loaded) },
        history: { label: "History", draw: () => this.history(on, metadata) },
        tasks: { label: "Tasks", draw: () => taskList(tasks) },
        connect: { label: "Connect", draw: () => connect(on) },
        ...policiesTab(on, metadata),
        ...tagsTab(on, metadata),
        ...accessTabs(on),
        why: { label: "Why", draw: () => html`<lg-explain-form .on=${on} who=${this.route.query.who ?? ""} action=${this.route.query.action ?? ""}></lg-explain-form>` },
      })}
      ${asCode(() => applyFile(on))}`;
  }

  /** @param {Set<string>} actions @param {any} restrictions */
  access(actions, restrictions) {
    if (!actions.has("read_data")) {
      return badge("metadata only", "warn");
    }
    return restrictions === null ? badge("you may read", "good") : badge("you may read a part", "warn");
  }

  /** @param {any} loaded */
  properties({ metadata, "metadata-location": location }) {
    const facts = { location: metadata.location, "metadata-location": location, "format-version": metadata["format-version"], ...metadata.properties };
    return html`<dl class="facts">${Object.entries(facts).map(([name, value]) => html`<dt>${name}</dt><dd><code>${value ?? nothing}</code></dd>`)}</dl>`;
  }

  /** @param {Thing} on @param {any} metadata */
  history(on, metadata) {
    const log = [...(metadata["metadata-log"] ?? [])].reverse();
    const readers = html`<p><a href=${readersOf(on)}>Who read it in the last day</a> <span class="quiet">for auditors</span></p>`;
    if (log.length === 0) {
      return html`${readers}${empty("This is the first version of the table's metadata.")}`;
    }
    return html`${readers}<table>
      <caption>Earlier versions of the metadata</caption>
      <thead><tr><th scope="col">Until</th><th scope="col">File</th></tr></thead>
      <tbody>${log.map((/** @type {any} */ each) => html`<tr><td>${when(each["timestamp-ms"])}</td><td><code>${each["metadata-file"]}</code></td></tr>`)}</tbody>
    </table>`;
  }
}
