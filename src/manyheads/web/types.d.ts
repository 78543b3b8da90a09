/* Types of values that several files of the browser code share. Shapes of arrays: see
   engine/model.js. */

/* --- the engine --- */

type AttentionKind = "encoder" | "decoder" | "cross";
type Task = "translation" | "classification" | "language-modeling";

interface EngineExports {
  memory: WebAssembly.Memory;
  __heap_base: WebAssembly.Global<"i32">;
  struct_layout(address: number): number;
  panel_width(): bigint | number;
  workspace_size(model: number, rows: bigint, keys: bigint, sentences: bigint): bigint | number;
  log_sum_exp(values: number, count: bigint): number;
  linear_layer(
    linear: number,
    format: bigint,
    input: number,
    rows: bigint,
    workspace: number,
    output: number,
  ): void;
  sinusoidal_positions(count: bigint, width: bigint, table: number): void;
  rotary_positions(count: bigint, headDim: bigint, table: number): void;
  begin_beam(model: number, options: number, bos: bigint, beam: number, block: number): bigint;
  skip_prefix(options: number, beam: number, scores: number): void;
  enlarge_cache(model: number, options: number, beam: number, cache: number): bigint;
  read_prefix(
    beam: number,
    options: number,
    length: bigint,
    row: bigint,
    tokens: number,
    scores: number,
  ): void;
  encode: EngineFunction;
  decoder_steps: EngineFunction;
  beam_steps: EngineFunction;
  extend_beam: EngineFunction;
}
type EngineFunction = (...args: (number | bigint)[]) => bigint | number;

/** Fields of a C struct by name; a pointer is an address, a nested object an inner struct. */
interface StructValues {
  [field: string]: number | boolean | null | undefined | StructValues;
}

interface TensorHeader {
  type: "float32" | "int8";
  shape: number[];
  offset: number;
  scale?: number;
}

type LinearHeader = {
  weight: number;
  scale: number | null;
  bias: number | null;
  inputs: number;
  outputs: number;
};

type NormHeader = {
  weight: number | null;
  bias: number | null;
};

/** The struct Model of the C code, with its lists. */
type ModelHeader = {
  d_model: number;
  num_heads: number;
  num_layers: number;
  d_ff: number;
  activation: number;
  pre_norm: boolean | number;
  format: number;
  embedding: number;
  vocabulary: number;
  embedding_scale: number;
  norm_epsilon: number;
  embedding_norm: NormHeader;
  output: LinearHeader;
  layers: LayerHeader[];
  norms: NormHeader[];
};

type LayerHeader = {
  self_qkv: LinearHeader;
  self_out: LinearHeader;
  cross_query: LinearHeader | null;
  cross_out: LinearHeader | null;
  expand: LinearHeader;
  contract: LinearHeader;
};

interface ModelSettings {
  d_model: number;
  num_heads: number;
  positions: "sinusoidal" | "learned" | "rotary";
  max_positions: number;
  token_types: number;
  pooling: string;
  pooler: string;
}

/** The description of a model, which pack_model in web/pack.py writes. */
interface EngineHeader {
  format: number;
  task: Task;
  precision: "fp32" | "int8";
  panel_width: number;
  bytes: number;
  special_ids: { unk: number; pad: number; bos: number; eos: number };
  model: ModelSettings;
  search: {
    beam_size: number;
    length_penalty: number;
    max_length_ratio: number;
    max_length_offset: number;
  };
  window: number;
  encoder?: ModelHeader;
  decoder?: ModelHeader;
  memory_kv?: LinearHeader[];
  head?: { pooler: LinearHeader; output: LinearHeader };
  positions: { [side: string]: { learned: number | null; types: number | null } };
  tensors: TensorHeader[];
}

/** Call `write(offset, bytes)` for all parts of the block of tensors, in any order. */
type ReadTensors = (write: (offset: number, bytes: Uint8Array) => void) => Promise<void> | void;

type Engine = Awaited<ReturnType<typeof import("./engine/model.js").createEngine>>;
type EngineModel = Awaited<ReturnType<Engine["loadModel"]>>;
type EngineMemory = import("./engine/memory.js").EngineMemory;
type MemoryScope = ReturnType<EngineMemory["scope"]>;
type Encoding = ReturnType<EngineModel["encode"]>;

interface EngineOptions {
  /** Token types of the source. */
  types?: number[] | null;
  /** Whether to return the attention. */
  attention?: boolean;
  /** L x H factors of heads; 0 turns a head off. */
  headFactors?: { [kind: string]: Float32Array };
  /** False: without position signals. */
  positions?: boolean;
  /** False: without the causal mask. */
  causal?: boolean;
}

interface AppendOptions {
  allLogits?: boolean;
  attention?: boolean;
  causal?: boolean;
  vectors?: "decoder" | "cross" | null;
  withLogits?: boolean;
}

interface Control {
  /** Awaited after every step. */
  pause?: () => Promise<void> | undefined;
  /** Ends the computation when it is aborted. */
  signal?: AbortSignal;
}

interface SearchOptions extends EngineOptions, Control {
  beamSize?: number;
  nBest?: number;
  lengthPenalty?: number;
  maxLengthRatio?: number;
  maxLengthOffset?: number;
  prefix?: number[];
  skip?: number;
  crossAttention?: boolean;
  accept?: (output: Output) => boolean;
  onStep?: (record: StepRecord) => void;
}

interface Sampling {
  temperature?: number;
  topK?: number;
  topP?: number;
  seed?: number;
}

interface GenerationOptions extends EngineOptions, Control {
  sampling?: Sampling | null;
  sample?: number;
  maxTokens?: number;
  onToken?: (token: number, value: number) => boolean | void;
}

interface Output {
  tokens: number[];
  tokenScores: number[];
  logProbability: number;
  score: number;
  ended: boolean;
  /** (L, H, T, S), where it was requested. */
  crossAttention?: Float32Array;
}

interface StepCandidate {
  parent: number;
  token: number;
  value: number;
  total: number;
}

/** The fields of BeamStep (search/beam_state.py). */
interface StepRecord {
  length: number;
  candidates: StepCandidate[];
  finished: boolean[];
  kept: number[];
  closed: boolean;
  lastTokens: number[];
  lastValues: number[];
  active: boolean;
  scores: number[];
}

interface HeadName {
  kind: AttentionKind;
  layer: number;
  head: number;
}

interface HeadVectors {
  queries: Float32Array;
  keys: Float32Array;
  values: Float32Array;
}

/* --- texts --- */

/** The offsets of a part of a text, in UTF-16 units. */
type Span = [start: number, end: number];
/** The indices of a source word and a target word. */
type Link = [source: number, target: number];

type Tokenizer = import("./text/base.js").Tokenizer;

interface Tokenizers {
  source: Tokenizer;
  target: Tokenizer;
}

/** A tokenizer, as describe_tokenizer in web/tokenizer.py writes it; the fields after
    `marksBetween` are those of some kinds. */
interface TokenizerDescription {
  kind: string;
  lowercase: boolean;
  keepSpace: boolean;
  marksBetween: number;
  side: "" | "source" | "target";
  marks?: { [name: string]: string };
  model: SentencePieceDescription;
  symbols: string[];
  rows: number[];
  added: number[];
  wordpiece?: WordPieceSettings;
  bytelevel: { addBlank: boolean; merges: string[] };
  rules: {
    prefix: string;
    suffix: string;
    infix: string;
    url: string;
    special: { [word: string]: string[] };
  };
}

interface WordPieceSettings {
  cleanText: boolean;
  splitChinese: boolean;
  stripAccents: boolean;
  lowerText: boolean;
  longestWord: number;
  unknown: number;
  prefix: string;
  cleanUp: boolean;
}

interface SentencePieceDescription {
  algorithm: "bpe" | "unigram";
  pieces: string[];
  scores: string;
  unknown: number;
  unknownText: string;
  control: number[];
  bytes: number[];
  user: number[];
  dummyPrefix: boolean;
  removeExtraBlanks: boolean;
  charsmap: string;
}

/** A kind of literals (bitext/literals.toml): its pattern, and the pattern of what a text with such a
    literal holds. */
interface LiteralKind {
  pattern: string;
  needs: string | null;
  layout: boolean;
}

/** A part of a line with literals inside (inference/translation/literals.py); their spans are
    offsets in the part. */
interface Sentence {
  start: number;
  text: string;
  literals: Span[];
}

/** The built script that stands before worker.js, module.js and parity.js. */
declare const manyheads: typeof import("./model.js");

type Line = import("./translation/parts.js").Line;
type Part = import("./translation/parts.js").Part;
type Splitter = import("./translation/parts.js").Splitter;
type SourceModel = import("./translation/unliketraining.js").SourceModel;
type Translation = import("./manyheads.js").Translation;
/** A translation without the fields that a stage adds. */
type PlainTranslation = Omit<Translation, "confidence" | "confidence_level">;

interface SplitterOptions {
  tokenizer: Tokenizer;
  language: string;
  split?: "auto" | "sentences" | "none";
  trainedLength: number;
  longest: number;
  spansToTranslate?: (line: string) => Span[];
  lowerCapitals?: boolean;
  target?: string;
}

/** A feature of a translation, as in inference/translation/stages.py. */
interface Stage {
  /** Options of the splitter that depend on the settings of the feature. */
  splitting?: Partial<SplitterOptions>;
  /** Return a line as it is to be searched. */
  before?(draft: Draft): Draft;
  /** Return whether an output of a part may stay. */
  accepts?(part: Part, output: Output): boolean;
  /** Return a line as it is to be searched again, because no output of a part was accepted. */
  change?(draft: Draft): Draft;
  /** Return the warnings about a line by their names. */
  warnings?(draft: Draft): { [name: string]: boolean };
  /** Return fields to add to a translation, which has the warnings of all stages. */
  fields?(translation: PlainTranslation, draft: Draft): object;
}

/** A line on the way to its translation. */
interface Draft {
  line: Line;
  options: SearchOptions;
  /** The outputs of each part, best first. */
  outputs: Output[][];
  /** The same line cut at its literals, if these have placeholders in `line`. */
  cut?: Draft;
}

interface SymbolPair {
  rank: number;
  left: number;
  right: number;
  length: number;
}

interface TextUnit {
  span: Span;
  tokens: number;
}

interface WordToken {
  text: string;
  blank: boolean;
}

/* --- the tasks of a page --- */

type PageTranslator = import("./tasks/translation.js").PageTranslator;
type PageClassifier = import("./tasks/classification.js").PageClassifier;
type PageGenerator = import("./tasks/generation.js").PageGenerator;
type PageModel = PageTranslator | PageClassifier | PageGenerator;

/** What a page needs beside the weights (web/html_export.py); each task has its own fields. */
interface SourceModelDescription {
  /** Occurrences of each piece, separated by blanks. */
  counts: string;
  /** First piece, second piece and occurrences of each kept pair, separated by blanks. */
  pairs: string;
  mean: number;
  limits: number[];
  /** Share of the training sources that have more than one sentence. */
  several: number;
}

interface ConfidenceDescription {
  bias: number;
  weights: number[];
  usual_ratio: number;
  limits: number[];
}

interface PageSettings {
  run: string;
  facts: object;
  source: string;
  target: string;
  prefix?: number[];
  directions?: { run: string; source: string; target: string; prefix: number[] }[] | null;
  language: string;
  labels: string[];
  literals: LiteralKind[];
  lower_capitals: boolean;
  sources: SourceModelDescription | null;
  confidence: ConfidenceDescription | null;
  max_length: number;
  texts: number;
  longest: number;
  first: number;
  lines: boolean;
}

interface PageHeader extends EngineHeader {
  tokenizers: { source: TokenizerDescription; target: TokenizerDescription | null };
  page: PageSettings;
}

interface PageDescription {
  /** engine.wasm in base64. */
  wasm: string;
  header: PageHeader;
}

interface ModelChanges {
  /** Heads that are turned off, as "cross.0.1". */
  heads?: string[];
  /** False: without the causal mask. */
  mask?: boolean;
  positions?: boolean;
}

interface TranslateOptions extends Control {
  beam?: number;
  nBest?: number;
  alignment?: boolean;
  changes?: ModelChanges;
}

interface InspectOptions extends Control {
  beam?: number;
  prefix?: number[];
  target?: string;
  max_tokens?: number;
  occlusion?: boolean;
  temperature?: number;
  changes?: ModelChanges;
}

interface HeadRequest {
  kind: AttentionKind;
  layer?: number;
  head?: number;
  changes?: ModelChanges;
}

interface NextOptions extends Control {
  write?: number;
  temperature?: number;
  top_k?: number;
  top_p?: number;
  seed?: number;
  changes?: ModelChanges;
}

/** The body of a request of the page. */
type PageRequest = { q?: string; model?: string } & InspectOptions &
  Partial<HeadRequest> &
  NextOptions;

/** A request of web/check.py. */
interface ParityRequest {
  text?: string;
  model?: string;
  source: number[];
  target: number[];
  limit: number;
  prefix: number[];
  ids: number[];
}

/** An array as numbers of 16 bits between `low` and `high`, in base64. */
interface PackedArray {
  shape: number[];
  low: number;
  high: number;
  uint16: string;
}

interface BeamNode {
  number: number;
  parent: number | null;
  step: number;
  id: number;
  piece: string;
  log_probability: number;
  total: number;
  score: number;
  rank: number;
  state: string;
  threshold: number | null;
  best: boolean;
}

interface BeamTree {
  beam_size: number;
  length_penalty: number;
  steps: number;
  stop: string;
  nodes: BeamNode[];
}

interface ShownToken {
  id: number;
  piece: string;
  word: number | null;
}

interface ShownText {
  text: string;
  language: string;
  tokens: ShownToken[];
  words: string[];
}

interface Alternative {
  id: number;
  piece: string;
  log_probability: number;
  probability: number;
}

interface Prediction extends Alternative {
  rank: number;
  entropy: number;
  alternatives: Alternative[];
  forced: boolean;
}

interface ShownAttention {
  kind: AttentionKind;
  weights: PackedArray;
  mask: PackedArray;
  entropy: PackedArray;
}

interface Neighbours {
  id: number;
  piece: string;
  near: { id: number; piece: string; cosine: number }[];
}

interface HeadSteps extends HeadName {
  [array: string]: PackedArray | string | number;
}

interface Hypothesis {
  text: string;
  score: number;
  tokens: string[];
  token_scores: number[];
  log_probability: number;
}

/* --- the page --- */

type Child = Node | string | number | boolean | null | undefined | Child[];
/** Attributes, event listeners (names with "on"), and `style` as an object. */
type Attributes = { [name: string]: unknown };
type Choice = string | number | [string | number, string | number];
type Colour = number[];
type Cell = string | number | Node | null | undefined | false;
type Table = [titles: Cell[], rows: Cell[][]];
type Bar = [label: Child, value: number, text?: Child, action?: Child, strong?: boolean];
/** A part of a formula. */
type Term = string | Element | Term[];

/** What all modules of the page share. */
interface Shared {
  strings: { [language: string]: { [key: string]: string } };
  language: string;
  /** The key of the user for the server. */
  key: string;
  /** Set when the page starts. */
  about: About;
  /** Draw the page again; `keepScroll` keeps the scroll position. */
  render: (keepScroll?: boolean) => Promise<void>;
}

/** What a view needs. */
interface Tab {
  tasks?: Task[];
  needsInspection?: boolean;
  needsEngine?: boolean;
  /** Whether the view shows the switches of the model, with their effect. */
  hasSwitches?: boolean;
  /** Whether the view itself shows the text and the output. */
  showsText?: boolean;
  /** The part of a document that the view shows, if not an inspection. */
  part?: "curves" | "model";
}

interface PageState {
  tab: string;
  model: string;
  /** The text. */
  q: string;
  beam: string;
  sentence: number;
  /** A forced beginning of the output: ids with dots between them. */
  prefix: string;
  /** A forced output. */
  target: string;
  padding: number;
  /** Tokens to generate. */
  more: number;
  /** The selected token. */
  at: number;
  kind: AttentionKind | "";
  layer: number;
  head: string;
  /** The head to compare with. */
  other: string;
  threshold: number;
  step: number;
  /** The step of the whole model. */
  part: number;
  checkpoint: number;
  symbol: string;
  temperature: number;
  topk: number;
  topp: number;
  query: number;
  stage: number;
  /** The heads that are turned off, with "_" between them. */
  off: string;
  mask: number;
  positions: number;
}

interface SliderOptions {
  min: number;
  max: number;
  step?: number;
  value: number;
  show?: (value: number) => string;
}

interface StepperOptions {
  label: string;
  last: number;
  value: number;
  /** Milliseconds from step to step. */
  time: number;
  /** Return the step after the last one. */
  onEnd?: () => number;
}

interface FigureOptions {
  key: string;
  values?: { [name: string]: unknown };
  title?: string;
  about?: string | false | null;
  chart: Child;
  table?: () => Table;
}

/** The words of a text, with punctuation apart or not, and the index of the unit of each token. */
interface Units {
  texts: string[];
  unitOf: (number | null)[];
}

interface Curve {
  name: string;
  x: number[];
  y: number[];
}

interface MatrixOptions {
  rows: string[];
  before?: string[];
  columns: string[];
  value: (row: number, column: number) => number;
  hidden?: (row: number, column: number) => boolean;
  low?: number;
  high?: number;
  label: string;
  meaning: string;
  rowTitle: string;
  columnTitle: string;
  digits?: number;
  large?: boolean;
}

interface GridOptions {
  rows: string[];
  before?: string[];
  columns: string[];
  value: (row: number, column: number) => number;
  hidden: (row: number, column: number) => boolean;
  share: (row: number, column: number) => number;
  describe: (row: number, column: number) => string;
  label: string;
  low: number;
  high: number;
  rowTitle: string;
  columnTitle: string;
}

interface Grid {
  grid: HTMLElement;
  cellAt(e: Event): [row: number, column: number] | null;
  moveCursor(from: number[], to: number[], focus?: boolean): void;
}

interface Axis {
  names: string[];
  title: string;
}

/** The intermediate values of a head, with the names of rows and columns. */
interface HeadValues {
  rows: Axis;
  columns: Axis;
  at: (name: string, row: number, column: number) => number;
  vector: (name: string, row: number) => number[];
  width: number;
}

/** A step of the computation of a head, for one query; functions take the index of a key. */
interface StageOfHead {
  high?: number;
  titles: string[];
  formula: Term[];
  numbers: (key: number) => Term[];
  cells: (key: number) => Child[];
  firstRow?: [Child, Child[]];
  lastRow?: [Child, Child[]];
  vectorOf?: (key: number) => string;
  table: () => Table;
}

/** A step of the computation of the whole model, and the view that shows its details. */
interface ModelStep {
  name: string;
  door: Partial<PageState>;
  note: string;
  chart: () => Child;
}

/** A block of the picture of the whole model: a part of the model, or a text. */
interface ModelBlock {
  label: string;
  value: string;
  step: number;
  /** The steps of the parts of an attention. */
  cells?: number[];
  readsEncoder?: boolean;
  thin?: boolean;
  tokens?: boolean;
  /** The number of layers that begin with this block. */
  layers?: number;
  endsLayers?: boolean;
}

type ModelBlocks = import("./page/modelblocks.js").ModelBlocks;

interface StrongestWeight {
  layer: number;
  head: number;
  row: number;
  column: number;
  weight: number;
}

/* --- data of the page --- */

interface ModelFacts {
  name: string;
  task: Task;
  examples: string[];
  watched: boolean;
  source: string;
  target: string;
  beam: number;
}

interface About {
  models: ModelFacts[];
  parts: string[];
  char_limit: number;
  key_required: boolean;
  /** Whether the server stores corrections; an exported page has none. */
  suggestions?: boolean;
  /** The suffixes of files that the server translates; none if it translates no files. */
  files?: string[];
  /** The web address in the footer. */
  project?: string;
  weights?: { precision: string; bytes: number };
}

interface EmbeddedData {
  strings: { [language: string]: { [key: string]: string } };
  language: string | null;
  about: About;
  inspection: Inspection | null;
  model: ModelDocument;
  curves: TrainingCurves;
}

interface RequestBody {
  [name: string]: unknown;
}

/** What became of a file (DocumentReport in inference/translation/documents.py). */
interface FileReport {
  units: number;
  unchanged: number;
  doubtful: [place: string, source: string, reasons: string[]][];
  notes: string[];
}

/** A file that is being translated; with `result` or `error`, one that was. */
interface FileJob {
  name: string;
  /** The element that shows the seconds so far. */
  time: HTMLElement;
  control: AbortController;
  result?: FileReport & { name: string; content: Blob };
  error?: string;
}

interface SentenceTranslation {
  source: string;
  translation: string;
  hypotheses: Hypothesis[];
  warnings: string[];
  confidence_level: string | null;
}

interface TextTranslation {
  translation: string;
  sentences: SentenceTranslation[];
  tokens: number;
  seconds: number;
}

/** An output with its score: of a translation, of a label (its probability) or of the next token
    (its probability). */
interface ScoredOutput {
  text: string;
  measure: "score" | "label" | "next";
  score: number;
}

/** A change of the model: its name, the changes of the state that show it, and the changes of a
    request. */
interface PossibleChange {
  name: string;
  shown: Partial<PageState>;
  changes: ModelChanges;
}

/** A change with its effect: the words that differ, and the difference of the scores. */
interface TriedChange extends PossibleChange {
  words: number;
  gap: number;
  effect: string;
}

interface Occlusion {
  columns: string[];
  words: { word: number; drop: number; drops: number[]; output: string }[];
}

/** What POST /api/inspect answers; each task has its own fields. */
interface Inspection {
  kind: Task;
  model: {
    positions: string;
    norm: string;
    d_model: number;
    d_ff: number;
    num_heads: number;
    num_encoder_layers: number;
    num_decoder_layers: number;
  };
  source: ShownText;
  target: ShownText;
  text: ShownText;
  inputs: ShownToken[];
  attention: ShownAttention[];
  predictions: Prediction[];
  score: number;
  beam: BeamTree | null;
  alignment: { layer: number; links: Link[]; weights: PackedArray } | null;
  occlusion: Occlusion | null;
  label: string;
  classes: { label: string; probability: number }[];
  pooling: string;
  next: NextToken[];
  neighbours?: Neighbours[];
  source_neighbours?: Neighbours[];
  target_neighbours?: Neighbours[];
}

interface NextToken {
  piece: string;
  text?: string;
  probability: number;
  share: number;
}

interface NextTokens {
  tokens: NextToken[];
  kept: number;
  text: string;
}

interface PaperSymbol {
  symbol: string;
  meaning: string;
  equation: string;
  section: string;
  source: string;
  shape: string;
}

interface ModelDocument {
  model: {
    parameters: number;
    model: { [setting: string]: string | number };
    blocks: { name: string; parameters: number }[];
    tensors: {
      name: string;
      shape: number[];
      parameters: number;
      deviation: number;
      tied_to: string | null;
    }[];
    symbols: PaperSymbol[];
    positions: { kind: string; signal: PackedArray; products: PackedArray };
    learning_rate: {
      total_steps: number;
      warmup_steps: number;
      schedule: string;
      steps: number[];
      rates: number[];
    };
  };
  sources: { [location: string]: { line: number; text: string } };
  card: { licence: string; blocks: [string, string][]; korean: [string, string][] };
}

interface LogSeries {
  name: string;
  steps: number[];
  values: number[];
}

interface TrainingRun {
  name: string;
  series: LogSeries[];
  samples: { step: number; source: string; reference: string; output: string }[];
}

interface TrainingCurves {
  runs: TrainingRun[];
}

/* --- the explorer --- */

interface Schema {
  $ref?: string;
  oneOf?: Schema[];
  enum?: string[];
  type?: string;
  format?: string;
  default?: unknown;
  description?: string;
  maxLength?: number;
  properties?: { [name: string]: Schema };
  required?: string[];
}

interface Operation {
  summary: string;
  parameters?: { name: string; schema: Schema; description: string; required: boolean }[];
  requestBody?: { content: { [type: string]: { schema: Schema } } };
}

interface OpenApi {
  components: { schemas: { [name: string]: Schema } };
  paths: { [path: string]: { [method: string]: Operation } };
}

interface Window {
  manyheads?: { translate(text: string, options?: { beam?: number }): Promise<unknown> };
}
