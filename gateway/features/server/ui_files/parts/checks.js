// SPDX-License-Identifier: Apache-2.0
// The checks of a storage, and the proof that credentials stay in their scope.

import { html, nothing } from "lit";

import { count } from "../core/format.js";
import { badge, when } from "./small.js";

/** What each check does, in the order in which they run. @type {Record<string, string>} */
export const CHECKS = {
  "profile-well-formed": "The settings of the store are complete and valid.",
  "profile-compatible": "The store stays the same, so that the tables are still found.",
  "warehouse-name-valid": "The name is valid, and free in the project.",
  "location-exclusive": "No other warehouse has this folder, or one in it.",
  "spec-mutable": "The settings of this warehouse may be changed.",
  "format-version-policy-consistent": "The default format version is one of the allowed ones.",
  "managed-by-allowed": "You may choose who manages the warehouse.",
  "storage-address-allowed": "The operator allows the address of the store.",
  "storage-client-initialized": "The gateway can sign in at the store.",
  "lakekeeper-read-write": "The gateway can write, read and delete a file.",
  "vended-credentials-issued": "The store issues credentials for clients.",
  "vended-credentials-read-write": "A client can read and write with such a credential.",
  "vended-credentials-scope-enforced": "Such a credential reaches no file outside of its folder.",
  "vended-credentials-policy-enforced": "A credential that only reads cannot write.",
  "vended-credentials-no-role-assumption": "Such a credential cannot get further rights.",
  "vended-credentials-control-plane": "Such a credential cannot change the bucket.",
  cleanup: "The files of the checks were deleted.",
};

/** @type {Record<string, [string, "good" | "bad" | "warn" | "plain"]>} */
const STATES = { passed: ["passed", "good"], failed: ["failed", "bad"], skipped: ["skipped", "plain"], running: ["waits", "warn"] };

/** Draw checks with their results. Before the response, all of them wait. @param {{valid: boolean, checks: any[]} | null} answer */
export function checkList(answer) {
  const checks = answer?.checks ?? Object.keys(CHECKS).map((name) => ({ name, status: "running" }));
  const passed = checks.filter((each) => each.status !== "running").length;
  return html`<div role="status">
      ${answer === null
        ? html`<p>The checks are running; this takes up to a minute. <progress aria-label="Checks"></progress></p>`
        : html`<p>${answer.valid ? badge("all checks passed", "good") : badge("a check failed", "bad")} <span class="quiet">${passed} checks</span></p>`}
    </div>
    <ol class="checks">
      ${checks.map((each) => {
        const [word, kind] = STATES[each.status] ?? [each.status, "plain"];
        return html`<li>
          ${badge(word, kind)} ${CHECKS[each.name] ?? each.name} <code>${each.name}</code>
          ${each["duration-ms"] === undefined ? nothing : html`<span class="quiet">${count(each["duration-ms"])} ms</span>`}
          ${each.reason ? html`<p class="quiet">${each.reason}</p>` : nothing}
          ${each.error ? html`<p class="problem">${each.error.message}</p>` : nothing}
        </li>`;
      })}
    </ol>`;
}

/** @type {Record<string, [string, "good" | "bad" | "warn" | "plain"]>} */
const VERDICTS = {
  proven: ["Every attempt to leave the scope was refused.", "good"],
  escaped: ["The store carried out an attempt that leaves the scope. Stop issuing credentials: deactivate the warehouse, then correct the role, its trust policy or the store.", "bad"],
  inconclusive: ["The store gave no clear answer. It is tried again by itself.", "warn"],
  "not-vended": ["This warehouse issues no credentials.", "plain"],
};

/** Draw the proof of scope of a warehouse. @param {any} report */
export function scopeReport(report) {
  const [text, kind] = VERDICTS[report.verdict] ?? ["No attempt was made yet.", "warn"];
  const lines = (/** @type {any[]} */ some, /** @type {string} */ label) =>
    some.length === 0
      ? nothing
      : html`<h4>${label}</h4><ul>${some.map((each) => html`<li>${badge(each.level)} ${each.attempt} at <code>${each.place}</code>: ${each.text}</li>`)}</ul>`;
  return html`<section aria-labelledby="scope-proof">
    <h3 id="scope-proof">Proof of scope ${badge(report.verdict, kind)}</h3>
    <p>${text} ${report.reason}</p>
    <p class="quiet">${count(report.attempts)} attempts; the verdict is of ${when(report["verdict-at"], "no run")}, the last run of ${when(report["last-run-at"], "never")}</p>
    ${lines(report.findings, "Attempts that the store carried out")} ${lines(report.unclear, "Attempts without a clear answer")}
  </section>`;
}
