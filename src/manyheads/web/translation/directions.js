/* The directions of a translator of several languages, as in
   manyheads/inference/translation/directions.py. */

/** The symbol of the target language before every output, in a vocabulary that has it.
    @implements {Stage} */
export class Direction {
  /** @param {PageTranslator} translator */
  constructor({ prefix }) {
    this.prefix = prefix;
  }

  /** @type {(draft: Draft) => Draft} */
  before(draft) {
    const forced = { prefix: this.prefix, skip: this.prefix.length };
    return { ...draft, options: { ...draft.options, ...forced } };
  }
}

/** Return the settings of a direction by the name that the page gives it; the same without several
    directions.
    @type {(settings: PageSettings, name: string | undefined) => PageSettings} */
export function settingsByName(settings, name) {
  const found = settings.directions?.find(({ run }) => run === name);
  return found ? { ...settings, ...found, directions: null } : settings;
}

/** Return the settings of a direction by its languages; "" leaves out the choice. Throw an error
    unless exactly one direction fits.
    @type {(settings: PageSettings, source: string, target: string) => PageSettings} */
export function settingsByLanguages(settings, source, target) {
  const trained = settings.directions ?? [settings];
  const fitting = trained.filter(
    (direction) =>
      [direction.source, ""].includes(source) && [direction.target, ""].includes(target),
  );
  if (fitting.length !== 1) {
    const names = trained.map((direction) => `${direction.source}-${direction.target}`).join(", ");
    throw new RangeError(
      `${source || "any"} to ${target || "any"} is not one of the directions ${names}.`,
    );
  }
  return settingsByName(settings, fitting[0].run);
}
