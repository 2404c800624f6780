"use strict";

/** Bytes of a file read at a time: few enough that the page stays responsive. */
const SLICE = 1024 * 1024;

/** Yields the text of a file in pieces, each with the number of bytes read so far. */
async function* piecesOf(file) {
  const decoder = new TextDecoder(await encodingOf(file));
  for (let at = 0; at < file.size; at += SLICE) {
    const bytes = await file.slice(at, at + SLICE).arrayBuffer();
    const read = Math.min(at + SLICE, file.size);
    yield { text: decoder.decode(bytes, { stream: read < file.size }), read };
  }
}

/** Returns UTF-8 if the start is valid, else what spreadsheets on Windows write. */
async function encodingOf(file) {
  const bytes = await file.slice(0, SLICE).arrayBuffer();
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

/** Returns the separator used most in a CSV's first line. */
function separatorOf(text) {
  const line = text.split(/\r?\n/, 1)[0].replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t"].map((one) => [line.split(one).length, one]);
  return counts.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

/** Splits text into rows of cells per RFC 4180, in whatever pieces it arrives. */
class CsvReader {
  constructor(separator) {
    this.separator = separator;
    this.row = [];
    this.cell = "";
    this.quoted = false;
    this.closing = false;
  }

  /** Returns the completed rows. */
  take(text, ended = false) {
    const rows = [];
    for (let at = 0; at < text.length; at++) {
      const character = text[at];
      if (this.quoted && !this.closing) {
        const quote = text.indexOf('"', at);
        const end = quote < 0 ? text.length : quote;
        this.cell += text.slice(at, end);
        if (quote >= 0) this.closing = true;
        at = end;
      } else if (this.closing && character === '"') {
        this.cell += '"';
        this.closing = false;
      } else {
        if (this.closing) this.quoted = this.closing = false;
        if (character === '"' && this.cell === "") this.quoted = true;
        else if (character === this.separator) this.endCell();
        else if (character === "\n") this.endRow(rows);
        else if (character !== "\r") this.cell += character;
      }
    }
    if (ended && (this.cell !== "" || this.row.length)) this.endRow(rows);
    return rows;
  }

  endCell() {
    this.row.push(this.cell);
    this.cell = "";
  }

  endRow(rows) {
    this.endCell();
    this.quoted = this.closing = false;
    if (this.row.length > 1 || this.row[0].trim() !== "") rows.push(this.row);
    this.row = [];
  }
}

/** Yields the rows of a CSV file, header first, in arrays as they are read. */
async function* rowsOf(file) {
  let reader = null;
  for await (const { text, read } of piecesOf(file)) {
    reader ??= new CsvReader(separatorOf(text));
    yield { rows: reader.take(text, read === file.size), read };
  }
}

/** Yields an NDJSON file's lines, in arrays as it is read. */
async function* linesOf(file) {
  let rest = "";
  for await (const { text, read } of piecesOf(file)) {
    const lines = (rest + text).split("\n");
    rest = read === file.size ? "" : lines.pop();
    yield { rows: lines.filter((line) => line.trim() !== "").map((line) => [line]), read };
  }
}

/** Formats a cell for a CSV. One that a spreadsheet would run gets an apostrophe, as in exports. */
function csvCell(text) {
  const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text);
  const isPhone = /^\+[1-9]\d{1,14}$/.test(text);
  const safe = /^[=+\-@\t\r\n]/.test(text) && !isNumber && !isPhone ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
