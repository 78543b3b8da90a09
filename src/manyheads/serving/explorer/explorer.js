"use strict";
// Makes a form of each operation of /spec. Everything from the server is shown as text, never as HTML.

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

// Returns a schema in the place of a reference to it.
function resolved(schema, spec) {
  return schema.$ref ? spec.components.schemas[schema.$ref.split("/").pop()] : schema;
}

function field(name, schema, required, spec) {
  const label = element("label", name + (required ? " (required)" : ""));
  const kind = schema.oneOf ? resolved(schema.oneOf[0], spec) : schema;
  let input;
  if (kind.enum) {
    input = element("select");
    kind.enum.forEach((value) => input.append(element("option", value)));
  } else if (name === "q" || name === "prompt") {
    input = element("textarea", undefined, { rows: "3", maxlength: String(kind.maxLength || 5000) });
  } else if (kind.type === "boolean") {
    input = element("select");
    ["false", "true"].forEach((value) => input.append(element("option", value)));
  } else {
    input = element("input", undefined, { type: kind.type === "string" ? "text" : "number", step: "any" });
    if (kind.default !== undefined) input.value = String(kind.default);
  }
  input.name = name;
  input.dataset.kind = kind.type;
  label.append(input);
  if (schema.description) label.append(element("span", schema.description, { class: "note" }));
  return label;
}

function values(form) {
  const found = {};
  form.querySelectorAll("[name]").forEach((input) => {
    if (input.value === "") return;
    const kind = input.dataset.kind;
    if (kind === "boolean") found[input.name] = input.value === "true";
    else if (kind === "integer" || kind === "number") found[input.name] = Number(input.value);
    else found[input.name] = input.value;
  });
  return found;
}

async function send(method, path, form, output) {
  const options = { method: method.toUpperCase(), headers: {} };
  const key = document.getElementById("key").value;
  if (key) options.headers.Authorization = "Bearer " + key;
  if (method === "post") {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(values(form));
  }
  const begun = performance.now();
  try {
    const answer = await fetch(path, options);
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch (error) { /* no JSON: as it came */ }
    output.textContent = answer.status + " after " + Math.round(performance.now() - begun) + " ms\n" + shown;
  } catch (error) {
    output.textContent = "No answer: " + error.message;
  }
}

function operation(method, path, described, spec) {
  const box = element("details");
  const title = element("summary");
  title.append(element("code", method.toUpperCase() + " " + path), " " + described.summary);
  const form = element("form");
  const body = described.requestBody && described.requestBody.content["application/json"].schema;
  if (body) {
    const { properties, required } = resolved(body, spec);
    Object.entries(properties).forEach(([name, schema]) => {
      if (name !== "api_key") form.append(field(name, resolved(schema, spec), required.includes(name), spec));
    });
  }
  const output = element("pre", "", { role: "status" });
  form.append(element("button", "Send", { type: "submit" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(method, path, form, output);
  });
  box.append(title, form, output);
  return box;
}

async function begin() {
  const spec = await (await fetch("/spec")).json();
  const place = document.getElementById("operations");
  Object.entries(spec.paths).forEach(([path, methods]) => {
    Object.entries(methods).forEach(([method, described]) => place.append(operation(method, path, described, spec)));
  });
}

begin();
