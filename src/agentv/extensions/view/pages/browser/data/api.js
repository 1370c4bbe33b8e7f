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
    this.token = ""; // what allows changes
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
    return this.ask(this.address(parts, parameters), { signal, headers: this.proof() });
  }

  /** Ask for a change, which a server may not allow. */
  async send(method, parts, body = null) {
    const headers = { "Content-Type": "application/json", ...this.proof() };
    return this.ask(this.address(parts), { method, headers, body: body === null ? undefined : JSON.stringify(body) });
  }

  /** @returns {Record<string, string>} */
  proof() {
    return this.token ? { "X-Agentv-Token": this.token } : {};
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
   * Listen to server-sent events while the page is shown: a browser allows few connections to a server, and tabs that
   * nobody sees would take them all. Events that have ids go on where they ended, in a tab that is shown again and after
   * a lost connection.
   *
   * @param {string} address
   * @param {Record<string, (data: any) => void>} listeners by the name of the event
   * @param {() => void} missed called when the stream is open again, where events without ids may have been missed
   * @returns {() => void} what ends it
   */
  listen(address, listeners, missed = () => {}) {
    /** @type {EventSource | null} */
    let events = null;
    let last = "";
    let late = document.hidden;
    const open = () => {
      events = new EventSource(continued(address, last));
      for (const [name, listener] of Object.entries(listeners))
        events.addEventListener(name, (event) => {
          const { data, lastEventId } = /** @type {MessageEvent} */ (event);
          last = lastEventId || last;
          listener(JSON.parse(data));
        });
      events.onerror = () => this.connection(false);
      events.onopen = () => {
        this.connection(true);
        if (late) missed();
        late = true;
      };
    };
    const close = () => {
      events?.close();
      events = null;
    };
    const turn = () => {
      if (document.hidden) close();
      else if (!events) open();
    };
    document.addEventListener("visibilitychange", turn);
    turn();
    return () => {
      document.removeEventListener("visibilitychange", turn);
      close();
      this.connection(true);
    };
  }
}

function continued(address, last) {
  if (!last) return address;
  const [path, query] = address.split("?");
  const parameters = new URLSearchParams(query);
  parameters.set("after", last);
  return `${path}?${parameters}`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
