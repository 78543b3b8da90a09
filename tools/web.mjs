/* Join the modules of src/manyheads/web into the scripts of its folder `built`: `npm run build`.

   built/SHA256SUMS has the checksums of the scripts and of all modules in them, as sha256sum
   writes them. */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const WEB = "src/manyheads/web";
/* The oldest programs that exported pages and modules support. */
const TARGET = ["chrome97", "firefox104", "safari16.4", "node18"];
/* Small, but with its names, which the errors of a browser show. */
const SMALL = { minifyWhitespace: true, minifySyntax: true, lineLimit: 100 };
/* The scripts, each with the module that it begins with, and options of esbuild. */
const SCRIPTS = {
  "page.js": { entry: "page/app.js", format: "iife", ...SMALL },
  "model.js": { entry: "model.js", format: "iife", globalName: "manyheads", ...SMALL },
};

const files = new Map();
for (const [name, { entry, ...options }] of Object.entries(SCRIPTS)) {
  const { outputFiles, metafile } = await build({
    entryPoints: [`${WEB}/${entry}`],
    bundle: true,
    target: TARGET,
    external: ["node:*"],
    logLevel: "warning",
    metafile: true,
    write: false,
    ...options,
  });
  for (const path of Object.keys(metafile.inputs)) {
    files.set(path.slice(WEB.length + 1), readFileSync(path));
  }
  files.set(`built/${name}`, outputFiles[0].contents);
}
const sums = [...files]
  .sort()
  .map(([path, content]) => `${createHash("sha256").update(content).digest("hex")}  ${path}\n`);
files.set("built/SHA256SUMS", sums.join(""));
mkdirSync(`${WEB}/built`, { recursive: true });
for (const [path, content] of files) {
  if (path.startsWith("built/")) writeFileSync(`${WEB}/${path}`, content);
}
