// How users' files find what they import: our module under AgentV's names, whatever the project has installed, and
// TypeScript's neighbours without their suffix, as bun finds them.

import { NAMES, ownModule, SDK } from './hooks.mjs';

export async function resolveSdk() {
  if (process.versions.bun) await resolveInBun();
  else await resolveInNode();
}

async function resolveInBun() {
  const exports = await import(SDK);
  Bun.plugin({
    name: 'agentv',
    setup(build) {
      for (const name of NAMES) build.module(name, () => ({ exports, loader: 'object' }));
    },
  });
}

async function resolveInNode() {
  const { registerHooks } = await import('node:module');
  registerHooks({
    resolve(specifier, context, next) {
      try {
        return ownModule(specifier) ?? next(specifier, context);
      } catch (error) {
        const found = specifier.startsWith('.') && neighbour(specifier, (one) => next(one, context));
        if (!found) throw error;
        return found;
      }
    },
  });
}

function neighbour(specifier, resolve) {
  const bare = specifier.replace(/\.[mc]?js$/, '');
  for (const ending of ['.ts', '.mts', '.js', '.mjs', '/index.ts', '/index.js']) {
    try {
      return resolve(bare + ending);
    } catch {
      // the next one may be there
    }
  }
  return undefined;
}
