// Loaded by Node before a script of the user's (`--import`), so that it finds `@agentv/sdk` with no npm install.

import * as nodeModule from 'node:module';
import { ownModule } from './hooks.mjs';

if (process.versions.bun) {
  // it finds the packages of NODE_PATH by itself
} else if (nodeModule.registerHooks) {
  nodeModule.registerHooks({ resolve: (specifier, context, next) => ownModule(specifier) ?? next(specifier, context) });
} else {
  nodeModule.register('./hooks.mjs', import.meta.url);
}
