/** For Jest, in which each test file has its own emulator. */
import { afterAll, afterEach, expect } from "@jest/globals";

import { stopShared } from "./process.js";
import { endTimedOut, nameTests } from "./test.js";

export * from "./index.js";

nameTests(() => expect.getState().currentTestName);
afterEach(endTimedOut);
afterAll(stopShared);
