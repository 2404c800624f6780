"use strict";

/** Rows kept on the page while it is live. */
const MOST_ROWS = 200;

const liveButton = find("#live");
if (liveButton) goLive(liveButton);

function goLive(button) {
  const frame = find("#events");
  const rows = find("tbody", frame);
  const state = find("#live-state");
  const types = find("#types").value.trim();
  const subject = find("#subject").value.trim();
  let source = null;
  let last = rows.querySelector("a")?.pathname.split("/").pop();
  let news = 0;

  function row(event) {
    const line = document.createElement("tr");
    const kind = document.createElement("th");
    kind.scope = "row";
    const link = document.createElement("a");
    link.href = `/dashboard/events/${encodeURIComponent(event.position)}`;
    link.textContent = event.type;
    kind.append(link);
    const time = document.createElement("time");
    time.dateTime = event.time;
    time.textContent = local.format(new Date(event.time));
    const text = JSON.stringify(event.data);
    line.append(kind, cell("code", event.subject), document.createElement("td"),
      cell("code", text.length > 140 ? `${text.slice(0, 140)}…` : text, "quiet"));
    line.children[2].append(time);
    return line;
  }

  function cell(name, text, kind = "") {
    const part = document.createElement(name);
    part.className = kind;
    part.textContent = text;
    const whole = document.createElement("td");
    whole.append(part);
    return whole;
  }

  function show({ data, lastEventId }) {
    last = lastEventId;
    const event = JSON.parse(data);
    if (!event.subject.includes(subject)) return;
    rows.prepend(row(event));
    while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
    frame.hidden = false;
    find("#no-events")?.remove();
    news += 1;
    state.textContent = `Live: ${news} new since the page was opened.`;
  }

  function start() {
    const address = new URL("/dashboard/api/v1/events", location.href);
    if (types) address.searchParams.set("types", types);
    // Starts after the last event shown, so that none is missed.
    if (last) address.searchParams.set("after", decodeURIComponent(last));
    source = new EventSource(address);
    source.onopen = () => { state.textContent ||= "Live: new events appear by themselves."; };
    source.onmessage = show;
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      stop();
      state.textContent = "The live feed has ended. Reload the page, or press Resume.";
    };
    button.textContent = "Pause";
  }

  function stop() {
    source?.close();
    source = null;
    button.textContent = "Resume";
  }

  button.addEventListener("click", () => {
    if (!source) return start();
    stop();
    state.textContent = "Paused. What happens meanwhile appears when you resume.";
  });
  start();
}

const replay = find("#copy-replay");
if (replay) {
  replay.hidden = false;
  replay.addEventListener("click", async () => {
    const shown = find("#replay");
    try {
      await navigator.clipboard.writeText(shown.textContent.replace("$WAYPOST", location.origin));
      find("#replay-copied").textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(shown);
      find("#replay-copied").textContent = "Press Ctrl+C.";
    }
  });
}
