import { type Context, Hono } from "hono";
import { z } from "zod";
import type { AppEnvironment } from "../http/environment.ts";
import { readPage, writeCursor } from "../http/paging.ts";
import { check, readJson } from "../http/request-body.ts";
import { text } from "../http/text.ts";
import { type EventType, eventTypeToJson, hostToJson, questionToJson } from "./event-type.ts";
import {
  changeEventType,
  createEventType,
  deleteEventType,
  type EventTypeDeps,
} from "./event-type-changes.ts";
import {
  findEventType,
  hostsByEventType,
  hostsOf,
  listEventTypes,
  questionsByEventType,
  questionsOf,
  requireEventType,
} from "./event-type-queries.ts";
import {
  eventTypeChangesSchema,
  hostChangesSchema,
  newEventTypeSchema,
  newHostSchema,
  newQuestionSchema,
  questionChangesSchema,
} from "./event-type-schemas.ts";
import { changeHost, putHost, removeHost } from "./hosts.ts";
import { addQuestion, changeQuestion, deleteQuestion } from "./questions.ts";

const listQuery = z.object({
  slug: text({ max: 100 }).optional(),
  user_id: text({ max: 128 }).optional(),
});

/** `/v1/event-types`, with hosts and questions under each. For its owner and the admins; others get 404. */
export function eventTypeRoutes(deps: EventTypeDeps): Hono<AppEnvironment> {
  const { db } = deps;
  const routes = new Hono<AppEnvironment>();

  const toJson = async (eventType: EventType) =>
    eventTypeToJson(eventType, await hostsOf(db, eventType.id), await questionsOf(db, eventType.id));
  /** @throws ProblemError 404 */
  const visible = async (context: Context<AppEnvironment, "/:id">): Promise<EventType> => {
    const id = context.req.param("id");
    return requireEventType(context.get("caller"), await findEventType(db, id), id);
  };

  routes.post("/", async (context) => {
    const input = check(newEventTypeSchema, await readJson(context));
    const eventType = await createEventType(deps, context.get("caller"), input);
    context.header("Location", `/v1/event-types/${eventType.id}`);
    return context.json(await toJson(eventType), 201);
  });

  routes.get("/", async (context) => {
    const query = context.req.query();
    const { slug, user_id: userId } = check(listQuery, query);
    const filter = { ...(slug === undefined ? {} : { slug }), ...(userId === undefined ? {} : { userId }) };
    const { items, more } = await listEventTypes(db, context.get("caller"), filter, readPage(query));
    const ids = items.map((item) => item.id);
    const [hosts, questions] = [await hostsByEventType(db, ids), await questionsByEventType(db, ids)];
    const last = items.at(-1);
    return context.json({
      items: items.map((item) =>
        eventTypeToJson(item, hosts.get(item.id) ?? [], questions.get(item.id) ?? []),
      ),
      next_cursor: more && last ? writeCursor({ at: last.createdAt, id: last.id }) : null,
    });
  });

  routes.get("/:id", async (context) => context.json(await toJson(await visible(context))));

  routes.patch("/:id", async (context) => {
    // Its visibility is looked at before the body, so that a 400 never tells that it exists.
    const { id } = await visible(context);
    const changes = check(eventTypeChangesSchema, await readJson(context));
    return context.json(await toJson(await changeEventType(deps, context.get("caller"), id, changes)));
  });

  routes.delete("/:id", async (context) => {
    await deleteEventType(deps, context.get("caller"), context.req.param("id"));
    return context.body(null, 204);
  });

  routes.get("/:id/hosts", async (context) =>
    context.json({ items: (await hostsOf(db, (await visible(context)).id)).map(hostToJson) }),
  );

  routes.post("/:id/hosts", async (context) => {
    const { id } = await visible(context);
    const input = check(newHostSchema, await readJson(context));
    const { host, isNew } = await putHost(deps, context.get("caller"), id, input);
    return context.json(hostToJson(host), isNew ? 201 : 200);
  });

  routes.patch("/:id/hosts/:user", async (context) => {
    const { id } = await visible(context);
    const changes = check(hostChangesSchema, await readJson(context));
    const user = context.req.param("user");
    return context.json(hostToJson(await changeHost(deps, context.get("caller"), id, user, changes)));
  });

  routes.delete("/:id/hosts/:user", async (context) => {
    const { id, user } = context.req.param();
    await removeHost(deps, context.get("caller"), id, user);
    return context.body(null, 204);
  });

  routes.get("/:id/questions", async (context) =>
    context.json({ items: (await questionsOf(db, (await visible(context)).id)).map(questionToJson) }),
  );

  routes.post("/:id/questions", async (context) => {
    const { id } = await visible(context);
    const input = check(newQuestionSchema, await readJson(context));
    return context.json(questionToJson(await addQuestion(deps, context.get("caller"), id, input)), 201);
  });

  routes.patch("/:id/questions/:question", async (context) => {
    const { id } = await visible(context);
    const changes = check(questionChangesSchema, await readJson(context));
    const question = context.req.param("question");
    return context.json(
      questionToJson(await changeQuestion(deps, context.get("caller"), id, question, changes)),
    );
  });

  routes.delete("/:id/questions/:question", async (context) => {
    const { id, question } = context.req.param();
    await deleteQuestion(deps, context.get("caller"), id, question);
    return context.body(null, 204);
  });

  return routes;
}
