// @ts-check
/** Journals in memory: for tests, and for pages that keep nothing. Each store is a world of its own. */

import { TasukiError } from '../errors.js';

/** @typedef {import('../types.js').RunSummary} RunSummary */

/** Whether a summary is asked for. @param {RunSummary} summary @param {import('../types.js').RunQuery} query */
const fits = (summary, query) => (query.stableChatId === undefined || summary.stableChatId === query.stableChatId)
  && (!query.statuses || query.statuses.includes(summary.status))
  && (!query.before || newer(query.before, summary) < 0);

/** Newest first. @param {{ createdAt: string, runId: string }} a @param {{ createdAt: string, runId: string }} b */
const newer = (a, b) => (a.createdAt === b.createdAt ? (a.runId < b.runId ? 1 : a.runId > b.runId ? -1 : 0) : a.createdAt < b.createdAt ? 1 : -1);

/** @returns {import('../types.js').Store} */
export function memoryStore() {
  /** @type {Map<string, { lines: string[], summary: RunSummary, blobs: Map<string, string> }>} */
  const runs = new Map();
  /** @type {Map<string, Map<string, string>>} */
  const early = new Map();
  /** @type {Set<string>} */
  const held = new Set();
  /** @type {Map<string, Set<() => void>>} */
  const watchers = new Map();
  /** @type {Map<string, { newest: string | null, states: Map<string, Record<string, string>> }>} */
  const persist = new Map();

  return {
    async append(runId, expectedSeq, lines, summary) {
      const run = runs.get(runId);
      const has = run?.lines.length ?? 0;
      if (has !== expectedSeq) throw new TasukiError('store.conflict', `The journal of ${runId} holds ${has} events, not ${expectedSeq}: another writer was faster.`, { details: { expectedSeq, actualSeq: has } });
      if (run) { run.lines.push(...lines); run.summary = structuredClone(summary); }
      else { runs.set(runId, { lines: [...lines], summary: structuredClone(summary), blobs: early.get(runId) ?? new Map() }); early.delete(runId); }
      for (const watcher of watchers.get(runId) ?? []) queueMicrotask(watcher);
    },
    async read(runId, { afterSeq = 0, beforeSeq = Infinity, limit = Infinity } = {}) {
      const lines = runs.get(runId)?.lines ?? [];
      return lines.slice(afterSeq, Math.min(lines.length, beforeSeq - 1, afterSeq + limit));
    },
    async putBlobs(runId, blobs) {
      let kept = runs.get(runId)?.blobs ?? early.get(runId);
      if (!kept) early.set(runId, kept = new Map());
      for (const [hash, text] of Object.entries(blobs)) kept.set(hash, text);
    },
    async getBlobs(runId, hashes) {
      const kept = runs.get(runId)?.blobs ?? early.get(runId);
      /** @type {Record<string, string>} */
      const found = {};
      for (const hash of hashes) { const text = kept?.get(hash); if (text !== undefined) found[hash] = text; }
      return found;
    },
    async list(query = {}) {
      const found = [...runs.values()].map((run) => run.summary).filter((summary) => fits(summary, query)).sort(newer);
      return structuredClone(found.slice(0, query.limit ?? found.length));
    },
    async delete(runId) { runs.delete(runId); early.delete(runId); },
    watch(runId, onAppend) {
      const set = watchers.get(runId) ?? new Set();
      watchers.set(runId, set.add(onAppend));
      return () => { set.delete(onAppend); };
    },
    async acquire(runId) {
      if (held.has(runId)) return null;
      held.add(runId);
      return () => { held.delete(runId); };
    },
    async readPersist(stableChatId, stateId) {
      const chat = persist.get(stableChatId);
      const id = stateId ?? chat?.newest ?? null;
      return { stateId: id, files: { ...(id === null ? {} : chat?.states.get(id)) } };
    },
    async writePersist(stableChatId, expectedStateId, stateId, files) {
      const chat = persist.get(stableChatId) ?? { newest: null, states: new Map() };
      if (chat.states.has(stateId)) return;
      if (expectedStateId !== null && !chat.states.has(expectedStateId)) throw new TasukiError('store.persist_conflict', `The chat has no state ${expectedStateId} to go on from.`, { details: { expectedStateId, newest: chat.newest } });
      if (expectedStateId === null && chat.newest !== null) throw new TasukiError('store.persist_conflict', 'The chat has a newer state than this run began with.', { details: { expectedStateId, newest: chat.newest } });
      chat.states.set(stateId, { ...files });
      chat.newest = stateId;
      persist.set(stableChatId, chat);
    },
  };
}
