// How Node finds our module under AgentV's names; before version 22.15 on a thread of its own.

export const NAMES = ['@agentv/sdk', 'agentv', '@agentv/eval'];
export const SDK = new URL('./sdk/index.mjs', import.meta.url).href;

/** Where one of our names leads; undefined for every other. */
export function ownModule(specifier) {
  return NAMES.includes(specifier) ? { url: SDK, format: 'module', shortCircuit: true } : undefined;
}

export async function resolve(specifier, context, next) {
  return ownModule(specifier) ?? next(specifier, context);
}
