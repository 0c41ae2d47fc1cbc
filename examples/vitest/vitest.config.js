import { defineConfig } from "vitest/config";

// Long enough for a slow machine; the tests wait for messages, never for a fixed time.
export default defineConfig({ test: { testTimeout: 60_000 } });
