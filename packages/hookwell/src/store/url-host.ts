/** Host of a url with its port unless that is the scheme's own, as lists are filtered by it; "" for no url. */
export function urlHost(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "";
}
