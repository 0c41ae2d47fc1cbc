/** For Jest, in which each test file has its own emulator. */
import { afterAll } from "@jest/globals";

import { stopShared } from "./process.js";

export * from "./index.js";

afterAll(stopShared);
