/** How a send ended, as far as the lane's bound is concerned. */
export type LaneSignal = "success" | "timeout" | "other";

interface Lane {
  inFlight: number;
  bound: number;
  /** The last claim filled the lane's room, so more rows of it are probably due. */
  more: boolean;
  /** Outcomes on their way to the store that will hold the lane (410, Retry-After): nothing is sent before. */
  closing: number;
}

/** The room of a lane of which nothing is known: one send asks whether anybody is there. */
const unknownRoom = 1;

/** Idle lanes whose learned bound is remembered: they travel with every claim, so they are few. */
const rememberedLanes = 128;

/**
 * How many sends each lane may have in flight: 1 until the first success, then 4, doubled by a success up to 32,
 * halved by a time-out. So an endpoint that hangs holds one slot, one that is gone is asked once
 * (docs/decisions/0013), and one that answers gets as many as it can use.
 */
export class LaneRooms {
  /** Room of a lane that `rooms` does not name. */
  readonly unknown = unknownRoom;
  readonly #start: number;
  readonly #most: number;
  readonly #lanes = new Map<string, Lane>();
  /** Those of them without a send, the longest idle first. */
  readonly #idle = new Map<string, Lane>();

  constructor(start = 4, most = 32) {
    this.#start = Math.min(start, most);
    this.#most = most;
  }

  /** Rooms of the lanes that have not the room of an unknown one. */
  rooms(): Map<string, number> {
    const rooms = new Map<string, number>();
    for (const [id, lane] of this.#lanes) {
      const room = lane.closing > 0 ? 0 : Math.max(lane.bound - lane.inFlight, 0);
      if (room !== this.unknown) rooms.set(id, room);
    }
    return rooms;
  }

  /** Takes note of what a claim with those rooms gave, once its sends began; `full`: it ended at its limit, so says nothing of others. */
  claimed(laneIds: Iterable<string>, rooms: ReadonlyMap<string, number>, full: boolean): void {
    const counts = new Map<string, number>();
    for (const id of laneIds) counts.set(id, (counts.get(id) ?? 0) + 1);
    if (!full)
      for (const [id, lane] of this.#lanes)
        if (!counts.has(id) && (rooms.get(id) ?? this.unknown) > 0) lane.more = false;
    for (const [id, count] of counts) {
      const lane = this.#lanes.get(id);
      if (lane) lane.more = count >= (rooms.get(id) ?? this.unknown);
    }
  }

  began(id: string): void {
    this.#hold(id).inFlight++;
  }

  /** An outcome that holds the lane is being recorded: no room until `closed` is called as often. */
  closing(id: string): void {
    this.#hold(id).closing++;
  }

  closed(id: string): void {
    const lane = this.#lane(id);
    lane.closing--;
    this.#release(id, lane);
  }

  /** After its circuit closed: as if nothing were known of it. */
  restart(id: string): void {
    const lane = this.#hold(id);
    lane.bound = this.unknown;
    this.#release(id, lane);
  }

  /** To be called once for each `began`. True when the lane probably has more rows that its room kept back. */
  ended(id: string, signal: LaneSignal): boolean {
    const lane = this.#lane(id);
    if (signal === "success")
      lane.bound = lane.bound < this.#start ? this.#start : Math.min(lane.bound * 2, this.#most);
    else if (signal === "timeout") lane.bound = Math.max(Math.floor(lane.bound / 2), 1);
    lane.inFlight--;
    this.#release(id, lane);
    return lane.more;
  }

  /** The lane, busy from now on. */
  #hold(id: string): Lane {
    const lane = this.#lane(id);
    this.#idle.delete(id);
    return lane;
  }

  /** The longest idle lane is the one to forget: a busy one is idle for moments only, and must not begin again. */
  #release(id: string, lane: Lane): void {
    if (lane.inFlight + lane.closing > 0) return;
    if (lane.bound === this.unknown) {
      this.#lanes.delete(id);
      return;
    }
    this.#idle.set(id, lane);
    if (this.#idle.size <= rememberedLanes) return;
    const [oldest] = this.#idle.keys();
    this.#idle.delete(oldest!);
    this.#lanes.delete(oldest!);
  }

  #lane(id: string): Lane {
    let lane = this.#lanes.get(id);
    if (!lane) {
      lane = { inFlight: 0, bound: this.unknown, more: false, closing: 0 };
      this.#lanes.set(id, lane);
    }
    return lane;
  }
}
