// The client that is generated from the service's OpenAPI document.
export { createClient } from "./client/client";
export * from "./client";
