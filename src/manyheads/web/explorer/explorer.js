// Build a form for each operation of /spec. All from the server is shown as text, never as HTML.

/** @type {<K extends keyof HTMLElementTagNameMap>(name: K, text?: string,
      attributes?: { [key: string]: string }) => HTMLElementTagNameMap[K]} */
function createElement(name, text, attributes) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  Object.entries(attributes || {}).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
}

// Returns a schema, or the schema that it refers to.
/** @type {(schema: Schema, spec: OpenApi) => Schema} */
function resolveSchema(schema, spec) {
  return schema.$ref
    ? spec.components.schemas[schema.$ref.replace("#/components/schemas/", "")]
    : schema;
}

/** @type {(name: string, schema: Schema, required: boolean, spec: OpenApi) => HTMLElement} */
function createField(name, schema, required, spec) {
  const label = createElement("label", name + (required ? " (required)" : ""));
  const valueSchema = schema.oneOf ? resolveSchema(schema.oneOf[0], spec) : schema;
  const options = valueSchema.enum ?? (valueSchema.type === "boolean" ? ["false", "true"] : null);
  let input;
  if (options) {
    input = createElement("select");
    input.append(...options.map((value) => createElement("option", value)));
  } else if (name === "q" || name === "prompt") {
    input = createElement("textarea", undefined, {
      rows: "3",
      maxlength: String(valueSchema.maxLength || 5000),
    });
  } else if (valueSchema.format === "binary") {
    input = createElement("input", undefined, { type: "file" });
  } else {
    input = createElement("input", undefined, {
      type: valueSchema.type === "string" ? "text" : "number",
      step: "any",
    });
    if (valueSchema.default !== undefined) input.value = String(valueSchema.default);
  }
  input.name = name;
  input.dir = "auto";
  input.dataset.type = valueSchema.type ?? "";
  label.append(input);
  if (schema.description) {
    label.append(createElement("span", schema.description, { class: "note" }));
  }
  return label;
}

/** @type {(form: HTMLFormElement) => { [name: string]: string | number | boolean }} */
function formValues(form) {
  /** @type {{ [name: string]: string | number | boolean }} */
  const values = {};
  /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("[name]")).forEach((input) => {
    if (input.value === "") return;
    const type = input.dataset.type;
    if (type === "boolean") values[input.name] = input.value === "true";
    else if (type === "integer" || type === "number") values[input.name] = Number(input.value);
    else values[input.name] = input.value;
  });
  return values;
}

// Addresses are relative to that of the page: a proxy may serve it below a path. An operation that
// takes a file takes a form, all others JSON.
/** @type {(method: string, path: string, form: HTMLFormElement, output: HTMLElement) =>
      Promise<void>} */
async function sendRequest(method, path, form, output) {
  const apiKey = /** @type {HTMLInputElement} */ (document.getElementById("key")).value;
  const sent = method === "post";
  const isForm = form.querySelector("[type=file]");
  const headers = {
    ...(apiKey && { Authorization: "Bearer " + apiKey }),
    ...(sent && !isForm && { "Content-Type": "application/json" }),
  };
  const values = formValues(form);
  const options = {
    method: method.toUpperCase(),
    headers,
    body: isForm ? new FormData(form) : sent ? JSON.stringify(values) : undefined,
  };
  const address = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
  const start = performance.now();
  try {
    const response = await fetch("." + address, options);
    const text = await response.text();
    let body = text;
    try {
      body = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      /* not JSON: show the text unchanged */
    }
    output.textContent =
      response.status + " after " + Math.round(performance.now() - start) + " ms\n" + body;
  } catch (error) {
    output.textContent = "No answer: " + error.message;
  }
}

/** @type {(method: string, path: string, operation: Operation, spec: OpenApi) => HTMLElement} */
function createOperation(method, path, operation, spec) {
  const details = createElement("details");
  const summary = createElement("summary");
  summary.append(createElement("code", method.toUpperCase() + " " + path), " " + operation.summary);
  const form = createElement("form");
  for (const { name, schema, description, required } of operation.parameters ?? []) {
    form.append(createField(name, { ...schema, description }, required, spec));
  }
  const [body] = Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => schema);
  if (body) {
    const { properties = {}, required = [] } = resolveSchema(body, spec);
    Object.entries(properties).forEach(([name, schema]) => {
      if (name !== "api_key") {
        form.append(createField(name, resolveSchema(schema, spec), required.includes(name), spec));
      }
    });
  }
  const output = createElement("pre", "", { role: "status" });
  form.append(createElement("button", "Send", { type: "submit" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sendRequest(method, path, form, output);
  });
  details.append(summary, form, output);
  return details;
}

async function showOperations() {
  /** @type {OpenApi} */
  const spec = await (await fetch("spec")).json();
  Object.entries(spec.paths).forEach(([path, methods]) => {
    Object.entries(methods).forEach(([method, operation]) =>
      document.getElementById("operations")?.append(createOperation(method, path, operation, spec)),
    );
  });
}

showOperations();
