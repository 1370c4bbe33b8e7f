// The page on which people sign in to a team's server.

/** @param {string} id */
const element = (id) => document.getElementById(id);

/**
 * @param {string} address
 * @param {Record<string, string>} body
 */
async function post(address, body) {
  const token = document.querySelector('meta[name="agentv-token"]')?.getAttribute("content") ?? "";
  const headers = { "Content-Type": "application/json", "X-Agentv-Token": token };
  let answer;
  try {
    answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new Error("The server cannot be reached.");
  }
  const told = await answer.json().catch(() => null);
  if (answer.ok && told) return told;
  throw new Error(told?.error?.message ?? `The server answered ${answer.status}.`);
}

/**
 * Do what a button says, once at a time; a failure is shown, and the focus goes where it can be mended.
 *
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} focused
 * @param {() => Promise<void>} action
 */
async function perform(button, focused, action) {
  if (button.disabled) return;
  const problem = element("problem");
  problem.textContent = "";
  button.disabled = true;
  try {
    await action();
  } catch (error) {
    problem.textContent = error.message;
    button.disabled = false;
    focused.focus();
  }
}

// The part of an address behind # stays in the browser: a link to a case leads there after the sign-in.
const target = () => (document.body.dataset.target ?? "/") + location.hash;

function begin() {
  const input = /** @type {HTMLInputElement | null} */ (element("token"));
  const signOut = /** @type {HTMLButtonElement | null} */ (element("sign-out"));
  for (const form of document.forms) {
    const button = form.querySelector("button");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      perform(button, input ?? button, async () => {
        if (input) location.replace((await post("/sign-in/token", { token: input.value, to: target() })).to);
        else location.assign((await post("/sign-in/openid", { to: target() })).location);
      });
    });
  }
  signOut?.addEventListener("click", () =>
    perform(signOut, signOut, async () => location.replace((await post("/sign-out", {})).to)),
  );
  // Back from the provider, the page is as it was left.
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button")) button.disabled = false;
  });
  input?.focus();
  document.documentElement.dataset.ready = "";
}

begin();
