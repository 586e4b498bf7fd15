import { apiFaults } from "./faults/api.ts";
import { applicationFaults } from "./faults/application.ts";
import { captureFaults } from "./faults/capture.ts";
import { deliveryFaults } from "./faults/delivery.ts";
import { managementFaults } from "./faults/management.ts";
import { sendingFaults } from "./faults/sending.ts";
import type { Mutation } from "./mutation.ts";

/** Along the way of an event. */
export const mutations: readonly Mutation[] = [
  ...captureFaults,
  ...deliveryFaults,
  ...sendingFaults,
  ...managementFaults,
  ...apiFaults,
  ...applicationFaults,
];
