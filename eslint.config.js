/* The rules of the browser code; `npm run lint` checks them. `npm run types` checks its types. */

import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import globals from "globals";

/* What `npm run format` formats; its comments are broken by hand. */
const FORMATTED = ["*.js", "tools/*.mjs", "src/manyheads/web/**/*.js"];
const MODULE_GLOBALS = {
  ...globals["shared-node-browser"],
  process: "readonly",
  self: "readonly",
  setImmediate: "readonly",
};

export default defineConfig([
  globalIgnores(["**/.venv/", "build/", "docs/", "benchmarks/", "src/manyheads/web/built/"]),
  {
    files: ["**/*.js", "**/*.mjs"],
    extends: [js.configs.recommended],
    languageOptions: { globals: MODULE_GLOBALS },
    rules: { eqeqeq: ["error", "smart"], "no-var": "error", "prefer-const": "error" },
  },
  {
    files: FORMATTED,
    rules: { curly: ["error", "multi-line"], "max-len": ["error", { code: 100 }] },
  },
  {
    files: ["src/manyheads/web/page/**/*.js", "src/manyheads/web/explorer/*.js"],
    languageOptions: { globals: globals.browser },
  },
  {
    files: ["src/manyheads/web/*.js"],
    languageOptions: { globals: { manyheads: "readonly", require: "readonly" } },
  },
]);
