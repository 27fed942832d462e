// @ts-check
/**
 * The one error class of the package: thrown for mistakes of the host or the application. Mistakes of a model are
 * tool results instead; what the world did wrong is the outcome of a run.
 */

export class TasukiError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{ retryable?: boolean, retryAfterMs?: number, details?: Record<string, any>, cause?: unknown }} [options]
   */
  constructor(code, message, options = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TasukiError';
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.details = options.details ?? {};
  }
}

/** What the core threw, as an error; a trap is told apart. @param {any} thrown @returns {TasukiError} */
export function fromCore(thrown) {
  if (thrown instanceof TasukiError) return thrown;
  if (thrown && typeof thrown === 'object' && thrown.kind === 'fault') return new TasukiError(thrown.code, thrown.message, { details: thrown.details });
  return new TasukiError('core.poisoned', `The core stopped working: ${thrown?.message ?? thrown}. Its runs are loaded again from their journals.`, { cause: thrown });
}

/** An error of a host callback, as the core records it. @param {any} error */
export function toFailure(error) {
  const aborted = error?.name === 'AbortError';
  const code = typeof error?.code === 'string' && error.code ? error.code : aborted ? 'host.aborted' : 'host.failed';
  const retryAfterMs = Number.isFinite(error?.retryAfterMs) && error.retryAfterMs >= 0 ? error.retryAfterMs : undefined;
  return { code, message: String(error?.message ?? error), retryable: error?.retryable === true, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}
