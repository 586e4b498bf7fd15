/**
 * The step that adds the function for one event, which answers how many it wrote. Its plan is kept by the session,
 * whoever's connection it is and whatever pooler is before it: an INSERT sent as text is planned anew each time, which
 * costs more than writing the row. Arguments are text, so that no client library has to know their types. It runs with
 * the rights of its caller. A change of it is a new function under a new name, as builds of two versions may work on
 * one database.
 */
export const captureFunction = `CREATE FUNCTION @.capture_event(
  given_project_id text, given_id text, given_type text, given_tenant_id text, given_subject text,
  given_revision text, given_actor text, given_audience text, given_occurred_at text, given_data text,
  given_content_hash text, given_route text, given_now text
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  at bigint := coalesce(given_now::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
BEGIN
  INSERT INTO @.event (project_id, id, type, tenant_id, subject, revision, actor, audience, occurred_at,
    data, content_hash, captured_at, due_at, route)
  VALUES (given_project_id, given_id, given_type, given_tenant_id, given_subject, given_revision::bigint, given_actor,
    given_audience, given_occurred_at::bigint, given_data, given_content_hash, at, at, given_route)
  ON CONFLICT DO NOTHING;
  RETURN FOUND::integer;
END $$;
`;
