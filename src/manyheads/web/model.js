/* All that computes with a model: the engine, the tokenizers and the tasks. `npm run build` joins
   it into built/model.js, whose exports are the fields of `manyheads` in the scripts that follow
   it: worker.js, module.js and parity.js (scripts.py). */

export { createEngine } from "./engine/model.js";
export { bestTokens, translateIds } from "./engine/search.js";
export { makePause } from "./tasks/pause.js";
export { answerRequest, loadPageModel, pageModel } from "./tasks/requests.js";
export { fromBase64 } from "./text/utf8.js";
