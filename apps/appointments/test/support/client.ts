/** The fields of any answer that tests look at: each is there in some answers only. */
export interface AnsweredBody {
  readonly id: string;
  readonly tenant_id: string | null;
  readonly email: string;
  readonly name: string;
  readonly status: string | number;
  readonly updated_at: string;
  readonly code: string;
  readonly errors: readonly { readonly pointer: string; readonly message: string }[];
  readonly key: string;
  readonly secret: string;
  readonly slug: string;
  readonly token: string;
  readonly scheduling_url: string;
  readonly manage_token: string;
  readonly start_at: string;
  readonly end_at: string;
  readonly revision: number;
  readonly host_id: string;
  readonly location_value: string;
  readonly slots: readonly {
    readonly start_at: string;
    readonly end_at: string;
    readonly host_ids: readonly string[];
  }[];
  readonly items: readonly (AnsweredBody & { readonly type: string; readonly json_schema: object })[];
  readonly users: readonly AnsweredBody[];
  readonly next_cursor: string | null;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AnsweredBody;
}

/** Speaks JSON over real HTTP with one key. */
export interface Client {
  get(path: string): Promise<Answered>;
  post(path: string, body?: unknown): Promise<Answered>;
  patch(path: string, body: unknown): Promise<Answered>;
  put(path: string, body: unknown): Promise<Answered>;
  delete(path: string): Promise<Answered>;
}

export function clientOf(url: string, key: string | undefined): Client {
  const send = async (method: string, path: string, body?: unknown): Promise<Answered> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? undefined : JSON.parse(text),
    };
  };
  return {
    get: (path) => send("GET", path),
    post: (path, body) => send("POST", path, body),
    patch: (path, body) => send("PATCH", path, body),
    put: (path, body) => send("PUT", path, body),
    delete: (path) => send("DELETE", path),
  };
}
