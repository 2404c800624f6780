"use strict";

/** The edit form of a record, its deletion, and exports with progress. */
const recordForm = find("#record-form");

/** Converts an amount with `decimals` to minor units, no floats. */
function minorUnits(text, decimals) {
  const parts = /^(-?)(\d{1,13})(?:\.(\d+))?$/.exec(text.replace(/[,\s]/g, ""));
  if (!parts || (parts[3] || "").length > decimals) return null;
  const amount = Number(parts[2] + (parts[3] || "").padEnd(decimals, "0"));
  return parts[1] ? 0 - amount : amount;
}

/** Returns the number of decimals of the form's currency. */
function decimalsOf(input) {
  const currency = recordForm.elements.namedItem("currency")?.value.trim().toUpperCase();
  const known = input.dataset.decimals.split(" ").map((one) => one.split(":"));
  return Number(known.find(([code]) => code === currency)?.[1] ?? 2);
}

/** Converts a value for the API, or throws what is wrong. */
function asJson(text, input) {
  const { look } = input.dataset;
  if (text.trim() === "") return null;
  if (look === "flag") return text === "true";
  if (look === "money") {
    const decimals = decimalsOf(input);
    const amount = minorUnits(text, decimals);
    if (amount === null) throw new Error(`Write an amount such as ${(129).toFixed(decimals)}.`);
    return amount;
  }
  if (look === "number" || look === "percent") {
    const number = Number(text.replace(/[,\s]/g, ""));
    if (!Number.isFinite(number)) throw new Error("Write a number, in digits.");
    return number;
  }
  return text;
}

/** Puts a value where its name says: `client.name` is the name within client. */
function place(record, name, value) {
  const [outer, inner] = name.split(".");
  if (inner) (record[outer] ??= {})[inner] = value;
  else record[outer] = value;
}

/** Shows at a field what is wrong with it, if anything. */
function tellAt(input, message) {
  const fault = find(`#${CSS.escape(input.id)}-fault`) || find("#id-fault");
  fault.textContent = message || "";
  fault.hidden = !message;
  if (message) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** Returns the form's record; null if a field is wrong, which is shown there. */
function readForm() {
  const record = {};
  let first = null;
  for (const input of recordForm.querySelectorAll("[data-look]")) {
    let wrong = "";
    try {
      const value = asJson(input.value, input);
      if (value === null && input.required) wrong = "This field is required.";
      else place(record, input.name, value);
    } catch (error) {
      wrong = error.message;
    }
    tellAt(input, wrong);
    if (wrong) first ??= input;
  }
  first?.focus();
  return first ? null : record;
}

/** Shows a server error at the field that it names, or else below the form. */
function tellWhere(error) {
  const [, name, reason] = /^([A-Za-z.]+): (.*)$/s.exec(error.message) || [];
  const input = name === "id" ? find("#record-id") : name && recordForm.elements.namedItem(name);
  if (!input) throw error;
  tellAt(input, reason);
  input.focus();
}

/** Changes the record that the page shows; the server refuses if it has changed since. */
async function change(method, record) {
  const { kind, id, etag } = recordForm.dataset;
  const path = `/dashboard/api/v1/records/${kind}/${encodeURIComponent(id)}`;
  try {
    return await send(method, path, record, { headers: { "If-Match": etag } });
  } catch (error) {
    if (error.status !== 412) throw error;
    throw new Error("Somebody else has changed this record in the meantime. Reload the page, then make your changes again.");
  }
}

recordForm?.addEventListener("submit", (event) => {
  event.preventDefault();
  const { kind, id } = recordForm.dataset;
  const records = `/dashboard/api/v1/records/${kind}`;
  attempt(find("[type=submit]", recordForm), find("#record-fault"), async () => {
    const record = readForm();
    if (!record) return;
    try {
      if (id === undefined) {
        const given = find("#record-id").value;
        if (given) record.id = given;
        const made = await send("POST", records, record);
        showAgain(made.position, `/dashboard/${kind}/${encodeURIComponent(made.id)}`);
      } else {
        showAgain((await change("PUT", record)).position);
      }
    } catch (error) {
      tellWhere(error);
    }
  });
});

find("#delete-record")?.addEventListener("click", () => find("#record-delete").showModal());
find("#delete-now")?.addEventListener("click", ({ target }) =>
  attempt(target, find("#record-delete .fault"), async () => {
    showAgain((await change("DELETE")).position, `/dashboard/${recordForm.dataset.kind}`);
  }));

find(".search select")?.addEventListener("change", ({ target }) => target.form.requestSubmit());

/** Up to this size a file is buffered here and its progress shown; beyond, the browser saves it. */
const GATHERED = 512 * 1024 * 1024;

async function exportWithProgress(link, told) {
  const answer = await fetch(link.href, { credentials: "same-origin" });
  if (!answer.ok) throw new Error((await answer.json()).error || "The export failed.");
  const named = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
  const [parts, reader] = [[], answer.body.getReader()];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    told.textContent = `Exporting: ${(size / 1e6).toFixed(1)} MB so far.`;
    if (size > GATHERED) {
      await reader.cancel();
      location.assign(link.href);
      told.textContent = "The file is large: your browser downloads it.";
      return;
    }
  }
  const address = URL.createObjectURL(new Blob(parts));
  const save = Object.assign(document.createElement("a"), { href: address, download: named?.[1] || "export" });
  save.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  told.textContent = `Exported ${(size / 1e6).toFixed(1)} MB.`;
}

for (const link of all("[data-export]")) {
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    const told = find("#exporting");
    if (told.dataset.busy) return;
    told.dataset.busy = "true";
    told.textContent = "Exporting…";
    try {
      await exportWithProgress(link, told);
    } catch (error) {
      told.textContent = `The export broke off: ${error.message} Try again.`;
    }
    delete told.dataset.busy;
  });
}
