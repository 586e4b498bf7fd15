/** One problem in a value that somebody gave: where (JSON pointer, RFC 6901) and what. */
export interface Problem {
  readonly pointer: string;
  readonly message: string;
}

const brand = Symbol.for("hookwell.error");

/**
 * Base of every error Hookwell throws on purpose. `code` is stable and listed in docs/reference/errors.md;
 * the message says what happened, to which id, and what to do. Use {@link isHookwellError} to recognise one
 * across copies of the package.
 */
export class HookwellError extends Error {
  readonly code: string;
  /** Which event of the list given to `emitMany` was refused, from 0. */
  index?: number;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    Object.defineProperty(this, brand, { value: true });
  }
}

/** True for an error made by this or any other loaded copy of Hookwell. */
export function isHookwellError(value: unknown): value is HookwellError {
  return typeof value === "object" && value !== null && brand in value;
}

/** A value given to the API is malformed; `problems` names each field. */
export class ValidationError extends HookwellError {
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[], code = "validation_failed") {
    super(code, problems.map((p) => `${p.pointer || "/"}: ${p.message}`).join("; "));
    this.problems = problems;
  }
}

/** An identifier (event id, type, subject, tenant, owner, project) is malformed. */
export class InvalidIdentifierError extends ValidationError {
  constructor(field: string, message: string) {
    super([{ pointer: `/${field}`, message }], "invalid_identifier");
  }
}

/** The event type is not in the catalogue. */
export class UnknownEventTypeError extends HookwellError {
  /** The field of the input that named it. */
  readonly pointer: string;
  constructor(type: string, known: readonly string[], pointer = "/type") {
    super(
      "unknown_event_type",
      `Unknown event type ${JSON.stringify(type)}; add it to defineEvents(). Known: ${known.join(", ") || "none"}.`,
    );
    this.pointer = pointer;
  }
}

/** The event type has no example, which a test send needs. */
export class NoExampleError extends ValidationError {
  constructor(message: string) {
    super([{ pointer: "/eventType", message }], "no_example");
  }
}

/** The data does not satisfy the schema of its event type; nothing was written. */
export class EventSchemaError extends ValidationError {
  constructor(type: string, problems: readonly Problem[]) {
    super(
      problems.map((p) => ({ pointer: p.pointer, message: `${p.message} (event type ${type})` })),
      "event_schema_failed",
    );
  }
}

/** A schema answered with a promise where only a synchronous one can be used. */
export class AsyncSchemaError extends HookwellError {
  constructor(type: string) {
    super(
      "async_schema",
      `The schema of ${type} validates asynchronously, which cannot happen inside a synchronous SQLite transaction; use a synchronous schema.`,
    );
  }
}

/** `tx` is not inside a transaction, so the event could commit without its change. */
export class NotInTransactionError extends HookwellError {
  constructor(detail: string) {
    super(
      "not_in_transaction",
      `${detail} Pass the transaction object of the change, or tx: "own" to let Hookwell open one for the event alone.`,
    );
  }
}

/** The subject already has an event with this revision. */
export class RevisionConflictError extends HookwellError {
  constructor(subject: string, revision: number) {
    super(
      "revision_conflict",
      `Subject ${JSON.stringify(subject)} already has an event with revision ${revision}; raise the revision in the same transaction as the change.`,
    );
  }
}

/** The body, or the data it is made of, is over the limit. */
export class PayloadTooLargeError extends HookwellError {
  constructor(eventId: string, bytes: number, limit: number) {
    super(
      "payload_too_large",
      `Event ${eventId} is ${bytes} bytes and the limit is ${limit}; send a reference to the large part instead.`,
    );
  }
}

/** The event id is taken by an event with other content. */
export class EventMismatchError extends HookwellError {
  constructor(eventId: string) {
    super(
      "event_mismatch",
      `Event ${eventId} exists with other content; an id names one fact, so use a new id for a new fact.`,
    );
  }
}

/** The (event, subscription) pair is queued already, whatever became of it. */
export class DeliveryExistsError extends HookwellError {
  constructor(eventId: string, subscriptionId: string) {
    super("delivery_exists", `Event ${eventId} is already queued for subscription ${subscriptionId}.`);
  }
}

/** A row with this id exists already. */
export class DuplicateIdError extends HookwellError {
  constructor(kind: string, id: string) {
    super("duplicate_id", `A ${kind} with id ${id} exists already; ids must be unique.`);
  }
}

/** Nothing visible to the caller has this id. */
export class NotFoundError extends HookwellError {
  constructor(kind: string, id: string) {
    super("not_found", `No ${kind} with id ${JSON.stringify(id)}.`);
  }
}

/** The thing exists, but not in a state that allows this. */
export class InvalidStateError extends HookwellError {
  /** `advice` says what to do, such as "enable it instead". */
  constructor(kind: string, id: string, state: string, action: string, advice?: string) {
    super("invalid_state", `Cannot ${action} ${kind} ${id}: it is ${state}${advice ? `; ${advice}` : ""}.`);
  }
}

/** The thing was changed after the version that the caller saw; nothing was written. */
export class VersionConflictError extends HookwellError {
  constructor(kind: string, id: string) {
    super(
      "version_conflict",
      `${kind} ${id} was changed since the version that was given; read it again, and make the change on what it is now.`,
    );
  }
}

/** A subscription has as many valid signing secrets as it may have; nothing was changed. */
export class TooManySecretsError extends HookwellError {
  constructor(subscriptionId: string, most: number, nextEnd: Date) {
    super(
      "too_many_secrets",
      `Subscription ${subscriptionId} has ${most} valid secrets, the most at once. Rotate after ${nextEnd.toISOString()}, when the next of them ends, or with an overlap of 0, which ends them all now.`,
    );
  }
}

/** Hookwell is set up in a way that cannot work; the message names the mend. */
export class ConfigurationError extends HookwellError {
  constructor(message: string, code = "configuration") {
    super(code, message);
  }
}

/** The database schema is missing, or is one this build cannot use. */
export class SchemaVersionError extends HookwellError {
  constructor(message: string) {
    super("schema_version", message);
  }
}

/** No encryption key was given, or the given ones do not open what is stored. */
export class EncryptionKeyError extends HookwellError {
  constructor(message: string) {
    super("encryption_key", message);
  }
}

/** The database cannot be used now: away, busy beyond patience, read-only, or full. */
export class StorageError extends HookwellError {
  constructor(message: string, options?: ErrorOptions) {
    super("storage", message, options);
  }
}

/** The destination of a webhook is not allowed by the address guard. */
export class BlockedAddressError extends ValidationError {
  constructor(message: string, pointer = "/url") {
    super([{ pointer, message }], "blocked_address");
  }
}

/** Why a received webhook was refused. */
export type VerificationCode =
  | "missing_header"
  | "malformed_header"
  | "bad_timestamp"
  | "too_old"
  | "too_new"
  | "no_match";

/** A received webhook does not prove that it comes from the holder of the secret, or proves it too late. */
export class VerificationError extends HookwellError {
  declare readonly code: VerificationCode;
  constructor(code: VerificationCode, message: string) {
    super(code, message);
  }
}
