import type { HookwellCore } from "hookwell";
import type { Api } from "../http/api.ts";
import { catalogue, catalogueToJson } from "../shapes/catalogue.ts";

export function addCatalogueRoute(api: Api, hooks: HookwellCore): void {
  api.route(
    {
      method: "get",
      path: "/v1/catalogue",
      id: "getCatalogue",
      tag: "Catalogue",
      summary: "The event types that this server knows",
      description: "Empty on a server without a catalogue, which takes every well-formed type.",
      scopes: ["read", "emit", "manage"],
      answers: { 200: { description: "Every type.", schema: catalogue } },
    },
    async () => ({ status: 200, body: catalogueToJson(hooks.catalogue) }),
  );
}
