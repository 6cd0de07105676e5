// SPDX-License-Identifier: Apache-2.0
// The settings of a warehouse: name, state, protection, dropped tables, format versions, and lost data policies.

import { html, nothing } from "lit";

import { change } from "../core/api.js";
import { duration } from "../core/format.js";
import { managementPath } from "../core/objects.js";
import { address, go } from "../core/router.js";
import { confirmDestruction, openDialog } from "./dialog.js";
import { field } from "./forms.js";

const DAY = 86_400;
/** @type {[string, string][]} */
const POLICY_LOSS = [
  ["refuse-restricted", "refuse them to users that the policies restrict"],
  ["refuse", "refuse them to all that do not manage these policies"],
  ["announce", "permit and announce them"],
];

/** @typedef {{on: any, actions: Set<string>, changed: (notice: string) => void}} Setting */

/** @param {Setting} setting @param {string} below @param {unknown} body @param {string} notice */
async function send({ on, changed }, below, body, notice) {
  await change("POST", managementPath(on) + below, body);
  changed(notice);
  window.dispatchEvent(new Event("hierarchy-changed"));
}

/** @param {Setting} setting */
function rename(setting) {
  const { on } = setting;
  let name = on.name;
  void openDialog({
    title: "Rename the warehouse",
    action: "Rename",
    body: html`${field({ name: "name", label: "New name", value: on.name, required: true })}<p>Clients that address the warehouse by its name must use the new one. Its id stays.</p>`,
    submit: async (values) => {
      name = values.name.trim();
      await change("POST", `${managementPath(on)}/rename`, { "new-name": name });
    },
  }).then((done) => {
    if (done) {
      window.dispatchEvent(new Event("hierarchy-changed"));
      go(address("warehouse", [encodeURIComponent(name)], { project: on.project, tab: "settings" }));
    }
  });
}

/** @param {Setting} setting */
function deactivate(setting) {
  void confirmDestruction({
    title: "Deactivate the warehouse",
    name: setting.on.name,
    action: "Deactivate",
    consequence: html`From the next request on, clients find no warehouse ${setting.on.name} and none of its tables. Nothing is deleted; you can activate it again. Credentials that
      were issued before stay valid until they expire.`,
    submit: () => send(setting, "/deactivate", undefined, "The warehouse is inactive."),
  });
}

/** @param {Setting} setting */
function remove({ on }) {
  void confirmDestruction({
    title: "Delete the warehouse",
    name: on.name,
    action: "Delete",
    consequence: html`The warehouse ${on.name} and all grants on it are deleted. This cannot be undone. It must have no tables, also none that can be restored. No file of the store is
      deleted.`,
    submit: () => change("DELETE", managementPath(on) + (on.row.protected ? "?force=true" : "")),
  }).then((done) => {
    if (done) {
      window.dispatchEvent(new Event("hierarchy-changed"));
      go(address("project", [on.project]));
    }
  });
}

/** @param {Setting} setting */
function deletion(setting) {
  const profile = setting.on.row["delete-profile"];
  const days = profile.type === "soft" ? String(profile["expiration-seconds"] / DAY) : "0";
  void openDialog({
    title: "Dropped tables",
    action: "Save",
    body: html`${field({ name: "days", label: "Can be restored for (days)", type: "number", value: days, required: true, help: "0: their files are deleted at once." })}
      ${field({ name: "purge", label: "A drop that does not say it", value: profile["absent-purge-requested"] ?? "purge", options: [["purge", "deletes the files"], ["keep", "keeps the files"]] })}
      <p>It applies to later drops. Tables that are dropped already keep their time.</p>`,
    submit: ({ days, purge }) => {
      const kept = { "absent-purge-requested": purge };
      const made = Number(days) > 0 ? { type: "soft", "expiration-seconds": Math.round(Number(days) * DAY), ...kept } : { type: "hard", ...kept };
      return send(setting, "/delete-profile", { "delete-profile": made }, "Saved. It applies to later drops.");
    },
  });
}

/** @param {Setting} setting */
function formats(setting) {
  const { row } = setting.on;
  void openDialog({
    title: "Format versions",
    action: "Save",
    body: html`<fieldset><legend>Allowed versions of Iceberg tables</legend>
        ${[1, 2, 3].map((each) => html`<div class="check"><label><input type="checkbox" name="v${each}" value="true" ?checked=${row["allowed-format-versions"].includes(each)} /> Version ${each}</label></div>`)}
      </fieldset>
      ${field({ name: "standard", label: "Version of a new table that states none", value: String(row["default-format-version"] ?? ""), options: [["", "2, or the highest allowed"], "1", "2", "3"] })}
      <p>Tables that exist do not change.</p>`,
    submit: (values) => {
      const allowed = [1, 2, 3].filter((each) => values[`v${each}`] === "true");
      const standard = values.standard === "" ? {} : { "default-format-version": Number(values.standard) };
      return send(setting, "/format-version-policy", { "allowed-format-versions": allowed, ...standard }, "Saved. It applies to new and upgraded tables.");
    },
  });
}

/** @param {Setting} setting */
function policyLoss(setting) {
  void openDialog({
    title: "Changes that lose a data policy",
    action: "Save",
    body: html`${field({ name: "loss", label: "Such changes", value: setting.on.row["policy-loss"], options: POLICY_LOSS, help: "Such as a table that gets the name of one with more data policies." })}`,
    submit: ({ loss }) => send(setting, "/policy-loss", { "policy-loss": loss }, "Saved."),
  });
}

/** Draw the settings. @param {Setting} setting */
export function warehouseSettings(setting) {
  const { on, actions } = setting;
  const { row } = on;
  const profile = row["delete-profile"];
  /** @param {string} action @param {string} label @param {() => unknown} run @param {string} [kind] */
  const button = (action, label, run, kind = "") => {
    const allowed = action === "" || actions.has(action);
    const missing = `needs “${action.replaceAll("_", " ")}” on the warehouse; ask its owner`;
    return html`<button type="button" class="small ${kind}" ?disabled=${!allowed} title=${allowed ? "" : missing} @click=${run}>${label}</button>
      ${allowed ? nothing : html`<span class="quiet">${missing}</span>`}`;
  };
  // Buttons without a dialog show their error where the others show their success.
  const shown = (/** @type {Promise<void>} */ work) => void work.catch((error) => setting.changed(error.message));
  const toggle = () => send(setting, "/protection", { protected: !row.protected }, row.protected ? "The warehouse can be deleted." : "The warehouse is protected.");
  const state =
    row.status === "active"
      ? button("deactivate", "Deactivate …", () => deactivate(setting))
      : button("activate", "Activate", () => shown(send(setting, "/activate", undefined, "The warehouse is active.")));
  const loss = POLICY_LOSS.find(([value]) => value === row["policy-loss"])?.[1] ?? row["policy-loss"];
  return html`<dl class="facts settings">
    <dt>Name</dt><dd>${row.name} ${button("rename", "Rename …", () => rename(setting))}</dd>
    <dt>State</dt><dd>${row.status} ${state}</dd>
    <dt>Protection</dt><dd>${row.protected ? "protected from deletion" : "not protected"} ${button("set_protection", row.protected ? "Remove the protection" : "Protect", () => shown(toggle()))}</dd>
    <dt>Dropped tables</dt>
    <dd>${profile.type === "soft" ? `can be restored for ${duration(profile["expiration-seconds"])}` : "are deleted at once"} ${button("modify_soft_deletion", "Change …", () => deletion(setting))}</dd>
    <dt>Format versions</dt>
    <dd>${row["allowed-format-versions"].join(", ")}; new tables: ${row["default-format-version"] ?? "2, or the highest allowed"} ${button("set_format_version_policy", "Change …", () => formats(setting))}</dd>
    <dt>Changes that lose a data policy</dt><dd>${loss} ${button("", "Change …", () => policyLoss(setting))}</dd>
    <dt>Managed by</dt><dd>${row["managed-by"]}</dd>
    <dt>Delete</dt><dd>${button("delete", "Delete …", () => remove(setting), "danger")}</dd>
  </dl>`;
}
