/** The result of a translation. */
export interface Translation {
  source: string;
  translation: string;
  /** Log-probability divided by the length to the power of the length penalty; 0 for an empty text.
   */
  score: number;
  /** The best outputs, best first; as many as `nBest`. */
  hypotheses: Hypothesis[];
  /** Aligned words as "0-0 1-2", source before target, counted from 0; null for an empty text. */
  alignment: string | null;
  /** Whether the source was cut, or the translation reached the maximum length without ending. */
  truncated: boolean;
  /** Number of parts that a long text was split into. */
  sentences: number;
  /** Names of the problems that were detected, such as "repetition". */
  warnings: string[];
  /** Estimated chrF of the translation, from 0 to 1; null for text that is copied, and for a run
      without an estimate. */
  confidence: number | null;
  /** "low", "medium" or "high". */
  confidence_level: string | null;
}

export interface Hypothesis {
  text: string;
  score: number;
  tokens: string[];
  /** Natural logarithm of the probability of each token. */
  token_scores: number[];
  log_probability: number;
}

export interface LabelProbability {
  label: string;
  /** From 0 to 1. */
  probability: number;
}

export interface TranslateOptions {
  /** Beam size; 1 is greedy search. Default: that of the run. */
  beam?: number;
  /** Number of hypotheses. Default: 1. */
  nBest?: number;
  /** Languages of a model of several, such as "de"; one may be left out where the other decides. */
  source?: string;
  target?: string;
  /** Ends the search with an error when it is aborted. */
  signal?: AbortSignal;
}

export interface GenerateOptions {
  /** Maximum number of generated tokens. Default: 256. */
  maxTokens?: number;
  /** 0 takes the likeliest token each time. Default: 1. */
  temperature?: number;
  /** Sample only from this number of likeliest tokens; 0 for all. */
  topK?: number;
  /** Sample only from the fewest likeliest tokens whose total probability is at least this.
      Default: 1. */
  topP?: number;
  /** The same seed gives the same text. Default: a random one. */
  seed?: number;
  signal?: AbortSignal;
}

export interface Model {
  /** Name of the run. */
  readonly name: string;
  readonly task: "translation" | "classification" | "language-modeling";
  /** Source and target language of each direction of a model of several languages. */
  readonly directions?: [string, string][];
  /** Language codes of a translator, such as "de"; of the first direction where there are several.
   */
  readonly source?: string;
  readonly target?: string;
  /** Language code of a classifier or a language model. */
  readonly language?: string;
  /** The classes of a classifier. */
  readonly labels?: string[];
  translate(text: string, options?: TranslateOptions): Promise<Translation>;
  /** Return the classes, the likeliest first; none for a blank text. */
  classify(text: string): Promise<LabelProbability[]>;
  generate(prompt: string, options?: GenerateOptions): Promise<string>;
  /** Free the memory; the model cannot be used afterwards. */
  close(): void;
}

/** Load a model; `source` is the address of model.bin, relative to manyheads.js, or its bytes. */
export function load(source?: string | URL | ArrayBuffer | Uint8Array): Promise<Model>;

/** Translate, classify or generate with model.bin beside manyheads.js, which the first call loads.
 */
export function translate(text: string, options?: TranslateOptions): Promise<Translation>;
export function classify(text: string): Promise<LabelProbability[]>;
export function generate(prompt: string, options?: GenerateOptions): Promise<string>;
