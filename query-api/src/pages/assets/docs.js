"use strict";

const byId = (id) => document.getElementById(id);

/** Opens the target of the address. */
function openTarget() {
  const target = location.hash ? byId(decodeURIComponent(location.hash.slice(1))) : null;
  // All operations were once on one page; links into it redirect to where they moved.
  if (target?.dataset.moved !== undefined) {
    location.replace(target.querySelector("a").href);
    return;
  }
  target?.querySelector("details")?.setAttribute("open", "");
}
addEventListener("hashchange", openTarget);
openTarget();

/** Inserts this origin into a sample. */
const here = (code) =>
  code.replace("$WAYPOST", location.origin).replace('WAYPOST + "', `"${location.origin}`);

/** Copies a sample. Plain HTTP has no clipboard: the text is selected instead. */
async function copy(button) {
  const shown = button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(here(shown.textContent));
    button.firstChild.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(shown);
    button.firstChild.textContent = "Press Ctrl+C";
  }
}

for (const code of document.querySelectorAll(".code")) {
  if (code.querySelector("[data-copy]")) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small plain";
  button.dataset.copy = "";
  button.append("Copy");
  const what = document.createElement("span");
  what.className = "hidden";
  what.textContent = " this code";
  button.append(what);
  code.append(button);
}
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copy(button));
}

// A phone shows the page first, and the list of all pages on request.
const contents = document.querySelector("details.contents");
if (matchMedia("(max-width: 50rem)").matches) contents?.removeAttribute("open");
contents?.classList.add("folded");

function requestOf(form) {
  const { method, caller } = form.dataset;
  const headers = {};
  const secret = { key: byId("key").value, token: byId("token").value }[caller];
  if (secret) headers.Authorization = `Bearer ${secret}`;
  let path = form.dataset.path;
  const query = new URLSearchParams();
  let body;
  for (const field of form.querySelectorAll("[data-in]")) {
    const { name, value } = field;
    if (field.dataset.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (!value) continue;
    else if (field.dataset.in === "query") query.set(name, value);
    else if (field.dataset.in === "header") headers[name] = value;
    else body = value;
  }
  if (body) headers["Content-Type"] = "application/json";
  const asked = query.size ? `${path}?${query}` : path;
  return [asked, { method, headers, body, credentials: "omit" }];
}

/** Formats the answer for a person. */
async function written(answer) {
  const lines = [`${answer.status} ${answer.statusText}`];
  for (const [name, value] of answer.headers) lines.push(`${name}: ${value}`);
  const kind = answer.headers.get("Content-Type") || "";
  let text = await answer.text();
  if (kind.startsWith("application/json")) text = JSON.stringify(JSON.parse(text), null, 2);
  else if (!/^(text|application\/x-ndjson)/.test(kind) && text) text = `(${text.length} bytes)`;
  return `${lines.join("\n")}\n\n${text.slice(0, 20000)}`;
}

for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const output = form.querySelector("output");
    const shown = document.createElement("pre");
    shown.tabIndex = 0;
    try {
      shown.textContent = await written(await fetch(...requestOf(form)));
    } catch (error) {
      shown.textContent = error.message;
    }
    output.replaceChildren(shown);
    output.hidden = false;
  });
}
