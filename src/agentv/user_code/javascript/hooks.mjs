// How Node reads users' files, as bun does: our module under AgentV's names, whatever the project has installed;
// TypeScript's neighbours without their suffix; ES modules and CommonJS by their syntax, whatever `package.json` says.
// Before version 22.15 the hooks run on a thread of their own, where they may wait.

import { readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';

export const NAMES = ['@agentv/sdk', 'agentv', '@agentv/eval'];
export const SDK = new URL('./sdk/index.mjs', import.meta.url).href;

const COMMONJS_NAMES = ['exports', 'require', 'module', '__filename', '__dirname'];
const USES_COMMONJS = /\brequire\s*[(.]|\bmodule\s*\.\s*exports\b|\bexports\s*[.[]|\b__(?:filename|dirname)\b/;
const ENDINGS = ['.ts', '.mts', '.js', '.mjs', '/index.ts', '/index.js'];

export function resolve(specifier, context, next) {
  if (NAMES.includes(specifier)) return { url: SDK, format: 'module', shortCircuit: true };
  return attempt(
    () => next(specifier, context),
    (error) => {
      if (!specifier.startsWith('.')) throw error;
      const bare = specifier.replace(/\.[mc]?js$/, '');
      return firstOf(ENDINGS.map((ending) => () => next(bare + ending, context)), error);
    },
  );
}

export function load(url, context, next) {
  const [, letter, language] = /^file:(?!.*\/node_modules\/).*\.([cm]?)(js|ts)$/.exec(url) ?? [];
  const isTypeScript = language === 'ts';
  if (isTypeScript && !process.features.typescript) {
    throw new Error(`Node ${process.version} does not run TypeScript (${fileURLToPath(url)}): use Node ≥ 22.18 or bun`);
  }
  if (letter !== '') return next(url, context); // the name of the file says what it is, or it is none of the user's
  const file = fileURLToPath(url);
  const source = readFileSync(file, 'utf8');
  const kind = kindOf(source, isTypeScript);
  const format = isTypeScript ? `${kind}-typescript` : kind;
  const isImported = new Set(context.conditions).has('import');
  if (kind === 'commonjs' && isImported && nodeModule.registerHooks) return required(file);
  const isAsNodeReads = (context.format ?? (nodeModule.registerHooks ? format : 'commonjs')) === format;
  if (kind === undefined || isAsNodeReads) return next(url, context);
  return { format, source, shortCircuit: true };
}

/** An ES module with the exports of a file of CommonJS. Node's `require` loads that: its `import` lets it find less. */
function required(file) {
  const require = nodeModule.createRequire(file);
  const names = Object.keys(require(file) ?? {}).filter((name) => name !== 'default');
  const path = JSON.stringify(file);
  const source = `import { createRequire } from 'node:module';
const made = createRequire(${path})(${path});
export default made;
${names.map((name, at) => `const _${at} = made[${JSON.stringify(name)}]; export { _${at} as ${JSON.stringify(name)} };`).join('\n')}`;
  return { format: 'module', source, shortCircuit: true };
}

/** `module` or `commonjs`; undefined for a file that has the syntax of neither, or is broken. */
function kindOf(source, isTypeScript) {
  let code;
  try {
    code = isTypeScript ? withoutTypes(source) : source;
  } catch {
    return undefined; // Node says what is wrong with it
  }
  try {
    compileFunction(code, COMMONJS_NAMES);
  } catch {
    return 'module';
  }
  return USES_COMMONJS.test(code) ? 'commonjs' : undefined;
}

function withoutTypes(source) {
  const { emitWarning } = process;
  process.emitWarning = () => {}; // that stripping types is experimental
  try {
    return nodeModule.stripTypeScriptTypes(source, { mode: 'transform' });
  } finally {
    process.emitWarning = emitWarning;
  }
}

function firstOf([first, ...others], error) {
  if (!first) throw error;
  return attempt(first, () => firstOf(others, error));
}

/** What `called` gives, at once or later; where it fails, what `otherwise` makes of the error. */
function attempt(called, otherwise) {
  try {
    const found = called();
    return typeof found.then === 'function' ? found.catch(otherwise) : found;
  } catch (error) {
    return otherwise(error);
  }
}
