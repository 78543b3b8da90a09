/* The rules of the browser code; `npm run lint` checks them. The types are checked by `npm run types`. */

import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import globals from "globals";

const MODULE_GLOBALS = { ...globals["shared-node-browser"], process: "readonly", self: "readonly", setImmediate: "readonly" };

export default defineConfig([
  globalIgnores(["**/.venv/", "build/", "docs/", "benchmarks/", "src/manyheads/web/built/"]),
  {
    files: ["**/*.js", "**/*.mjs"],
    extends: [js.configs.recommended],
    languageOptions: { globals: MODULE_GLOBALS },
    rules: { eqeqeq: ["error", "smart"], "no-var": "error", "prefer-const": "error" },
  },
  {
    files: ["src/manyheads/web/page/**/*.js", "src/manyheads/web/explorer/*.js"],
    languageOptions: { globals: globals.browser },
  },
]);
