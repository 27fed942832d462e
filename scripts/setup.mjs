#!/usr/bin/env node
// @ts-check
/** Installs what is missing, pinned, into the project where it can. Fast when all is there; called by every other script. */

import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { cpus, homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CACHE, PINS, ROOT, TOOLS, Trouble, WASM_TARGET, has, main, nodeModule, run, startedAs, step, which } from './house.mjs';

const debianRoot = () => existsSync('/etc/debian_version') && process.getuid?.() === 0;

/** With an empty HOME cargo and rustup would look in the wrong place; their own variables are kept where given. */
function keepHomes() {
  if (!process.env.HOME) process.env.HOME = homeOfUser();
  const cargoBin = join(process.env.CARGO_HOME ?? join(process.env.HOME, '.cargo'), 'bin');
  if (!which('cargo') && existsSync(cargoBin)) process.env.PATH = `${cargoBin}:${process.env.PATH ?? ''}`;
}

function homeOfUser() {
  try { return homedir() || tmpdir(); } catch { return tmpdir(); }
}

function checkNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < 20) throw new Trouble(`Node ${process.versions.node} is too old: install Node 20 or newer.`);
}

/** `rustc` for wasm32 is there when its standard library is. */
async function wasmTargetThere() {
  const { code, output } = await run('rustc', ['--print', 'target-libdir', '--target', WASM_TARGET], { quiet: true, mayFail: true });
  return code === 0 && existsSync(output.trim().split('\n').at(-1) ?? '');
}

async function componentsThere() {
  for (const tool of ['fmt', 'clippy']) {
    if ((await run('cargo', [tool, '--version'], { quiet: true, mayFail: true })).code !== 0) return false;
  }
  return true;
}

async function rust() {
  if (which('cargo') && (await wasmTargetThere()) && (await componentsThere())) return;
  if (!which('rustup')) {
    throw new Trouble(which('cargo')
      ? `The target ${WASM_TARGET} is missing and there is no rustup to add it. Install rustup (rustup.rs), or your distribution's Rust standard library for ${WASM_TARGET}, rustfmt and clippy.`
      : 'Rust is missing. Install rustup (rustup.rs), open a new shell and run this again.');
  }
  const channel = /channel = "(.+)"/.exec(readFileSync(join(ROOT, 'rust-toolchain.toml'), 'utf8'))?.[1] ?? 'stable';
  const wanted = ['toolchain', 'install', channel, '--profile', 'minimal', '--component', 'rustfmt', '--component', 'clippy', '--target', WASM_TARGET, '--no-self-update'];
  const { code } = await step(`Rust ${channel} with ${WASM_TARGET}`, () => run('rustup', wanted, { mayFail: true }));
  if (code !== 0 || !(await wasmTargetThere())) {
    throw new Trouble(`The target ${WASM_TARGET} for Rust ${channel} is missing, and rustup could not fetch it (see its message above; is the network closed?). By hand: rustup ${wanted.slice(0, -1).join(' ')}`);
  }
}

/** @param {keyof typeof PINS} crate */
async function cargoTool(crate) {
  const binary = crate === 'wasm-bindgen-cli' ? 'wasm-bindgen' : crate;
  const ours = join(TOOLS, 'bin', process.platform === 'win32' ? `${binary}.exe` : binary);
  if (existsSync(ours)) {
    const { output } = await run(ours, ['--version'], { quiet: true, mayFail: true });
    if (output.includes(PINS[crate])) return;
  }
  await step(`${crate} ${PINS[crate]} (built once, some minutes)`, () => run('cargo', ['install', crate, '--version', PINS[crate], '--locked', '--root', TOOLS],
    { env: { CARGO_TARGET_DIR: join(CACHE, 'cargo-tools'), CARGO_PROFILE_RELEASE_LTO: 'off', CARGO_PROFILE_RELEASE_OPT_LEVEL: '1', CARGO_BUILD_JOBS: String(cpus().length) } }));
}

/** @param {string} folder */
async function modules(folder) {
  const lock = join(folder, 'package-lock.json');
  const done = join(folder, 'node_modules', '.package-lock.json');
  if (existsSync(done) && statSync(done).mtimeMs >= statSync(lock).mtimeMs) return;
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  await step(`node modules by package-lock.json`, () => run(npm, ['ci', '--no-audit', '--no-fund'], { cwd: folder }));
}

/** @returns {string | null} */
export function findChromium() {
  const given = process.env.CHROMIUM_PATH;
  const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
  const macs = ['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome', '/Applications/Chromium.app/Contents/MacOS/Chromium'];
  return given || names.map(which).find(Boolean) || macs.find((path) => existsSync(path)) || null;
}

/** @returns {string | null} */
export const findChromedriver = () => process.env.CHROMEDRIVER || which('chromedriver');

async function browser(/** @type {boolean} */ driver) {
  const there = () => findChromium() && (!driver || findChromedriver());
  if (there()) return;
  const packages = ['chromium', 'chromium-driver'];
  if (debianRoot() && which('apt-get')) {
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    await step('chromium and chromium-driver by apt', async () => {
      const install = () => run('apt-get', ['install', '-y', '--no-install-recommends', ...packages], { env, mayFail: true });
      await run('apt-get', ['update'], { env, mayFail: true });
      await install();
    });
    if (there()) return;
  }
  throw new Trouble(`A browser is missing: ${findChromium() ? 'chromedriver' : driver ? 'Chromium (or Chrome) and chromedriver of the same version' : 'Chromium (or Chrome)'}.
Install it and run this again:
  Debian, Ubuntu  sudo apt-get install ${packages.join(' ')}
  Fedora          sudo dnf install chromium chromedriver
  macOS           brew install --cask google-chrome && brew install chromedriver
or name them with CHROMIUM_PATH and CHROMEDRIVER.`);
}

/** What each script needs. @param {{ build?: boolean, browser?: boolean, webTests?: boolean }} [need] default: everything */
export async function setup({ build = true, browser: page = true, webTests = true } = {}) {
  checkNode();
  keepHomes();
  mkdirSync(CACHE, { recursive: true });
  await modules(ROOT);
  if (build || webTests) await rust();
  if (build || webTests) await cargoTool('wasm-bindgen-cli');
  if (webTests) await cargoTool('wasm-pack');
  if (page || webTests) await browser(webTests);
  if (build && !has('node_modules', 'binaryen')) throw new Trouble(`${nodeModule('binaryen')} is missing: run npm ci.`);
}

if (startedAs(import.meta.url)) {
  await main(async () => {
    await setup();
    console.log(`All is there: rust with ${WASM_TARGET}, ${Object.entries(PINS).map(([name, version]) => `${name} ${version}`).join(', ')}, node modules, ${findChromium()}, ${findChromedriver()} (${dirname(TOOLS)})`);
  });
}
