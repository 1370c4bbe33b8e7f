// The long-lived process that grades answers with users' files. It reads requests and writes answers, one JSON
// object a line, on a socket of its own, so that nothing that a file prints can get between them.

import { AsyncLocalStorage } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { compiled, givenBoth, INLINE } from './inline.mjs';
import { providerFrom } from './provider.mjs';
import { contextOf } from './sdk/context.mjs';
import { resolveSdk } from './resolve.mjs';

const CHANNEL = 4;
const TURN_MS = 10; // how long requests are worked off before the event loop gets its turn
const LOAD_MS = 200; // how long a file that is being loaded makes the next one wait

const graders = new Map(); // source → what takes a payload, once loaded
const loading = new Map(); // source → promise of that
const files = new Map(); // file that is being loaded → handler that it handed to a define function meanwhile
const defined = new WeakSet(); // every handler that a define function was given
let lastLoad = Promise.resolve();
const open = new Map(); // id → file, of gradings without an answer yet
const current = new AsyncLocalStorage(); // id of the grading that code belongs to
const exit = process.exit.bind(process);
const waiting = []; // lines not yet taken
const pause = new Int32Array(new SharedArrayBuffer(4));

// --- the line to agentv

// JSON.stringify escapes half a surrogate pair, and nothing else, like this; it is no text for who reads it
const HALF_PAIR = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

function send(message) {
  const line = Buffer.from(`${JSON.stringify(message).replace(HALF_PAIR, '$1\ufffd')}\n`);
  for (let sent = 0; sent < line.length; ) {
    try {
      sent += writeSync(CHANNEL, line, sent);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 1); // the line is full: agentv is reading
    }
  }
}

function answer(id, message) {
  if (open.delete(id)) send({ id, ...message });
}

function refuse(id, code, message) {
  answer(id, { error: { code, message } });
}

async function listen() {
  // each runtime's own way is three times as fast as a file stream, which both know
  const pieces = process.versions.bun ? Bun.file(CHANNEL).stream() : new Socket({ fd: CHANNEL });
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of pieces) {
    rest += decoder.decode(piece, { stream: true });
    if (!piece.includes(0x0a)) continue; // a part of a long line
    const lines = rest.split('\n');
    rest = lines.pop();
    const idle = waiting.length === 0;
    waiting.push(...lines);
    if (idle) work();
  }
}

function work() {
  const until = performance.now() + TURN_MS;
  let done = 0;
  while (done < waiting.length && performance.now() < until) take(JSON.parse(waiting[done++]));
  waiting.splice(0, done);
  if (waiting.length > 0) setImmediate(work);
}

// --- grading

function take(request) {
  if (request.file === undefined) {
    send({ id: request.id });
    return;
  }
  const source = parsed(request.file);
  open.set(request.id, source.file);
  const grader = graders.get(request.file);
  if (grader) grade(grader, source, request);
  else
    load(request.file, source).then(
      (loaded) => grade(loaded, source, request),
      (error) => refuse(request.id, 'cannot-load', `cannot be loaded: ${described(error, source.file)}`),
    );
}

function grade(grader, { file, kind }, { id, payload }) {
  const { read, named } = RESULTS[kind] ?? RESULTS.value;
  const raised = (error) => refuse(id, 'assertion-raised', described(error, file));
  const returned = (result) => {
    try {
      answer(id, read(result));
    } catch (error) {
      open.set(id, file);
      refuse(id, 'bad-result', `gave no ${named}: its result cannot be written as JSON (${error.message})`);
    }
  };
  try {
    const result = current.run(id, grader, payload);
    if (typeof result?.then === 'function') Promise.resolve(result).then(returned, raised);
    else returned(result);
  } catch (error) {
    raised(error);
  }
}

function verdict(result) {
  const object = typeof result === 'boolean' ? { pass: result } : typeof result === 'number' ? { score: result } : result;
  if (typeof object !== 'object' || object === null || Array.isArray(object)) {
    return bad(`returned ${shown(result)}; it must return an object with 'pass' or 'score'`);
  }
  for (const name of ['pass', 'passed', 'score']) {
    const value = object[name];
    // JSON would turn these into null, or drop them, and the rest would read as a verdict
    const isLost = typeof value === 'number' ? !Number.isFinite(value) : /function|symbol|bigint/.test(typeof value);
    if (isLost) return bad(`gave no verdict: '${name}' is ${shown(value)}`);
  }
  return { result: object };
}

/** What a prompt template makes: text, or messages. */
function prompt(result) {
  if (typeof result === 'string' || (typeof result === 'object' && result !== null)) return { result: { prompt: result } };
  return bad(`returned ${shown(result)}; it must return the text of a prompt, or messages`);
}

/** What any other function returns. What JSON cannot say is refused, lest it read as nothing. */
function plain(result) {
  if (/function|symbol|bigint/.test(typeof result)) return bad(`returned ${shown(result)}, which is no JSON`);
  return { result: { value: result ?? null } };
}

const RESULTS = {
  verdict: { read: verdict, named: 'verdict' },
  prompt: { read: prompt, named: 'prompt' },
  value: { read: plain, named: 'value' },
};

function bad(message) {
  return { error: { code: 'bad-result', message } };
}

function shown(value) {
  return typeof value === 'function' ? 'a function' : Array.isArray(value) ? 'a list' : String(value).slice(0, 60);
}

/** What was thrown and where in the user's file: `raised TypeError: no (min-words.ts:5)`. */
function described(error, file) {
  const built = notBuilt(error);
  if (built) return `raised SyntaxError: ${built}`;
  if (!(error instanceof Error)) return `raised ${shown(error)}`;
  const place = (error.stack ?? '').split('\n').find((line) => line.includes(`${file}:`));
  const line = place?.slice(place.indexOf(`${file}:`) + file.length + 1).match(/^\d+/)?.[0];
  return `raised ${error.name}: ${error.message}${line ? ` (${basename(file)}:${line})` : ''}`;
}

/** Why bun could not read a file, with the place: it throws messages of its own, several together, that have no stack. */
function notBuilt(error) {
  const first = error?.errors?.[0] ?? error;
  const { file, line } = first?.position ?? {};
  return line ? `${first.message}${file ? ` (${basename(file)}:${line})` : ''}` : undefined;
}

// --- users' files

/**
 * What a request names, and what is made of its result: a file or `javascript:CODE`, which grade; `function:NAME:FILE`,
 * which does too, `prompt:NAME:FILE`, `call:NAME:FILE` or `provider:NAME:FILE`, whose name may lack; or
 * `expression:NAMES:CODE`.
 */
function parsed(source) {
  const kinds = /^(javascript|function|prompt|call|provider|expression):(?:([^:]*):)?(.*)$/s;
  const [, kind, name, rest] = kinds.exec(source) ?? [];
  if (kind === 'javascript') return { code: source.slice('javascript:'.length), file: INLINE, kind: 'verdict' };
  if (kind === 'expression') return { code: rest, names: name, file: INLINE, kind };
  if (!kind) return { file: source, kind: 'verdict' };
  return { name, file: rest, kind: kind === 'function' ? 'verdict' : kind };
}

function load(key, source) {
  let promise = loading.get(key);
  if (!promise) {
    // one after the other, unless one hangs: `require` does not wait for a module that is being imported
    promise = Promise.race([lastLoad, setTimeout(LOAD_MS, undefined, { ref: false })])
      .then(() => loaded(source))
      .then((grader) => {
        graders.set(key, grader);
        return grader;
      });
    loading.set(key, promise);
    lastLoad = promise.catch(() => {});
  }
  return promise;
}

async function loaded({ code, names, name, file, kind }) {
  if (kind === 'expression') return givenArguments(compiled(code, names));
  if (code !== undefined) return givenBoth(compiled(code));
  files.set(file, files.get(file));
  const module = await import(pathToFileURL(file).href);
  if (kind === 'provider') return providerFrom(name ? exported(module, name) : defaultOf(module));
  if (kind === 'call') return givenArguments(calledIn(module, name));
  const isPrompt = kind === 'prompt';
  if (name) {
    const named = exported(module, name);
    if (typeof named !== 'function') throw new Error(`the file exports no function '${name}'`);
    return isPrompt || defined.has(named) ? givenContext(named) : givenBoth(named);
  }
  const handler = handlerIn(module) ?? files.get(file);
  const define = isPrompt ? 'definePromptTemplate' : 'defineAssertion';
  if (!handler) throw new Error(`the file exports no handler; write \`export default ${define}(…)\``);
  const isOurs = name === undefined && handler.length < 2; // a function of two parameters is promptfoo's
  return isPrompt || isOurs || defined.has(handler) ? givenContext(handler) : givenBoth(handler);
}

function exported(module, name) {
  return module[name] ?? module.default?.[name];
}

/** What a file exports by default, also as CommonJS and transpilers put it; all that it exports where it has none. */
function defaultOf(module) {
  return module.default?.default ?? module.default ?? module['module.exports'] ?? { ...module };
}

/** The function of a file; a default export that is no function stands for itself, as a list of cases does. */
function calledIn(module, name) {
  const found = name ? exported(module, name) : defaultOf(module);
  if (name && typeof found !== 'function') throw new Error(`the file exports no function '${name}'`);
  return typeof found === 'function' ? found : () => found;
}

function givenArguments(called) {
  return (payload) => called(...payload.arguments);
}

function givenContext(handler) {
  return ({ promptfoo: _, ...payload }) => handler(contextOf(payload));
}

/** The default export, also as CommonJS and transpilers put it. */
function handlerIn(module) {
  const found = [module.default, module.default?.default, module['module.exports']];
  return found.find((one) => typeof one === 'function');
}

globalThis[Symbol.for('agentv.grader')] = {
  // a file may call defineAssertion and export nothing
  defined(handler) {
    defined.add(handler);
    const stack = new Error().stack ?? '';
    for (const [file, found] of files) {
      if (!found && (stack.includes(`${file}:`) || stack.includes(`${pathToFileURL(file).href}:`))) {
        files.set(file, handler);
      }
    }
  },
};

// --- what a file must not do to the process that it shares with others

for (const name of ['exit', 'reallyExit', 'abort']) {
  process[name] = (status = '') => {
    throw new Error(`called process.${name}(${status})`);
  };
}

function stray(error) {
  const id = current.getStore();
  if (open.has(id)) refuse(id, 'assertion-raised', described(error, open.get(id)));
  else console.error(error);
}

process.on('uncaughtException', stray);
process.on('unhandledRejection', stray);

await resolveSdk();
send({ id: 0 }); // ready
await listen();
exit(0);
