// Runs a case, or all that failed, again on the server: a button, how far it is, and the new run.

/** @import { Api } from "../data/api.js" */

import { button, element } from "../dom/elements.js";
import { inline, longText } from "../dom/text.js";
import { runAddress } from "./run_rows.js";

const ASK_AGAIN_MS = 500;
const ENDED = { ended: "It has ended.", cancelled: "It was cancelled." };

/**
 * @param {Api} api
 * @param {string} run
 * @param {any} trial null: all cases that failed
 */
export function runAgainBox(api, run, trial) {
  const box = element("div", { class: "again", role: "status" });
  const path = trial ? ["runs", run, "trials", trial.trial, "run"] : ["runs", run, "run"];
  const start = () => follow(api.send("POST", path));
  const pressed = (label, act, does = null) => button(label, act, { class: "quiet", "data-does": does, press: act });
  const show = (told) => {
    const ours = told.of === run && told.trial === (trial?.trial ?? "");
    if (!ours || told.state === "none") return box.replaceChildren(pressed("Run it now", start, "run"));
    const link = told.run_id ? element("a", { href: runAddress(told.run_id) }, "Open the new run") : null;
    const runs = told.state === "running";
    box.replaceChildren(
      element("p", {}, runs ? "Running… " : `${ENDED[told.state]} Exit status ${told.status}. `, link),
      ...(told.output ? [longText(told.output, { class: "code" })] : []),
      runs ? pressed("Cancel", () => follow(api.send("DELETE", ["rerun"]))) : pressed("Run it again", start, "run"),
    );
  };
  const follow = async (request) => {
    try {
      const told = await request;
      show(told);
      if (told.state !== "running") return;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      if (box.isConnected) follow(api.get(["rerun"]));
    } catch (problem) {
      box.replaceChildren(
        element("p", { class: "warning" }, inline(problem.message)),
        pressed("Run it now", start, "run"),
      );
    }
  };
  follow(api.get(["rerun"]));
  return box;
}
