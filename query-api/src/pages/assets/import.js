"use strict";

/** The most lines and the most text in one request. */
const CHUNK_LINES = 2000;
const CHUNK_TEXT = 2 * 1024 * 1024;
/** The most attempts at one request, and how many errors are shown and kept. */
const TRIES = 6;
const FAULTS_SHOWN = 10;
const REJECTS_KEPT = 100_000;

const importing = find("#import");
const choice = { file: null, isCsv: true, header: [], selects: [], stopped: false };

const plain = (text) => text.toLowerCase().replace(/[_\s]+/g, " ").trim();
const squeezed = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
const count = (number) => number.toLocaleString("en");

/** Returns the field that a column's name suggests; "" if none. */
function guess(column, options, taken) {
  const fits = (option) => {
    const names = [option.value, option.label, ...(option.dataset.aliases || "").split("|")];
    return option.value && !taken.has(option.value) &&
      names.some((name) => plain(name) === plain(column) || squeezed(name) === squeezed(column));
  };
  // Names before aliases: an alias of one field may be another's name.
  const own = options.find((option) => option.value && !taken.has(option.value) && squeezed(option.value) === squeezed(column));
  return (own || options.find(fits))?.value || "";
}

async function choose(file) {
  const fault = find("#import-file-fault");
  tell(fault);
  find("#import-progress").hidden = true;
  try {
    if (!file.size) throw new Error("This file is empty. Choose another one.");
    const start = (await file.slice(0, 4096).text()).replace(/^\ufeff/, "").trimStart();
    if (start.startsWith("[")) throw new Error("This is a JSON array. Write one record per line (NDJSON) or a CSV.");
    if (start.startsWith("PK")) throw new Error("This is an Excel or ZIP file. Save it as CSV first.");
    Object.assign(choice, { file, isCsv: !start.startsWith("{") });
    if (choice.isCsv) await showMapping(file);
    find("#import-mapping .scroll").hidden = !choice.isCsv;
    find("#import-mapping-title").textContent = choice.isCsv ? "2. Match columns with fields" : "2. Check or import";
    find("#import-mapping").hidden = false;
    warn();
  } catch (error) {
    find("#import-mapping").hidden = true;
    tell(fault, error);
  }
}

async function showMapping(file) {
  const { value } = await rowsOf(file).next();
  const [header, ...rows] = value.rows;
  if (!header) throw new Error("This file has no rows. A CSV needs a first row that names its columns.");
  choice.header = header.map((name) => name.replace(/^\ufeff/, ""));
  const body = find("#import-columns");
  const taken = new Set();
  choice.selects = choice.header.map((name, at) => {
    const select = find("select", find("#import-fields").content).cloneNode(true);
    select.setAttribute("aria-label", `Field for the column ${name}`);
    select.value = guess(name, [...select.options], taken);
    if (select.value) taken.add(select.value);
    select.addEventListener("change", warn);
    select.dataset.sample = rows.slice(0, 200).map((row) => row[at] || "").find((cell) => cell.trim()) || "";
    return select;
  });
  body.replaceChildren(...choice.selects.map((select, at) => {
    const row = document.createElement("tr");
    const name = Object.assign(document.createElement("th"), { scope: "row", textContent: choice.header[at] || `(column ${at + 1})` });
    const sample = Object.assign(document.createElement("td"), { textContent: select.dataset.sample.slice(0, 80) || "–" });
    const field = document.createElement("td");
    field.append(select);
    row.append(name, sample, field);
    return row;
  }));
  const amounts = choice.selects.findIndex((select) => select.selectedOptions[0].dataset.look === "money");
  const cells = amounts < 0 ? [] : rows.slice(0, 500).map((row) => row[amounts] || "");
  find("#import-units").value = cells.some((cell) => /[.,]\d{1,2}$/.test(cell.trim())) ? "major" : "minor";
}

/** Shows problems of the mapping before anything is sent. */
function warn() {
  const used = choice.isCsv ? choice.selects.map((select) => select.value).filter(Boolean) : [];
  const twice = used.find((name, at) => used.indexOf(name) !== at);
  const missing = [...find("select", find("#import-fields").content).options]
    .filter((option) => "required" in option.dataset && !used.includes(option.value));
  let wrong = null;
  if (choice.isCsv && twice) wrong = `Two columns become the same field (${twice}). Leave one of them out.`;
  else if (choice.isCsv && !used.length) wrong = "Choose a field for at least one column.";
  else if (choice.isCsv && missing.length) wrong = `Choose a column for: ${missing.map((option) => option.label).join(", ")}. It is required.`;
  tell(find("#import-mapping-fault"), wrong && new Error(wrong));
  for (const button of [find("#import-check"), find("#import-start")]) button.disabled = Boolean(wrong);
  const looks = choice.isCsv ? choice.selects.map((select) => select.selectedOptions[0].dataset.look) : [];
  find("#import-amounts").hidden = !looks.includes("money");
  const warning = find("#import-warning");
  warning.hidden = !choice.isCsv || used.includes("id");
  warning.textContent = "No column is the id: importing this file twice creates every record twice.";
}

const flags = { true: true, yes: true, "1": true, active: true, false: false, no: false, "0": false, inactive: false };

/** Formats a time or a day for Waypost; other systems write a space, or no zone. */
function asTime(text, day) {
  const parts = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?)?\s*(Z|[+-]\d{2}:?\d{2})?$/.exec(text);
  if (!parts) throw new Error("must be a time such as 2024-05-02T09:15:00Z or a day such as 2024-05-02");
  const [, date, time = "00:00", seconds = ":00", zone = "Z"] = parts;
  return day ? date : `${date}T${time}${seconds}${zone.replace(/^([+-]\d{2})(\d{2})$/, "$1:$2")}`;
}

/** Returns the number of decimals of a currency. */
function decimalsOf(currency) {
  const known = find("#import-units").dataset.decimals.split(" ").map((one) => one.split(":"));
  return Number(known.find(([code]) => code === currency.trim().toUpperCase())?.[1] ?? 2);
}

/** Converts a cell for the API, or throws the reason. */
function ofCell(cell, look, units, decimals) {
  const text = cell.trim();
  switch (look) {
    case "money": {
      if (units === "major") {
        const plainText = /,\d{1,2}$/.test(text) ? text.replaceAll(".", "").replace(",", ".") : text.replaceAll(",", "");
        const parts = /^[^\d-]*(-?)[^\d]*(\d{1,13})(?:\.(\d*?)0*)?[^\d]*$/.exec(plainText);
        if (!parts || (parts[3] || "").length > decimals) throw new Error(`must be an amount such as ${(129).toFixed(decimals)}`);
        return Number(`${parts[1]}${parts[2]}${(parts[3] || "").padEnd(decimals, "0")}`);
      }
      return whole(text);
    }
    case "number": return whole(text);
    case "percent": {
      const share = Number(text.replace(/%$/, ""));
      if (!(share >= 0 && share <= 100)) throw new Error("must be a number from 0 to 100");
      return share;
    }
    case "flag":
      if (!(text.toLowerCase() in flags)) throw new Error("must be true or false");
      return flags[text.toLowerCase()];
    case "date": return asTime(text, true);
    case "time": return asTime(text, false);
    case "status": return text.toUpperCase().replace(/\s+/g, "_");
    default:
      if ([...cell].length > 1000) throw new Error("must have at most 1,000 characters");
      return cell;
  }
}

function whole(text) {
  const number = Number(text.replaceAll(",", ""));
  if (!Number.isSafeInteger(number)) throw new Error("must be a whole number");
  return number;
}

/** Converts a row to an API line; throws the error, with the field's name. */
function lineOf(row, columns, units) {
  if (!choice.isCsv) {
    try {
      JSON.parse(row[0]);
    } catch {
      throw new Error("this line is not valid JSON");
    }
    return row[0].trim();
  }
  const record = {};
  const decimals = decimalsOf(row[columns.find(({ name }) => name === "currency")?.at] ?? "");
  for (const { at, name, look, required } of columns) {
    const cell = row[at] ?? "";
    if (cell.trim() === "") {
      if (required) throw new Error(`${name}: is required`);
      continue;
    }
    const [outer, inner] = name.split(".");
    try {
      const value = ofCell(cell, look, units, decimals);
      if (inner) (record[outer] ??= {})[inner] = value;
      else record[outer] = value;
    } catch (error) {
      throw new Error(`${name}: ${error.message}`);
    }
  }
  const { kind } = importing.dataset;
  if (kind === "contacts" && !record.firstName && !record.lastName && !record.email) {
    throw new Error("email: one of firstName, lastName and email is required");
  }
  return JSON.stringify(record);
}

/** Counts and shows the results of an import so far. */
class Tally {
  constructor(isDry) {
    Object.assign(this, { isDry, rows: 0, created: 0, updated: 0, unchanged: 0, fine: 0, rejected: 0 });
    Object.assign(this, { faults: [], rejects: [], begun: performance.now(), position: null });
  }

  reject(number, row, reason) {
    this.rejected += 1;
    if (this.faults.length < FAULTS_SHOWN) this.faults.push([number, reason]);
    if (this.rejects.length < REJECTS_KEPT) this.rejects.push([row, reason]);
  }

  show(read, ended) {
    const seconds = (performance.now() - this.begun) / 1000;
    const share = read / choice.file.size;
    find("#import-bar").value = 100 * share;
    const rate = this.rows / Math.max(seconds, 0.001);
    const left = share > 0 ? (seconds / share) * (1 - share) : 0;
    const status = ended
      ? `${ended} ${count(this.rows)} rows in ${seconds.toFixed(1)} s.`
      : `${count(this.rows)} rows, ${count(Math.round(rate))} a second, about ${Math.ceil(left)} s left.`;
    // Text read aloud changes once a second, not with every piece.
    if (ended || performance.now() - (this.told || 0) > 1000) {
      find("#import-status").textContent = status;
      this.told = performance.now();
    }
    const facts = this.isDry
      ? [["Can be imported", this.fine], ["Have errors", this.rejected]]
      : [["Created", this.created], ["Changed", this.updated], ["The same already", this.unchanged], ["Rejected", this.rejected]];
    find("#import-counts").replaceChildren(...facts.map(([label, number]) => {
      const fact = document.createElement("div");
      fact.append(Object.assign(document.createElement("dt"), { textContent: label }),
        Object.assign(document.createElement("dd"), { textContent: count(number) }));
      return fact;
    }));
    this.showFaults();
  }

  showFaults() {
    find("#import-faults").hidden = !this.faults.length;
    find("#import-faults tbody").replaceChildren(...this.faults.map(([number, reason]) => {
      const row = document.createElement("tr");
      row.append(Object.assign(document.createElement("td"), { className: "number", textContent: count(number) }),
        Object.assign(document.createElement("td"), { textContent: reason }));
      return row;
    }));
  }
}

/** Sends lines, with retries where they help: the same lines under the same key are accepted once. */
async function sendLines(kind, lines, key) {
  for (let tried = 1; ; tried++) {
    let pause = Math.min(500 * 2 ** tried, 10_000);
    let reason = "Waypost does not answer.";
    try {
      const answer = await fetch(`/dashboard/api/v1/records/${kind}`, {
        method: "POST",
        credentials: "same-origin",
        headers: { "Content-Type": "application/x-ndjson", "Idempotency-Key": key },
        body: lines.join("\n") + "\n",
      });
      if (answer.ok) {
        const answers = (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
        return { answers, position: answer.headers.get("Waypost-Position") };
      }
      reason = (await answer.json().catch(() => ({}))).error || `The answer was ${answer.status}.`;
      if (answer.status < 500 && answer.status !== 429) throw Object.assign(new Error(reason), { final: true });
      pause = 1000 * Number(answer.headers.get("Retry-After") || 0) || pause;
    } catch (error) {
      if (error.final) throw error;
    }
    if (tried === TRIES || choice.stopped) throw new Error(reason);
    find("#import-status").textContent = `${reason} Trying again in ${Math.ceil(pause / 1000)} s.`;
    await new Promise((done) => setTimeout(done, pause));
  }
}

/** Reads the whole file, and sends its lines unless it is only checked. */
async function runImport(isDry) {
  const { kind } = importing.dataset;
  const run = crypto.randomUUID?.() || `${Date.now()}-${Math.random().toString(36).slice(2)}`;
  const units = find("#import-units").value;
  const columns = choice.selects.map((select, at) => {
    const option = select.selectedOptions[0];
    return { at, name: select.value, look: option.dataset.look, required: "required" in option.dataset };
  }).filter(({ name }) => name);
  const tally = new Tally(isDry);
  let [waiting, size, sent, header] = [[], 0, 0, choice.isCsv];
  const flush = async () => {
    if (!waiting.length) return;
    const chunk = waiting;
    [waiting, size] = [[], 0];
    const { answers, position } = await sendLines(kind, chunk.map(({ line }) => line), `${run}-${sent++}`);
    tally.position = position || tally.position;
    for (const { line, status, error } of answers) {
      const { number, row } = chunk[line - 1] || {};
      if (status) tally[status] += 1;
      else tally.reject(number, row, error);
    }
    // If the server stops, its last answer says why: no more was written.
    if (answers.length < chunk.length) {
      for (const { number, row } of chunk.slice(answers.length)) tally.reject(number, row, "not written: the import was stopped");
      throw new Error(answers.at(-1)?.error || "The answer broke off.");
    }
  };
  const source = choice.isCsv ? rowsOf(choice.file) : linesOf(choice.file);
  let read = 0;
  try {
    for await (const piece of source) {
      for (const row of piece.rows) {
        if (header) {
          header = false;
          continue;
        }
        if (choice.stopped) break;
        tally.rows += 1;
        try {
          const line = lineOf(row, columns, units);
          tally.fine += 1;
          if (isDry) continue;
          waiting.push({ line, row, number: tally.rows });
          size += line.length;
        } catch (error) {
          tally.reject(tally.rows, row, error.message);
        }
        if (waiting.length >= CHUNK_LINES || size >= CHUNK_TEXT) {
          await flush();
          tally.show(read, "");
        }
      }
      if (choice.stopped) break;
      read = piece.read;
      tally.show(read, "");
      // Lets the page respond between two pieces.
      await new Promise((done) => setTimeout(done));
    }
    await flush();
    tally.show(read, choice.stopped ? "Stopped after" : isDry ? "Checked" : "Imported");
  } catch (error) {
    tally.show(read, "Stopped after");
    throw Object.assign(error, { tally });
  }
  return tally;
}

/** Offers rejected rows as a file: own columns and reason. */
function offerRejects(tally) {
  const link = find("#import-rejects");
  link.hidden = !tally?.rejects.length;
  if (link.hidden) return;
  if (link.href) URL.revokeObjectURL(link.href);
  const head = choice.isCsv ? [...choice.header, "error"] : ["record", "error"];
  const lines = [head, ...tally.rejects.map(([row, reason]) => {
    const cells = choice.isCsv ? choice.header.map((_, at) => row?.[at] ?? "") : [row?.[0] ?? ""];
    return [...cells, reason];
  })];
  link.href = URL.createObjectURL(new Blob([lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }));
  link.download = `${importing.dataset.kind}-rejected.csv`;
}

async function begin(isDry) {
  choice.stopped = false;
  const title = find("#import-progress-title");
  title.textContent = isDry ? "3. Checking" : "3. Importing";
  find("#import-progress").hidden = false;
  title.focus();
  const buttons = [find("#import-check"), find("#import-start"), find("#import-file")];
  for (const button of buttons) button.disabled = true;
  find("#import-stop").hidden = false;
  find("#import-done").hidden = find("#import-rejects").hidden = true;
  const leaving = (event) => event.preventDefault();
  if (!isDry) window.addEventListener("beforeunload", leaving);
  tell(find("#import-fault"));
  let tally = null;
  try {
    tally = await runImport(isDry);
  } catch (error) {
    tally = error.tally;
    tell(find("#import-fault"), new Error(`${error.message} What was imported so far stays. Import the file again to go on.`));
  }
  window.removeEventListener("beforeunload", leaving);
  for (const button of buttons) button.disabled = false;
  find("#import-stop").hidden = true;
  offerRejects(tally);
  const done = find("#import-done");
  done.hidden = isDry;
  if (tally?.position) done.href = `/dashboard/${importing.dataset.kind}?position=${encodeURIComponent(tally.position)}`;
}

const drop = find("#drop");
find("#import-file").addEventListener("change", ({ target }) => target.files[0] && choose(target.files[0]));
for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", over);
    if (name === "drop" && event.dataTransfer.files[0]) choose(event.dataTransfer.files[0]);
  });
}
find("#import-check").addEventListener("click", () => begin(true));
find("#import-start").addEventListener("click", () => begin(false));
find("#import-stop").addEventListener("click", () => { choice.stopped = true; });
