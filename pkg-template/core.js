// @ts-check
/** The bare synchronous core, for hosts that drive it themselves. Never calls back; plain data in and out. */

import * as glue from './core/tasuki_core.js';
import { fromCore, TasukiError } from './errors.js';
import { init, initSync, isLoaded } from './load.js';

export { init, initSync, TasukiError };

/** @template T @param {() => T} call @returns {T} */
function guarded(call) {
  if (!isLoaded()) throw new TasukiError('core.not_loaded', 'Call and await init() first.');
  try { return call(); } catch (thrown) { throw fromCore(thrown); }
}

/** Pure helpers of the core, by type. @param {Record<string, any>} request @returns {any} */
export const helper = (request) => guarded(() => glue.helper(request));

export class RunMachine {
  #machine;
  #ids;

  /** @param {{ locale?: string, localePack?: Record<string, string>, ids?: 'random' | { seed: number } }} [options] */
  constructor(options = {}) {
    const { ids, ...rest } = options;
    this.#ids = ids ?? 'random';
    this.#machine = guarded(() => new glue.Machine(JSON.stringify(rest)));
  }

  /** @param {string} lines */
  load(lines) { return guarded(() => this.#machine.load(String(lines))); }

  /** @param {any} command @param {number} nowMs @returns {import('./types.js').Proposal} */
  propose(command, nowMs) {
    return guarded(() => {
      const named = command?.type === 'start' && command.runId == null ? { ...command, runId: newRunId(this.#ids) } : command;
      return this.#machine.propose(named, Number(nowMs));
    });
  }

  /** @returns {import('./types.js').Effect[]} */
  commit() { return guarded(() => this.#machine.commit()); }
  abandon() { guarded(() => this.#machine.abandon()); }
  /** @returns {import('./types.js').Effect[]} */
  outstanding() { return guarded(() => this.#machine.outstanding()); }
  /** @param {{ atSeq?: number }} [options] @returns {import('./types.js').Timeline} */
  timeline(options) { return guarded(() => this.#machine.timeline(options?.atSeq)); }
  /** A question about the run as it stands. @param {Record<string, any>} request @returns {any} */
  query(request) { return guarded(() => this.#machine.query(request)); }
  free() { this.#machine.free(); }
  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { this.free(); }
}

/** @param {'random' | { seed: number }} ids @returns {string} */
export const newRunId = (ids = 'random') => (ids === 'random' ? guarded(() => glue.newRunId()) : helper({ type: 'seeded_run_id', seed: ids.seed }));

/** @returns {{ version: string, journalVersion: number }} */
export const buildInfo = () => helper({ type: 'build_info' });

/** Every check of one pair with its outcome. @param {Record<string, any>} query */
export const explain = (query) => helper({ type: 'explain', ...query });
