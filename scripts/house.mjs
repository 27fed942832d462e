// @ts-check
/** Where things stand in this house, which versions are pinned, and how a command is run. Knows no stage and no tool's options. */

import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
export const TOOLS = join(ROOT, '.tools');
export const CACHE = join(ROOT, '.cache');
export const PKG = join(ROOT, 'pkg');
export const TEMPLATE = join(ROOT, 'pkg-template');
export const WASM_TARGET = 'wasm32-unknown-unknown';

/** Command-line tools that cargo builds, by crate. The wasm-bindgen version is the crate's: the two must be equal. */
export const PINS = { 'wasm-bindgen-cli': crateVersion('wasm-bindgen'), 'wasm-pack': '0.15.1' };

/** The exact version that Cargo.toml asks for. @param {string} crate */
function crateVersion(crate) {
  const found = new RegExp(`^${crate} = "=([^"]+)"`, 'm').exec(readFileSync(join(ROOT, 'Cargo.toml'), 'utf8'));
  if (!found) throw new Error(`Cargo.toml must pin ${crate} exactly (= "=x.y.z").`);
  return found[1];
}

/** What a person has to do; printed without a stack. */
export class Trouble extends Error {}

const windows = process.platform === 'win32';
const executable = (/** @type {string} */ path) => {
  try { accessSync(path, constants.X_OK); return true; } catch { return false; }
};

/** @param {string} name @returns {string | null} */
export function which(name) {
  const folders = [join(TOOLS, 'bin'), ...(process.env.PATH ?? '').split(delimiter)].filter(Boolean);
  const names = windows ? [`${name}.exe`, `${name}.cmd`] : [name];
  return folders.flatMap((folder) => names.map((each) => join(folder, each))).find(executable) ?? null;
}

export const nodeModule = (/** @type {string[]} */ ...parts) => join(ROOT, 'node_modules', ...parts);
export const has = (/** @type {string[]} */ ...parts) => existsSync(join(ROOT, ...parts));

/** Our own tools come first on the path, and every child keeps cargo's homes even when HOME is empty. */
export const toolEnv = () => ({ ...process.env, PATH: [join(TOOLS, 'bin'), process.env.PATH ?? ''].join(delimiter) });

export const seconds = (/** @type {number} */ since) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/**
 * @typedef {{ code: number, output: string }} Ended
 * @typedef {{ cwd?: string, env?: Record<string, string | undefined>, quiet?: boolean, mayFail?: boolean }} RunOptions
 */

/**
 * Runs a command; its output is shown as it comes (unless quiet) and returned.
 * @param {string} command @param {string[]} args @param {RunOptions} [options] @returns {Promise<Ended>}
 */
export function run(command, args, { cwd = ROOT, env, quiet = false, mayFail = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...toolEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'], shell: windows && command.endsWith('.cmd') });
    let output = '';
    const keep = (/** @type {NodeJS.WriteStream} */ stream) => (/** @type {Buffer} */ chunk) => {
      output += chunk;
      if (!quiet) stream.write(chunk);
    };
    child.stdout.on('data', keep(process.stdout));
    child.stderr.on('data', keep(process.stderr));
    child.on('error', (error) => reject(new Trouble(`${command} cannot be started: ${error.message}`)));
    child.on('close', (code, signal) => {
      const ended = { code: code ?? (signal ? 128 : 1), output };
      if (ended.code === 0 || mayFail) return resolve(ended);
      reject(new Trouble(`${command} ${args.join(' ')} ended with ${signal ?? `code ${code}`}${quiet ? `:\n${output}` : '.'}`));
    });
  });
}

/** Says that a long step is still going on. @template T @param {string} what @param {() => Promise<T>} work @returns {Promise<T>} */
export async function step(what, work) {
  const since = performance.now();
  console.log(`· ${what} …`);
  const alive = setInterval(() => console.log(`· ${what}: still at it, ${seconds(since)}`), 20_000);
  try {
    const result = await work();
    console.log(`· ${what}: done in ${seconds(since)}`);
    return result;
  } finally {
    clearInterval(alive);
  }
}

/** The body of a script that is called by hand: troubles are told in a sentence. @param {() => Promise<unknown>} body */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    console.error(error instanceof Trouble ? `\n${error.message}` : error);
    process.exitCode = 1;
  }
}

/** True where the file was started itself, not imported. @param {string} url */
export const startedAs = (url) => Boolean(process.argv[1]) && fileURLToPath(url) === process.argv[1];
