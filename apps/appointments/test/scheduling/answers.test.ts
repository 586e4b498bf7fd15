import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Question, readAnswers } from "../../src/scheduling/answers.ts";

const question = (id: string, type: Question["type"], more: Partial<Question> = {}): Question => ({
  id,
  label: `Label of ${id}`,
  type,
  options: type === "select" ? ["Red", "Blue"] : [],
  required: false,
  position: 0,
  ...more,
});
const text = question("t", "text", { position: 2 });
const select = question("s", "select", { position: 1 });
const checkbox = question("c", "checkbox", { position: 3 });
const questions = [text, select, checkbox];
const one = (id: string, value: unknown, all = questions) => readAnswers(all, [{ question_id: id, value }]);

describe("answers", () => {
  test("are stored in the order of the questions, a checkbox as yes or no", () => {
    const given = [
      { question_id: "c", value: true },
      { question_id: "t", value: "Zwei\nZeilen 🙂" },
      { question_id: "s", value: "Blue" },
    ];
    expect(readAnswers(questions, given)).toEqual({
      answers: [
        { questionId: "s", value: "Blue" },
        { questionId: "t", value: "Zwei\nZeilen 🙂" },
        { questionId: "c", value: "yes" },
      ],
      problems: [],
    });
  });

  test.each([
    [true, "yes"],
    [false, "no"],
    ["yes", "yes"],
    ["no", "no"],
  ])("a checkbox takes %j", (value, stored) => {
    expect(one("c", value).answers).toEqual([{ questionId: "c", value: stored }]);
  });

  test.each([
    ["an unknown question", "x", "hello", "/answers/0/question_id"],
    ["an option that is not listed", "s", "Green", "/answers/0/value"],
    ["an option in other letters", "s", "red", "/answers/0/value"],
    ["a checkbox that is neither", "c", "maybe", "/answers/0/value"],
    ["a checkbox that is a number", "c", 1, "/answers/0/value"],
    ["a text that is a number", "t", 7, "/answers/0/value"],
    ["null", "t", null, "/answers/0/value"],
    ["NUL", "t", "a\u0000b", "/answers/0/value"],
    ["half a surrogate pair", "t", "a\ud83d", "/answers/0/value"],
    ["a text that is too long", "t", "x".repeat(30_001), "/answers/0/value"],
  ])("%s is refused, and the place is named", (_, id, value, pointer) => {
    const { problems } = one(id, value);
    expect(problems.map((problem) => problem.pointer)).toEqual([pointer]);
  });

  test("a question that is answered twice is refused", () => {
    const twice = [
      { question_id: "t", value: "a" },
      { question_id: "t", value: "a" },
    ];
    expect(readAnswers(questions, twice).problems).toEqual([
      { pointer: "/answers/1/question_id", message: "is answered twice" },
    ]);
  });

  test("a required question needs an answer that is not empty", () => {
    const needed = [question("t", "text", { required: true }), question("c", "checkbox", { required: true })];
    expect(readAnswers(needed, []).problems.map((problem) => problem.message)).toEqual([
      'must answer "Label of t"',
      'must answer "Label of c"',
    ]);
    expect(one("t", "  ", [question("t", "text", { required: true })]).problems).toHaveLength(1);
    expect(one("c", "no", [question("c", "checkbox", { required: true })]).problems).toEqual([]);
  });

  test("what is left empty and is not required is no answer", () => {
    expect(one("t", "")).toEqual({ answers: [], problems: [] });
    expect(one("s", "")).toEqual({ answers: [], problems: [] });
  });

  test("field-faults I3: 20 kB of notes are an answer; more than an event can hold is refused here", () => {
    expect(one("t", "n".repeat(20_000)).problems).toEqual([]);
    const many = [1, 2, 3].map((index) => question(`t${index}`, "text"));
    const given = many.map(({ id }) => ({ question_id: id, value: "n".repeat(25_000) }));
    expect(readAnswers(many, given).problems).toEqual([
      { pointer: "/answers", message: "must have at most 60000 characters together" },
    ]);
  });

  test("whatever comes is either refused or stored as one of what the question allows", () => {
    const given = fc.array(
      fc.record({ question_id: fc.constantFrom("t", "s", "c", "x"), value: fc.anything() }),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(given, (list) => {
        const { answers, problems } = readAnswers(questions, list);
        if (problems.length > 0) return;
        expect(new Set(answers.map((answer) => answer.questionId)).size).toBe(answers.length);
        for (const { questionId, value } of answers) {
          if (questionId === "s") expect(select.options).toContain(value);
          if (questionId === "c") expect(["yes", "no"]).toContain(value);
          expect(value.includes("\u0000")).toBe(false);
        }
      }),
    );
  });
});
