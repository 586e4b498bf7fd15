/** How a send ended, as far as the lane's bound is concerned. */
export type LaneSignal = "success" | "timeout" | "other";

interface Lane {
  inFlight: number;
  bound: number;
  /** The last claim filled the lane's room, so more rows of it are probably due. */
  more: boolean;
}

/** Idle lanes whose learned bound is remembered: they travel with every claim, so they are few. */
const rememberedLanes = 128;

/**
 * How many sends each lane may have in flight: 4 at first, doubled by a success up to 32, halved by a time-out.
 * So an endpoint that hangs holds few slots, and one that answers gets as many as it can use.
 */
export class LaneRooms {
  readonly start: number;
  readonly #most: number;
  readonly #lanes = new Map<string, Lane>();
  #idle = 0;

  constructor(start = 4, most = 32) {
    this.start = Math.min(start, most);
    this.#most = most;
  }

  /** Rooms of the lanes that have not the room of an unknown one (`start`). */
  rooms(): Map<string, number> {
    const rooms = new Map<string, number>();
    for (const [id, lane] of this.#lanes) {
      const room = Math.max(lane.bound - lane.inFlight, 0);
      if (room !== this.start) rooms.set(id, room);
    }
    return rooms;
  }

  /** Takes note of what a claim with those rooms gave, once its sends began; `full`: it ended at its limit, so says nothing of others. */
  claimed(laneIds: Iterable<string>, rooms: ReadonlyMap<string, number>, full: boolean): void {
    const counts = new Map<string, number>();
    for (const id of laneIds) counts.set(id, (counts.get(id) ?? 0) + 1);
    if (!full)
      for (const [id, lane] of this.#lanes)
        if (!counts.has(id) && (rooms.get(id) ?? this.start) > 0) lane.more = false;
    for (const [id, count] of counts) {
      const lane = this.#lanes.get(id);
      if (lane) lane.more = count >= (rooms.get(id) ?? this.start);
    }
  }

  began(id: string): void {
    const lane = this.#lane(id);
    if (lane.inFlight++ === 0) this.#idle--;
  }

  /** To be called once for each `began`. True when the lane probably has more rows that its room kept back. */
  ended(id: string, signal: LaneSignal): boolean {
    const lane = this.#lane(id);
    if (signal === "success") lane.bound = Math.min(lane.bound * 2, this.#most);
    else if (signal === "timeout") lane.bound = Math.max(Math.floor(lane.bound / 2), 1);
    if (--lane.inFlight === 0) {
      this.#idle++;
      if (lane.bound === this.start || this.#idle > rememberedLanes) this.#forget(id);
    }
    return lane.more;
  }

  #lane(id: string): Lane {
    let lane = this.#lanes.get(id);
    if (!lane) {
      lane = { inFlight: 0, bound: this.start, more: false };
      this.#lanes.set(id, lane);
      this.#idle++;
    }
    return lane;
  }

  #forget(id: string): void {
    this.#lanes.delete(id);
    this.#idle--;
  }
}
