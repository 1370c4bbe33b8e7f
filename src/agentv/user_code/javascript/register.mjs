// Loaded by Node before a script of the user's (`--import`), and by the process that grades.

import * as nodeModule from 'node:module';
import { load, resolve } from './hooks.mjs';

if (process.versions.bun) {
  // it finds the packages of NODE_PATH by itself
} else if (nodeModule.registerHooks) {
  nodeModule.registerHooks({ load, resolve });
} else {
  nodeModule.register('./hooks.mjs', import.meta.url);
}
