/**
 * Rows by key, in layers: a layer sees the rows under it and keeps its own changes apart until it is merged
 * down. That is all a transaction is here. Rows are never changed in place.
 */
export class Table<Row> {
  /** Made with the first change: a layer changes few tables of the many there are. */
  #own: Map<string, Row | undefined> | undefined;
  readonly #under: Table<Row> | undefined;

  constructor(under?: Table<Row>) {
    this.#under = under;
  }

  get(key: string): Row | undefined {
    const own = this.#own;
    if (own === undefined) return this.#under?.get(key);
    const row = own.get(key);
    return row !== undefined || own.has(key) ? row : this.#under?.get(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  set(key: string, row: Row): void {
    this.#own ??= new Map();
    this.#own.set(key, row);
  }

  delete(key: string): void {
    // A layer must remember that the row under it is gone; the lowest one just forgets it.
    if (!this.#under) this.#own?.delete(key);
    else {
      this.#own ??= new Map();
      this.#own.set(key, undefined);
    }
  }

  /** Every row, in no order to rely on. */
  values(): Iterable<Row> {
    // What a layer did not touch is read without it.
    if (this.#under && !this.#own?.size) return this.#under.values();
    return this.#values();
  }

  *#values(): IterableIterator<Row> {
    if (!this.#own) return;
    if (this.#under) yield* this.#under.#valuesExcept(this.#own);
    for (const row of this.#own.values()) if (row !== undefined) yield row;
  }

  *#valuesExcept(hidden: ReadonlyMap<string, unknown>): IterableIterator<Row> {
    if (!this.#own?.size) {
      if (this.#under) yield* this.#under.#valuesExcept(hidden);
      return;
    }
    for (const [key, row] of this.#own) if (row !== undefined && !hidden.has(key)) yield row;
    if (!this.#under) return;
    const all = new Map<string, unknown>([...hidden, ...this.#own]);
    yield* this.#under.#valuesExcept(all);
  }

  /** Moves this layer's changes into the one under it. */
  merge(): void {
    if (!this.#own) return;
    for (const [key, row] of this.#own) {
      if (row === undefined) this.#under?.delete(key);
      else this.#under?.set(key, row);
    }
    this.#own = undefined;
  }
}
