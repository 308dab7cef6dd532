/*
 * SPDX-License-Identifier: CC-BY-4.0
 *
 * Departure board for the ferries between islands that are on no chart.
 * Free to copy and change if crumb-nb is credited. Do not miss a boat
 * because of it.
 */

type Minutes = number;

interface Sailing {
  readonly line: string;
  readonly quay: string;
  readonly due: Minutes;
  readonly foot: number;
  readonly cars: number;
}

type Notice =
  | { kind: "late"; line: string; by: Minutes }
  | { kind: "cancelled"; line: string; reason: string }
  | { kind: "moved"; line: string; quay: string };

/** Log how often a method was asked for something it did not know. */
function remembersMisses<T extends { misses: string[] }>(
  _target: T,
  _name: string,
  descriptor: TypedPropertyDescriptor<(key: string) => unknown>,
): void {
  const original = descriptor.value!;
  descriptor.value = function (this: T, key: string) {
    const answer = original.call(this, key);
    if (answer === undefined) {
      this.misses.push(key);
    }
    return answer;
  };
}

function sealed(constructor: Function): void {
  Object.seal(constructor);
  Object.seal(constructor.prototype);
}

@sealed
export class Board {
  /** What travellers see: a line of text for each sailing. */
  static Row = class {
    constructor(
      readonly time: string,
      readonly line: string,
      readonly quay: string,
      readonly remark: string,
    ) {}

    toString(): string {
      return [this.time, this.line.padEnd(14), this.quay.padStart(3), this.remark].join(" ").trimEnd();
    }
  };

  misses: string[] = [];
  private readonly sailings = new Map<string, Sailing>();
  private readonly notices: Notice[] = [];

  constructor(private readonly now: () => Minutes) {}

  schedule(sailing: Sailing): this {
    if (this.sailings.has(sailing.line)) {
      throw new Error(`line ${sailing.line} is on the board already`);
    }
    this.sailings.set(sailing.line, sailing);
    return this;
  }

  announce(notice: Notice): void {
    this.notices.push(notice);
  }

  @remembersMisses
  find(line: string): Sailing | undefined {
    return this.sailings.get(line);
  }

  /**
   * Rows in order of actual departure.
   *
   * Later notices overrule earlier ones about the same line, except that nothing revives a
   * cancelled sailing: passengers who went home must not learn that it left after all.
   */
  rows(limit = 8): string[] {
    const delay = new Map<string, Minutes>();
    const moved = new Map<string, string>();
    const gone = new Map<string, string>();

    for (const notice of this.notices) {
      switch (notice.kind) {
        case "late":
          delay.set(notice.line, notice.by);
          break;
        case "moved":
          moved.set(notice.line, notice.quay);
          break;
        case "cancelled":
          if (!gone.has(notice.line)) {
            gone.set(notice.line, notice.reason);
          }
          break;
      }
    }

    const shown: { at: Minutes; row: InstanceType<typeof Board.Row> }[] = [];
    for (const sailing of this.sailings.values()) {
      const late = delay.get(sailing.line) ?? 0;
      const at = sailing.due + late;
      const cancelled = gone.get(sailing.line);

      // a boat that has left is of no interest; a cancelled one is, for half an hour
      if (cancelled === undefined && at < this.now()) {
        continue;
      }
      if (cancelled !== undefined && sailing.due + 30 < this.now()) {
        continue;
      }

      const remarks: string[] = [];
      if (cancelled !== undefined) {
        remarks.push(`does not sail: ${cancelled}`);
      } else {
        if (late > 0) {
          remarks.push(`${late} min late`);
        }
        if (sailing.cars === 0) {
          remarks.push("foot passengers only");
        } else if (sailing.foot === 0) {
          remarks.push("vehicles only");
        }
      }

      const quay = moved.get(sailing.line) ?? sailing.quay;
      if (quay !== sailing.quay) {
        remarks.push(`not quay ${sailing.quay}`);
      }

      shown.push({
        at,
        row: new Board.Row(clock(sailing.due), sailing.line, quay, remarks.join(", ")),
      });
    }

    shown.sort((a, b) => a.at - b.at || a.row.line.localeCompare(b.row.line));
    return shown.slice(0, limit).map(({ row }) => row.toString());
  }
}

export function clock(minutes: Minutes): string {
  const hours = Math.floor(minutes / 60) % 24;
  return `${String(hours).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

export namespace Fares {
  const island = { near: 400, far: 950 } as const;

  export function price(zone: keyof typeof island, islander: boolean): number {
    return islander ? Math.round(island[zone] / 3) : island[zone];
  }
}
