import type { AppTransaction } from "../database/schema.ts";
import { inTransaction } from "../database/transaction-guard.ts";
import { type FieldProblem, invalid, notFound } from "../http/problem.ts";
import type { Question } from "../scheduling/answers.ts";
import type { Caller } from "../users/user-access.ts";
import type { EventType } from "./event-type.ts";
import type { EventTypeDeps } from "./event-type-changes.ts";
import { lockEventType, questionsOf, requireEventType } from "./event-type-queries.ts";
import type { NewQuestion, QuestionChanges } from "./event-type-schemas.ts";

/** Writes the questions of an event type that has none yet, in the order given. @throws ProblemError 400 */
export async function writeQuestions(
  trx: AppTransaction,
  newId: () => string,
  eventType: EventType,
  questions: readonly NewQuestion[],
): Promise<void> {
  const made = questions.map((question, index) => newQuestion(newId(), question, index));
  refuse(made.flatMap((question, index) => problemsOf(question, `/questions/${index}`)));
  for (const question of made) await insert(trx, eventType.id, question);
}

/** @throws ProblemError 400, 404 */
export function addQuestion(
  deps: EventTypeDeps,
  caller: Caller,
  eventTypeId: string,
  input: NewQuestion,
): Promise<Question> {
  return inTransaction(deps.db, async (trx) => {
    requireEventType(caller, await lockEventType(trx, deps.dialect, eventTypeId), eventTypeId);
    const last = (await questionsOf(trx, eventTypeId)).at(-1);
    const question = newQuestion(deps.newId(), input, last === undefined ? 0 : last.position + 1);
    refuse(problemsOf(question, ""));
    await insert(trx, eventTypeId, question);
    return question;
  });
}

/** The type of a question stays: answers of the old type would not fit. @throws ProblemError 400, 404 */
export function changeQuestion(
  deps: EventTypeDeps,
  caller: Caller,
  eventTypeId: string,
  questionId: string,
  changes: QuestionChanges,
): Promise<Question> {
  return inTransaction(deps.db, async (trx) => {
    requireEventType(caller, await lockEventType(trx, deps.dialect, eventTypeId), eventTypeId);
    const before = (await questionsOf(trx, eventTypeId)).find((question) => question.id === questionId);
    if (before === undefined) throw notFound("question", questionId);
    const after: Question = {
      ...before,
      label: changes.label ?? before.label,
      options: changes.options ?? before.options,
      required: changes.required ?? before.required,
      position: changes.position ?? before.position,
    };
    refuse(problemsOf(after, ""));
    const { id, event_type_id, ...set } = questionRow(eventTypeId, after);
    await trx.updateTable("questions").set(set).where("id", "=", id).execute();
    return after;
  });
}

/** Its answers go with it; events that were captured keep theirs. @throws ProblemError 404 */
export function deleteQuestion(
  deps: EventTypeDeps,
  caller: Caller,
  eventTypeId: string,
  questionId: string,
): Promise<void> {
  return inTransaction(deps.db, async (trx) => {
    requireEventType(caller, await lockEventType(trx, deps.dialect, eventTypeId), eventTypeId);
    const deleted = await trx
      .deleteFrom("questions")
      .where("id", "=", questionId)
      .where("event_type_id", "=", eventTypeId)
      .executeTakeFirst();
    if (deleted.numDeletedRows === 0n) throw notFound("question", questionId);
    await trx.deleteFrom("booking_answers").where("question_id", "=", questionId).execute();
  });
}

function newQuestion(id: string, input: NewQuestion, position: number): Question {
  return {
    id,
    label: input.label,
    type: input.type,
    options: input.options ?? [],
    required: input.required ?? false,
    position: input.position ?? position,
  };
}

function problemsOf({ type, options }: Question, at: string): FieldProblem[] {
  const pointer = `${at}/options`;
  if (type !== "select")
    return options.length === 0 ? [] : [{ pointer, message: "only a select has options" }];
  if (options.length === 0) return [{ pointer, message: "must have at least one option" }];
  return new Set(options).size === options.length
    ? []
    : [{ pointer, message: "must not have an option twice" }];
}

function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid(problems);
}

async function insert(trx: AppTransaction, eventTypeId: string, question: Question): Promise<void> {
  await trx.insertInto("questions").values(questionRow(eventTypeId, question)).execute();
}

function questionRow(eventTypeId: string, question: Question) {
  return {
    id: question.id,
    event_type_id: eventTypeId,
    label: question.label,
    type: question.type,
    options: JSON.stringify(question.options),
    required: question.required ? 1 : 0,
    position: question.position,
  };
}
