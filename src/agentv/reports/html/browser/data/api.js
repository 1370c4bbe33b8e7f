// Requests to the server that handed out this page.

export class ApiError extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Api {
  /** @param {string} base */
  constructor(base = "api") {
    this.base = base;
    /** @type {(alive: boolean) => void} */
    this.connection = () => {}; // told whether events arrive
  }

  /**
   * Parts of a path become one segment each, whatever characters they have; parameters that are empty are left out.
   *
   * @param {string[]} parts
   * @param {Record<string, any>} [parameters]
   */
  address(parts, parameters = {}) {
    // A browser resolves these in addresses, however they are written.
    if (parts.some((part) => part === "." || part === ".."))
      throw new ApiError("This does not exist.", 404, "not-found");
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters))
      for (const one of Array.isArray(value) ? value : [value])
        if (one !== "" && one !== null && one !== undefined) query.append(name, String(one));
    const path = [this.base, ...parts.map((part) => encodeURIComponent(part.toWellFormed()))].join("/");
    return query.size ? `${path}?${query}` : path;
  }

  /**
   * @param {string[]} parts
   * @param {Record<string, any>} [parameters]
   * @param {AbortSignal} [signal]
   */
  async get(parts, parameters = {}, signal = undefined) {
    return this.ask(this.address(parts, parameters), { signal });
  }

  /** Ask for a change, which a server may not allow. */
  async send(method, parts, body = null) {
    const token = document.querySelector('meta[name="agentv-token"]')?.getAttribute("content") ?? "";
    const headers = { "Content-Type": "application/json", "X-Agentv-Token": token };
    return this.ask(this.address(parts), { method, headers, body: body === null ? undefined : JSON.stringify(body) });
  }

  async ask(address, given) {
    const answer = await this.reach(address, given);
    const body = await answer.text();
    const told = parsed(body);
    if (answer.ok && (told !== undefined || !body)) return told ?? null;
    const error = told?.error ?? {};
    throw new ApiError(error.message ?? `The server answered ${answer.status}.`, answer.status, error.code ?? "");
  }

  async reach(address, given) {
    try {
      return await fetch(address, given);
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      throw new ApiError("The server cannot be reached. Is it still running?", 0, "unreachable");
    }
  }

  /**
   * Listen to server-sent events. The browser connects again by itself, and says where it was.
   *
   * @param {string} address
   * @param {Record<string, (data: any) => void>} listeners by the name of the event
   * @returns {() => void} what ends it
   */
  listen(address, listeners) {
    const events = new EventSource(address);
    for (const [name, listener] of Object.entries(listeners))
      events.addEventListener(name, (event) => listener(JSON.parse(/** @type {MessageEvent} */ (event).data)));
    events.onerror = () => this.connection(false);
    events.onopen = () => this.connection(true);
    return () => {
      events.close();
      this.connection(true);
    };
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
