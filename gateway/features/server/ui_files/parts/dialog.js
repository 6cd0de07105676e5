// SPDX-License-Identifier: Apache-2.0
// Dialogs on the browser's own `<dialog>`: it keeps the focus inside, Escape closes it, and the focus returns.

import { html, nothing, render } from "lit";

import { SessionEnded } from "../core/session.js";
import { problem } from "./problem.js";

/**
 * Open a dialog with a form. `submit` receives the values of the form; the dialog closes when it succeeds.
 * @param {{title: string, body: unknown, action: string, danger?: boolean, submit: (values: Record<string, string>) => Promise<unknown>}} options
 * @returns {Promise<boolean>} True if the form was submitted
 */
export function openDialog({ title, body, action, danger = false, submit }) {
  const dialog = document.createElement("dialog");
  document.body.append(dialog);
  /** @type {unknown} */
  let failure = null;
  let busy = false;
  let done = false;
  const draw = () =>
    render(
      html`<form method="dialog" @submit=${send}>
        <h2 id="dialog-title">${title}</h2>
        ${body}
        <div aria-live="polite">${failure === null ? nothing : problem(failure)}</div>
        <p class="buttons">
          <button type="submit" class=${danger ? "danger" : "primary"} ?disabled=${busy}>${busy ? "Working …" : action}</button>
          <button type="button" @click=${() => dialog.close()}>Cancel</button>
        </p>
      </form>`,
      dialog,
    );
  /** @param {SubmitEvent} event */
  async function send(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const values = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form)));
    busy = true;
    failure = null;
    draw();
    try {
      await submit(values);
      done = true;
      dialog.close();
    } catch (error) {
      if (error instanceof SessionEnded) {
        dialog.close();
        return;
      }
      failure = error;
    } finally {
      busy = false;
      draw();
    }
  }
  dialog.setAttribute("aria-labelledby", "dialog-title");
  draw();
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(done);
    });
  });
}

/**
 * Ask before something is destroyed. The reader types its name. `consequence` says what will happen, and until when it
 * can be undone.
 * @param {{title: string, name: string, consequence: unknown, action: string, submit: () => Promise<unknown>}} options
 */
export function confirmDestruction({ title, name, consequence, action, submit }) {
  const pattern = name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return openDialog({
    title,
    danger: true,
    action,
    submit,
    body: html`<p>${consequence}</p>
      <p><label>Type <code>${name}</code> to confirm <input name="name" required autocomplete="off" pattern=${pattern} /></label></p>`,
  });
}
