import type { QuestionType } from "../database/scheduling-tables.ts";
import type { FieldProblem } from "../http/problem.ts";

export interface Question {
  readonly id: string;
  readonly label: string;
  readonly type: QuestionType;
  /** What a select offers. */
  readonly options: readonly string[];
  readonly required: boolean;
  readonly position: number;
}

export interface GivenAnswer {
  readonly question_id: string;
  readonly value: unknown;
}

/** As it is stored: a checkbox is `yes` or `no`. */
export interface Answer {
  readonly questionId: string;
  readonly value: string;
}

export interface ReadAnswers {
  /** In the order of the questions; a question that was left empty has none. */
  readonly answers: readonly Answer[];
  /** Not empty = the answers are refused. */
  readonly problems: readonly FieldProblem[];
}

const maxAnswerCharacters = 30_000;
// All of them go into one event, whose body may have 256 KiB.
const maxAllCharacters = 60_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const refusedControls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/**
 * Checks answers against the questions of an event type: unknown and duplicate questions, required ones without an
 * answer, options that are not listed, texts that cannot be stored. Problems point below `at`.
 */
export function readAnswers(
  questions: readonly Question[],
  given: readonly GivenAnswer[],
  at = "/answers",
): ReadAnswers {
  const byId = new Map(questions.map((question) => [question.id, question]));
  const values = new Map<string, string>();
  const problems: FieldProblem[] = [];
  for (const [index, answer] of given.entries()) {
    const question = byId.get(answer.question_id);
    const read = question === undefined ? undefined : readValue(question, answer.value);
    if (question === undefined || read === undefined)
      problems.push({
        pointer: `${at}/${index}/question_id`,
        message: "is not a question of this event type",
      });
    else if (values.has(question.id))
      problems.push({ pointer: `${at}/${index}/question_id`, message: "is answered twice" });
    else if ("problem" in read) problems.push({ pointer: `${at}/${index}/value`, message: read.problem });
    if (question !== undefined && !values.has(question.id))
      values.set(question.id, read !== undefined && "value" in read ? read.value : "");
  }
  const ordered = [...questions].sort((left, right) => left.position - right.position);
  for (const question of ordered)
    if (question.required && !values.has(question.id))
      problems.push({ pointer: at, message: `must answer ${JSON.stringify(question.label)}` });
  if ([...values.values()].reduce((sum, value) => sum + value.length, 0) > maxAllCharacters)
    problems.push({ pointer: at, message: `must have at most ${maxAllCharacters} characters together` });
  const answers = ordered.flatMap(({ id }) => {
    const value = values.get(id) ?? "";
    return value === "" ? [] : [{ questionId: id, value }];
  });
  return { answers, problems };
}

type ReadValue = { readonly value: string } | { readonly problem: string };

/** "" = left empty, which a required question does not allow. */
function readValue(question: Question, value: unknown): ReadValue {
  const text = question.type === "checkbox" && typeof value === "boolean" ? (value ? "yes" : "no") : value;
  if (typeof text !== "string")
    return { problem: question.type === "checkbox" ? "must be true, false, yes or no" : "must be a text" };
  if (text.trim() === "") return question.required ? { problem: "must not be empty" } : { value: "" };
  switch (question.type) {
    case "checkbox":
      return text === "yes" || text === "no"
        ? { value: text }
        : { problem: "must be true, false, yes or no" };
    case "select":
      return question.options.includes(text) ? { value: text } : { problem: "must be one of the options" };
    case "text":
      return textProblem(text) ?? { value: text };
  }
}

/** Line ends and tabs are part of a longer text; what PostgreSQL or UTF-8 cannot hold is refused. */
function textProblem(text: string): { readonly problem: string } | undefined {
  if (text.length > maxAnswerCharacters)
    return { problem: `must be at most ${maxAnswerCharacters} characters` };
  if (refusedControls.test(text)) return { problem: "must not contain control characters such as NUL" };
  if (!text.isWellFormed()) return { problem: "must be well-formed Unicode (it has a lone surrogate)" };
  return undefined;
}
