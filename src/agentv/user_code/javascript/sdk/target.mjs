// A client of the local proxy to the judge, which `target: {max_calls}` on a script opens.

export class TargetNotAvailableError extends Error {
  name = 'TargetNotAvailableError';
}

export class TargetInvocationError extends Error {
  name = 'TargetInvocationError';

  constructor(message, statusCode) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** A client, or undefined where the script was given no target. */
export function createTargetClient() {
  const url = process.env.AGENTV_TARGET_PROXY_URL;
  const token = process.env.AGENTV_TARGET_PROXY_TOKEN;
  if (!url) return undefined;
  if (!token) throw new TargetNotAvailableError('AGENTV_TARGET_PROXY_URL is set but AGENTV_TARGET_PROXY_TOKEN is missing');

  const ask = async (path, body) => {
    const response = await fetch(`${url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new TargetInvocationError(errorIn(text) ?? `HTTP ${response.status}`, response.status);
    return JSON.parse(text);
  };
  return {
    invoke: (request) => ask('/invoke', request),
    invokeBatch: async (requests) => (await ask('/invokeBatch', { requests })).responses,
    getInfo: () => ask('/info'),
  };
}

function errorIn(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return text || undefined;
  }
}
