// Changes of a run, each in a dialog that says what will happen.

/** @import { Api } from "../data/api.js" */

import { button, element } from "../dom/elements.js";
import { inline } from "../dom/text.js";

const LONGEST_NAME = 200;

/**
 * @param {Api} api
 * @param {any} run
 * @param {(run: any) => void} done called with the run as it is then
 */
export function nameRun(api, run, done) {
  const input = element("input", {
    type: "text",
    class: "search",
    "aria-label": "Name",
    maxlength: LONGEST_NAME,
    value: run.name,
    spellcheck: "false",
  });
  ask("Name this run", [element("p", { class: "note" }, inline(run.run_id)), input], "Save", async () => {
    const named = await api.send("POST", ["runs", run.run_id, "name"], { name: input.value });
    done({ ...run, name: named.name });
  });
}

/**
 * @param {Api} api
 * @param {any} run
 * @param {() => void} done
 */
export function deleteRun(api, run, done) {
  const what = element(
    "p",
    {},
    "The run ",
    element("strong", {}, inline(run.name || run.suites.join(", "))),
    " ",
    element("code", {}, inline(run.run_id)),
    " and all its files will be deleted. This cannot be undone.",
  );
  ask("Delete this run?", [what], "Delete", async () => {
    await api.send("DELETE", ["runs", run.run_id]);
    done();
  });
}

// A dialog that stays until it worked, or nobody wants it any more.
function ask(title, content, label, act) {
  const problem = element("p", { class: "warning", role: "alert", hidden: true });
  const go = async () => {
    pressed.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (refusal) {
      problem.textContent = refusal.message;
      problem.hidden = false;
      pressed.disabled = false;
    }
  };
  const pressed = button(label, go, { class: "primary" });
  const dialog = element(
    "dialog",
    {
      class: "ask",
      "aria-labelledby": "asked",
      close: () => dialog.remove(),
      keydown: (event) => {
        if (event.key === "Enter" && event.target.matches("input")) go();
      },
    },
    element("h2", { id: "asked" }, title),
    ...content,
    problem,
    element(
      "div",
      { class: "answers" },
      pressed,
      button("Cancel", () => dialog.close()),
    ),
  );
  document.getElementById("page").append(dialog);
  dialog.showModal();
}
