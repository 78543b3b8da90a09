/* The rules of the browser code; `npm run lint` checks them. The types are checked by `npm run types`. */

import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import globals from "globals";

const SCRIPTS = ["src/manyheads/web/page/*.js", "src/manyheads/web/explorer/*.js"]; // not modules: they share one scope
const MODULE_GLOBALS = { ...globals["shared-node-browser"], process: "readonly", self: "readonly", setImmediate: "readonly" };

export default defineConfig([
  globalIgnores(["**/.venv/", "build/", "docs/", "benchmarks/"]),
  {
    files: ["**/*.js", "**/*.mjs"],
    extends: [js.configs.recommended],
    languageOptions: { globals: MODULE_GLOBALS },
    rules: { eqeqeq: ["error", "smart"], "no-var": "error", "prefer-const": "error" },
  },
  {
    files: SCRIPTS,
    languageOptions: { sourceType: "script", globals: globals.browser },
    rules: { "no-undef": "off", "no-unused-vars": ["error", { vars: "local" }] }, // tsc knows the names of all scripts
  },
]);
