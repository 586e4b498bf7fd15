import fc from "fast-check";
import ICAL from "ical.js";
import { describe, expect, test } from "vitest";
import { type Invite, icalendar } from "../../src/side-effects/icalendar.ts";

const base: Invite = {
  method: "REQUEST",
  uid: "8d7c@appointments.hookwell",
  sequence: 3,
  stamp: new Date("2031-03-01T08:00:00.250Z"),
  startAt: "2031-03-10T09:00:00.000Z",
  endAt: "2031-03-10T09:30:00.000Z",
  title: "Intake",
  description: "",
  location: "https://meet.example.com/a1",
  organizer: { name: "Ada Lovelace", email: "ada@example.com" },
  attendees: [{ name: "Grace Hopper", email: "grace@example.com" }],
};

/** Reads it back with a parser that is not ours; its strict mode refuses what it cannot read. */
function read(text: string) {
  ICAL.design.strict = true;
  const calendar = new ICAL.Component(ICAL.parse(text));
  const event = calendar.getFirstSubcomponent("vevent");
  if (event === null) throw new Error("no VEVENT");
  return { calendar, event: new ICAL.Event(event), component: event };
}

describe("an invite", () => {
  test("bookings 67: says what RFC 5546 asks of a request, with the booking's revision as its sequence", () => {
    const text = icalendar(base);
    const { calendar, event, component } = read(text);
    expect(calendar.getFirstPropertyValue("method")).toBe("REQUEST");
    expect(calendar.getFirstPropertyValue("version")).toBe("2.0");
    expect(event.uid).toBe(base.uid);
    expect(event.sequence).toBe(3);
    expect(event.summary).toBe("Intake");
    expect(event.location).toBe("https://meet.example.com/a1");
    expect(event.organizer).toBe("mailto:ada@example.com");
    expect(component.getFirstProperty("attendee")?.getFirstValue()).toBe("mailto:grace@example.com");
    expect(component.getFirstPropertyValue("status")).toBe("CONFIRMED");
    expect(text).toContain("\r\nDTSTAMP:20310301T080000Z\r\n");
  });

  test("bookings 67: a cancellation has the same UID and takes the entry out", () => {
    const { calendar, component, event } = read(icalendar({ ...base, method: "CANCEL", sequence: 4 }));
    expect(calendar.getFirstPropertyValue("method")).toBe("CANCEL");
    expect(component.getFirstPropertyValue("status")).toBe("CANCELLED");
    expect([event.uid, event.sequence]).toEqual([base.uid, 4]);
  });

  test.each([
    ["the hour that New York skips", "2031-03-09T06:30:00.000Z", "2031-03-09T07:30:00.000Z"],
    ["the hour that Vienna has twice", "2031-10-26T00:15:00.000Z", "2031-10-26T01:15:00.000Z"],
    ["the turn of the year in Apia", "2031-12-31T10:45:00.000Z", "2031-12-31T11:15:00.000Z"],
  ])("bookings 67: start and end are the instants of the booking in %s", (_name, startAt, endAt) => {
    const { event } = read(icalendar({ ...base, startAt, endAt }));
    expect(event.startDate.toJSDate().toISOString()).toBe(startAt);
    expect(event.endDate.toJSDate().toISOString()).toBe(endAt);
    expect(event.startDate.zone?.tzid).toBe("UTC");
  });

  test.each([
    ["commas; semicolons\\ and backslashes \\n that are no line end"],
    ["line one\nline two\r\nline three"],
    ["BEGIN:VEVENT\r\nEND:VCALENDAR\r\nATTENDEE:mailto:mallory@example.com"],
    [`${"👩‍👩‍👧‍👦 ".repeat(40)}end`],
    ["ÄÖÜ ß 漢字 مرحبا ".repeat(20)],
  ])("bookings 67: text comes back as it was: %j", (title) => {
    const { calendar, event, component } = read(
      icalendar({ ...base, title, location: title, description: title }),
    );
    const expected = title.replaceAll("\r\n", "\n");
    expect(event.summary).toBe(expected);
    expect(event.location).toBe(expected);
    expect(event.description).toBe(expected);
    expect(component.getAllProperties("attendee")).toHaveLength(1);
    expect(calendar.getAllSubcomponents("vevent")).toHaveLength(1);
  });

  test("bookings 67: names with quotes, colons and carets, addresses with plus and other scripts", () => {
    const names = ['Ada "The Countess" King', "a:b;c,d", "x^y^^z", "Grace\nHopper", ""];
    for (const name of names) {
      const { component } = read(icalendar({ ...base, attendees: [{ name, email: "g+1@bücher.example" }] }));
      const attendee = component.getFirstProperty("attendee");
      expect(attendee?.getFirstValue()).toBe("mailto:g+1@xn--bcher-kva.example");
      expect(attendee?.getParameter("cn") ?? "").toBe(name);
    }
  });

  test("bookings 67: no line has more than 75 octets, none is cut inside a character, any text reads back", () => {
    const anyText = fc.string({ unit: "binary", maxLength: 300 });
    fc.assert(
      fc.property(anyText, anyText, (title, name) => {
        const text = icalendar({ ...base, title, organizer: { name, email: "ada@example.com" } });
        expect(text.isWellFormed()).toBe(true);
        expect(text.endsWith("END:VCALENDAR\r\n")).toBe(true);
        for (const line of text.split("\r\n")) {
          expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
          expect(line).not.toMatch(/[\n\r]/);
        }
        expect(read(text).event.summary ?? "").toBe(storable(title));
      }),
      { numRuns: 300 },
    );
  });
});

/** What RFC 5545 can say of a text: its line ends are \n, and there are no other control characters. */
function storable(text: string): string {
  return [...text.replaceAll("\r\n", "\n").replaceAll(/[\r\u2028\u2029]/g, "\n")]
    .filter((character) => character === "\n" || character === "\t" || !/\p{Cc}/u.test(character))
    .join("");
}
