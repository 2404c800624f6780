"use strict";

/**
 * Watches a run: after each of its events on the socket, the page is read again as the server
 * renders it, and changed parts are replaced.
 */
const watched = find("#run");
const watching = find("#watching");
const drawn = new Map();
let wanted = null;
let reading = false;
let waits = 500;

function watch() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/dashboard/ws`);
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.type === "ready") socket.send(JSON.stringify({ type: "subscribe", id: "run", channel: "runs" }));
    if (frame.type === "subscribed") {
      waits = 500;
      watching.textContent = "Live: this page follows the run.";
      readAgain(frame.position);
    }
    if (frame.type === "reset") readAgain();
    if (frame.type === "event" && frame.event.data.runId === watched.dataset.runId) readAgain(frame.position);
  });
  socket.addEventListener("close", ({ code }) => {
    if (code >= 3500 && code < 4000) {
      watching.textContent = "This page no longer follows the run. Reload it to go on.";
      return;
    }
    watching.textContent = "The connection was lost; trying again.";
    setTimeout(watch, waits * (1 + Math.random()));
    waits = Math.min(waits * 2, 20_000);
  });
}

/** Reads the page once it shows this position; a call meanwhile leads to one more read. */
async function readAgain(position = "") {
  wanted = position;
  if (reading) return;
  reading = true;
  while (wanted !== null) {
    const address = new URL(location.pathname, location.href);
    if (wanted) address.searchParams.set("position", wanted);
    wanted = null;
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      if (answer.ok && !answer.redirected) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The page is read again when the socket is connected again.
    }
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  reading = false;
}

function put(page) {
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const name = fresh.dataset.live;
    const html = fresh.outerHTML;
    if (drawn.get(name) === html) continue;
    drawn.set(name, html);
    const old = find(`[data-live="${name}"]`);
    if (old) exchange(old, document.importNode(fresh, true));
  }
  watched.toggleAttribute("data-over", page.querySelector("#run").hasAttribute("data-over"));
}

/** Replaces one part with another; what was open stays open, and the focus stays in place. */
function exchange(old, fresh) {
  const open = [...old.querySelectorAll("details")].map((part) => part.open);
  const parts = [...fresh.querySelectorAll("details")];
  parts.forEach((part, nth) => { part.open = open[nth] ?? false; });
  for (const time of fresh.querySelectorAll("time")) {
    time.title = time.textContent;
    time.textContent = local.format(new Date(time.dateTime));
  }
  const reachable = "a, button, summary, pre";
  const focused = old === document.activeElement ? -1 : [...old.querySelectorAll(reachable)].indexOf(document.activeElement);
  const held = old.contains(document.activeElement);
  old.replaceWith(fresh);
  if (held) (focused < 0 ? fresh : fresh.querySelectorAll(reachable)[focused] ?? fresh.querySelector(reachable))?.focus();
}

/** Updates elapsed times of unfinished work. */
setInterval(() => {
  for (const part of all("[data-since]")) {
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(part.dataset.since)) / 1000));
    part.textContent = seconds < 120 ? `for ${seconds} s` : `for ${Math.round(seconds / 60)} min`;
  }
}, 1000);

watch();
