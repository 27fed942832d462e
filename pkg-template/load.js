// @ts-check
/** Loads the module once. The only place that names the `.wasm` file; nothing happens at import. */

import initGlue, { initSync as initGlueSync } from './core/tasuki_core.js';
import { TasukiError } from './errors.js';

/** @type {Promise<void> | null} */
let loading = null;
let loaded = false;

export const isLoaded = () => loaded;

/** @param {any} [source] URL, text, Response (or a promise of one), bytes or a compiled module; default: beside the package */
export function init(source) {
  if (loaded) return Promise.resolve();
  loading ??= load(source).then(() => { loaded = true; }, (error) => { loading = null; throw error; });
  return loading;
}

/** @param {BufferSource | WebAssembly.Module} source */
export function initSync(source) {
  if (loaded) return;
  try { initGlueSync({ module: source }); } catch (error) { throw explain(error, 'the given bytes'); }
  loaded = true;
}

/** @param {any} source */
async function load(source) {
  const given = await source;
  if (given instanceof WebAssembly.Module) { await start(given, 'the given module'); return; }
  if (ArrayBuffer.isView(given) || given instanceof ArrayBuffer) { await start(given, 'the given bytes'); return; }
  const url = given ?? new URL('./core/tasuki_core_bg.wasm', import.meta.url);
  const response = typeof Response !== 'undefined' && url instanceof Response ? url : null;
  const name = response ? response.url || 'the given response' : String(url);
  if (!response && name.startsWith('file:') && typeof process !== 'undefined' && process.versions?.node) {
    const { readFile } = await import(/* @vite-ignore */ /* webpackIgnore: true */ 'node:fs/promises');
    await start(await readFile(new URL(name)), name);
    return;
  }
  await start(await fetched(response ?? url, name), name);
}

/** @param {Response | URL | string} from @param {string} name */
async function fetched(from, name) {
  let response;
  try {
    response = from instanceof Response ? from : await fetch(from);
  } catch (cause) {
    throw new TasukiError('load.unreachable', `The module could not be fetched from ${name}. Is the page offline, or the address wrong?`, { cause, retryable: true });
  }
  if (!response.ok) throw new TasukiError('load.not_found', `${name} answered ${response.status}. Serve core/tasuki_core_bg.wasm there, or pass its address to init().`, { details: { status: response.status } });
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes[0] !== 0x00 || bytes[1] !== 0x61) {
    const html = /^\s*</.test(new TextDecoder().decode(bytes.subarray(0, 64)));
    throw new TasukiError(html ? 'load.html_instead_of_wasm' : 'load.not_wasm', html
      ? `${name} answered with an HTML page, not with the module: the server has a fallback for unknown addresses. Copy core/tasuki_core_bg.wasm to where it is served from, or pass its address to init().`
      : `${name} is no WebAssembly module.`);
  }
  return bytes;
}

/** @param {any} module @param {string} name */
async function start(module, name) {
  try {
    await initGlue({ module_or_path: module });
  } catch (error) {
    throw explain(error, name);
  }
}

/** @param {any} error @param {string} name */
function explain(error, name) {
  if (/Content.Security.Policy|unsafe-eval/i.test(String(error?.message))) {
    return new TasukiError('load.csp', "The page's Content-Security-Policy forbids WebAssembly. Add 'wasm-unsafe-eval' to its script-src.", { cause: error });
  }
  return new TasukiError('load.failed', `The module from ${name} could not be started: ${error?.message ?? error}`, { cause: error });
}
