/* Validation of the header of a model, before the engine reads memory by its offsets: a damaged
   file must not reach the C code. */

import { EngineError } from "./memory.js";

const HEADER_FORMAT = 1;
/** @type {{ [type: string]: number }} */
const TENSOR_BYTES = { float32: 4, int8: 1 };
/** @type {{ [precision: string]: string }} */
// precision of the model -> data type of its matrices
const TENSOR_TYPES = { fp32: "float32", int8: "int8" };
/** @type {{ [task: string]: ("encoder" | "decoder" | "memory_kv" | "head" | "window")[] }} */
const MODEL_PARTS = {
  translation: ["encoder", "decoder", "memory_kv"],
  classification: ["encoder", "head"],
  "language-modeling": ["decoder", "window"],
};
const LARGEST_SIZE = 2 ** 31;

/** Throw an EngineError with the name of the first field of a header that does not fit the others.
    @type {(header: EngineHeader, panelWidth: number) => void} */
export function checkHeader(header, panelWidth) {
  /** @type {(valid: unknown, name: string) => asserts valid} */
  const check = (valid, name) => {
    if (!valid) {
      throw new EngineError(`the file of the model is damaged: ${name} is not what it should be.`);
    }
  };
  check(header !== null && typeof header === "object", "the header");
  if (header.format !== HEADER_FORMAT) {
    throw new EngineError(
      `the model has format ${header.format}, but this engine reads format ${HEADER_FORMAT}.`,
    );
  }
  if (header.panel_width !== panelWidth) {
    throw new EngineError(
      `the model has panels of ${header.panel_width}, but the engine has panels of ${panelWidth}.`,
    );
  }
  /** @type {(value: number) => boolean} */
  const isSize = (value) => Number.isInteger(value) && value > 0 && value < LARGEST_SIZE;
  check(
    MODEL_PARTS[header.task]?.every((part) => header[part]),
    "task",
  );
  check(TENSOR_TYPES[header.precision], "precision");
  check(
    header.special_ids &&
      /** @type {const} */ (["unk", "pad", "bos", "eos"]).every((name) =>
        Number.isInteger(header.special_ids[name]),
      ),
    "special_ids",
  );
  check(header.search && Object.values(header.search).every(Number.isFinite), "search");
  check(
    isSize(header.search.beam_size ?? 1) && Number.isInteger(header.search.max_length_offset ?? 0),
    "search",
  );
  check(header.window === undefined || isSize(header.window), "window");
  check(Number.isInteger(header.bytes) && header.bytes > 0, "bytes");
  const { model, tensors, positions } = header;
  check(
    model &&
      [model.d_model, model.num_heads, model.max_positions].every(isSize) &&
      model.d_model % model.num_heads === 0,
    "model",
  );
  check(["sinusoidal", "learned", "rotary"].includes(model.positions), "model.positions");
  const width = model.d_model;
  check(
    model.positions === "learned" ||
      (model.positions === "rotary" ? width / model.num_heads : width) % 2 === 0,
    "model.d_model",
  );
  check(Array.isArray(tensors), "tensors");
  /** @type {(tensor: TensorHeader) => number} */
  const count = ({ shape }) => shape.reduce((product, size) => product * size, 1);
  tensors.forEach((tensor, i) => {
    const valid =
      tensor &&
      TENSOR_BYTES[tensor.type] &&
      Array.isArray(tensor.shape) &&
      tensor.shape.every(isSize) &&
      Number.isInteger(tensor.offset);
    check(
      valid &&
        tensor.offset >= 0 &&
        tensor.offset % 16 === 0 &&
        tensor.offset + count(tensor) * TENSOR_BYTES[tensor.type] <= header.bytes,
      `tensor ${i}`,
    );
  });

  const end = Math.max(
    0,
    ...tensors.map((tensor) => tensor.offset + count(tensor) * TENSOR_BYTES[tensor.type]),
  );
  // so that no more memory is allocated than the tensors need
  check(header.bytes === Math.ceil(end / 16) * 16, "bytes");

  /** Check that a field is the index of a tensor with this type and number of elements.
      @type {(index: number, type: string, size: number, name: string) => void} */
  const checkTensor = (index, type, size, name) =>
    check(tensors[index]?.type === type && count(tensors[index]) === size, name);
  /** @type {(index: number, scale: number | null | undefined, outputs: number, inputs: number,
        name: string) => number} */
  const checkMatrix = (index, scale, outputs, inputs, name) => {
    check(isSize(outputs) && isSize(inputs), name);
    const padded = Math.ceil(outputs / panelWidth) * panelWidth;
    checkTensor(index, TENSOR_TYPES[header.precision], padded * inputs, `the weight of ${name}`);
    if (header.precision === "int8") {
      checkTensor(scale ?? -1, "float32", padded, `the scale of ${name}`);
    }
    return padded;
  };
  /** @type {(linear: LinearHeader | null, inputs: number, outputs: number, name: string) =>
        void} */
  const checkLinear = (linear, inputs, outputs, name) => {
    check(linear && linear.inputs === inputs && linear.outputs === outputs, name);
    const padded = checkMatrix(linear.weight, linear.scale, outputs, inputs, name);
    if (linear.bias !== null) checkTensor(linear.bias, "float32", padded, `the bias of ${name}`);
  };
  /** @type {(norm: NormHeader, name: string) => void} */
  const checkNorm = (norm, name) => {
    check(norm && (norm.weight !== null || norm.bias === null), name);
    for (const index of [norm.weight, norm.bias]) {
      if (index !== null) checkTensor(index, "float32", width, name);
    }
  };
  /** @type {(struct: ModelHeader, kind: "encoder" | "decoder") => void} */
  const checkModel = (struct, kind) => {
    const { layers, norms, d_ff: inner, activation, vocabulary } = struct;
    const cross = kind === "decoder" && header.task === "translation";
    check(Array.isArray(layers) && layers.length === struct.num_layers, `${kind}.layers`);
    check(
      Array.isArray(norms) && norms.length === (cross ? 3 : 2) * layers.length + 1,
      `${kind}.norms`,
    );
    check(
      struct.d_model === width &&
        struct.num_heads === model.num_heads &&
        isSize(inner) &&
        isSize(vocabulary),
      kind,
    );
    check(
      Number.isInteger(activation) &&
        activation >= 0 &&
        activation <= 5 &&
        [0, 1, false, true].includes(struct.pre_norm),
      `${kind}.activation`,
    );
    check(struct.format === (header.precision === "int8" ? 2 : 0), `${kind}.format`);
    check(
      Number.isFinite(struct.embedding_scale) && Number.isFinite(struct.norm_epsilon),
      `${kind}.embedding_scale`,
    );
    layers.forEach((layer, l) => {
      const name = `${kind}.layers[${l}]`;
      checkLinear(layer?.self_qkv, width, 3 * width, `${name}.self_qkv`);
      checkLinear(layer.self_out, width, width, `${name}.self_out`);
      for (const part of /** @type {const} */ (["cross_query", "cross_out"])) {
        if (cross) checkLinear(layer[part], width, width, `${name}.${part}`);
        else check(layer[part] === null, `${name}.${part}`);
      }
      checkLinear(layer.expand, width, activation === 5 ? 2 * inner : inner, `${name}.expand`);
      checkLinear(layer.contract, inner, width, `${name}.contract`);
    });
    norms.forEach((norm, n) => checkNorm(norm, `${kind}.norms[${n}]`));
    checkNorm(struct.embedding_norm, `${kind}.embedding_norm`);
    checkMatrix(
      struct.embedding,
      tensors[struct.embedding]?.scale,
      vocabulary,
      width,
      `${kind}.embedding`,
    );
    if (kind === "decoder") checkLinear(struct.output, width, vocabulary, "decoder.output");
    else check(struct.output === null, "encoder.output");
    const tables = positions?.[kind];
    check(
      tables && (tables.learned === null) === (model.positions !== "learned"),
      `positions.${kind}`,
    );
    if (tables.learned !== null) {
      checkTensor(
        tables.learned,
        "float32",
        model.max_positions * width,
        `positions.${kind}.learned`,
      );
    }
    check((tables.types === null) === !model.token_types, `positions.${kind}.types`);
    if (tables.types !== null) {
      checkTensor(tables.types, "float32", model.token_types * width, `positions.${kind}.types`);
    }
  };
  const { encoder, decoder, head } = header;
  if (encoder) checkModel(encoder, "encoder");
  if (decoder) checkModel(decoder, "decoder");
  if (header.memory_kv) {
    check(
      Array.isArray(header.memory_kv) && header.memory_kv.length === decoder?.num_layers,
      "memory_kv",
    );
    header.memory_kv.forEach((linear, l) =>
      checkLinear(linear, width, 2 * width, `memory_kv[${l}]`),
    );
  }
  if (head) {
    checkLinear(head.pooler, width, width, "head.pooler");
    checkLinear(head.output, width, head.output?.outputs, "head.output");
  }
  if (decoder) {
    check(
      Object.values(header.special_ids).every((id) => id >= 0 && id < decoder.vocabulary),
      "special_ids",
    );
  }
}
