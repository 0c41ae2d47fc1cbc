/** For Jest, in which each file of tests has an emulator of its own. */
import { afterAll } from "@jest/globals";

import { stopShared } from "./process.js";

export * from "./index.js";

afterAll(stopShared);
