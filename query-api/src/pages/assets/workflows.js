"use strict";

/**
 * Returns the offset of each value in a JSON text by its path, such as `steps[2].url`.
 * Throws with the offset of the first thing that is not JSON.
 */
function placesIn(text) {
  const places = new Map();
  let at = 0;
  const wrong = (what) => { throw Object.assign(new Error(what), { at }); };
  const skip = () => { while (" \t\r\n".includes(text[at]) && at < text.length) at += 1; };
  const expect = (mark) => {
    skip();
    if (text[at] !== mark) wrong(`expected ${mark} here`);
    at += 1;
  };
  const string = () => {
    skip();
    const found = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
    found.lastIndex = at;
    const match = found.exec(text);
    if (!match) wrong("expected text in quotation marks here");
    at = found.lastIndex;
    return JSON.parse(match[0]);
  };
  const list = (end, item) => {
    at += 1;
    skip();
    if (text[at] === end) { at += 1; return; }
    for (let nth = 0; ; nth += 1) {
      item(nth);
      skip();
      if (text[at] === end) { at += 1; return; }
      expect(",");
    }
  };
  const value = (path, depth) => {
    skip();
    places.set(path, at);
    if (depth > 120) wrong("nested too deeply");
    if (text[at] === "{") {
      list("}", () => {
        skip();
        const start = at;
        const name = string();
        expect(":");
        const inner = path ? `${path}.${name}` : name;
        value(inner, depth + 1);
        places.set(inner, start);
      });
    } else if (text[at] === "[") {
      list("]", (nth) => value(`${path}[${nth}]`, depth + 1));
    } else if (text[at] === '"') {
      string();
    } else {
      const plain = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
      plain.lastIndex = at;
      if (!plain.exec(text)) wrong("expected a value here");
      at = plain.lastIndex;
    }
  };
  value("", 0);
  skip();
  if (at < text.length) wrong("expected the end here");
  return places;
}

/** Returns the offset an error names, or that of the nearest parent. */
function placeOf(message, places) {
  let path = /^([^:]+?): /.exec(message)?.[1] ?? "";
  while (path && !places.has(path)) path = path.replace(/(\.[^.[\]]*|\[\d+\]|^[^.[\]]+)$/, "");
  return places.get(path) ?? 0;
}

/** Moves the cursor to an offset and into view. */
function pointAt(area, at) {
  const line = area.value.slice(0, at).split("\n").length;
  const end = area.value.indexOf("\n", at);
  area.focus();
  area.setSelectionRange(at, end < 0 ? area.value.length : end);
  area.scrollTop = Math.max(0, (line - 4) * (area.scrollHeight / area.value.split("\n").length));
  return line;
}

const definition = find("#definition");
const area = find("#document");

/**
 * Saves a definition as written, so that no number and no order changes on the way. The server
 * refuses if its version does not match `expected`; the error is then `refused`.
 */
async function save(id, text, expected, refused) {
  const path = `/dashboard/api/v1/workflows/${encodeURIComponent(id)}`;
  try {
    return (await send("PUT", path, undefined, { headers: expected, text })).position;
  } catch (error) {
    throw error.status === 412 ? new Error(refused) : error;
  }
}

/** Saves the next version of the workflow that the page shows. */
function saveNext(text) {
  const { workflow, etag } = definition.dataset;
  return save(workflow, text, { "If-Match": etag },
    "Somebody else has saved a version in the meantime. Copy what you have written, reload the page and put it in again.");
}

definition?.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(find("[type=submit]", definition), find("#document-fault"), async () => {
    let places;
    try {
      places = placesIn(area.value);
    } catch (error) {
      throw new Error(`Line ${pointAt(area, error.at)}: ${error.message}.`);
    }
    try {
      showAgain(await saveNext(area.value), location.pathname);
    } catch (error) {
      if (!/^[\w.[\]-]+: /.test(error.message)) throw error;
      throw new Error(`Line ${pointAt(area, placeOf(error.message, places))}: ${error.message}`);
    }
  });
});

const written = area?.defaultValue;
addEventListener("beforeunload", (event) => {
  if (area && area.value !== written && find("[type=submit]", definition).ariaDisabled !== "true") event.preventDefault();
});

for (const button of all("[data-status]")) {
  button.addEventListener("click", () => attempt(button, find("#workflow-fault"), async () => {
    if (area.value !== written) throw new Error("Save or undo your changes to the definition first.");
    const changed = { ...JSON.parse(written), status: button.dataset.status };
    showAgain(await saveNext(JSON.stringify(changed)));
  }));
}

const made = find("#workflow-new");
find("#new-workflow")?.addEventListener("click", () => made.showModal());
made?.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(find("[type=submit]", made), find(".fault", made), async () => {
    const id = find("#new-id").value.trim();
    const draft = {
      name: find("#new-name").value,
      status: "DRAFT",
      steps: [
        { id: "start", type: "TRIGGER", next: ["tell"] },
        { id: "tell", type: "NOTIFY", event: "started", data: { by: "{{ trigger.triggeredBy }}" } },
      ],
    };
    const position = await save(id, JSON.stringify(draft), { "If-None-Match": "*" },
      "A workflow with this id exists already. Choose another id.");
    showAgain(position, `/dashboard/workflows/${encodeURIComponent(id)}`);
  });
});
