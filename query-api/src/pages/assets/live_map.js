"use strict";

// The organization's circles, as they move.
{
  const HOUR = 3_600_000;
  const DAY = 24 * HOUR;
  const map = new WaypostMap(find("#map"));
  const title = document.title;
  const calls = new Map();
  const members = new Map([...all("[data-member]")].map((line) => [Number(line.dataset.member), line]));
  const nameOf = (id) => members.get(id)?.dataset.name ?? "A member";
  const when = (time) => local.format(new Date(time));

  map.show({ places: [...all("[data-place]")].map(({ dataset }) => ({
    name: dataset.name, lat: Number(dataset.lat), lng: Number(dataset.lng), radius_m: Number(dataset.radius),
  })) });
  map.fit();

  function fixed(fix) {
    const known = map.persons.get(fix.user_id);
    trail(fix);
    if (known && known.recorded_at > fix.recorded_at) return;
    map.persons.set(fix.user_id, { ...fix, name: fix.name ?? nameOf(fix.user_id) });
    const line = members.get(fix.user_id);
    if (!line) return;
    const where = fix.place_name ?? `${fix.lat.toFixed(4)}, ${fix.lng.toFixed(4)}`;
    find("[data-where]", line).textContent = `${where}, ${when(fix.recorded_at)}`;
    find("[data-near]", line).hidden = false;
  }

  /** Keeps what is no older than an hour, and thins out what is close together. */
  function trail(fix) {
    const since = Date.now() - HOUR;
    if (Date.parse(fix.recorded_at) < since) return;
    const fixes = [...(map.trails.get(fix.user_id) ?? []), fix].filter((one) => Date.parse(one.recorded_at) >= since);
    fixes.sort((one, other) => Date.parse(one.recorded_at) - Date.parse(other.recorded_at));
    map.trails.set(fix.user_id, fixes.length > 720 ? fixes.filter((_, nth) => nth % 2 === 0 || nth === fixes.length - 1) : fixes);
  }

  let sound;
  function beep() {
    if (!sound) return;
    for (const start of [0, 0.4, 0.8]) {
      const tone = sound.createOscillator();
      tone.frequency.value = 880;
      tone.connect(sound.destination);
      tone.start(sound.currentTime + start);
      tone.stop(sound.currentTime + start + 0.25);
    }
  }
  find("#sound").addEventListener("click", ({ target }) => {
    if (sound) sound.close();
    sound = sound ? undefined : new AudioContext();
    target.setAttribute("aria-pressed", String(Boolean(sound)));
    target.textContent = `Sound at an SOS: ${sound ? "on" : "off"}`;
  });

  function called({ type, data }, isNew) {
    if (type === "sos.resolved") calls.delete(data.sos_id);
    else calls.set(data.sos_id, { ...calls.get(data.sos_id), ...data, seen: type === "sos.acknowledged" });
    if (isNew && type === "sos.triggered") beep();
    const open = [...calls.values()].map((one) => ({ ...one, name: nameOf(one.user_id) }));
    map.show({ calls: open });
    find("#calls").replaceChildren(...open.map(banner));
    document.title = open.length ? `SOS (${open.length}) · ${title}` : title;
  }

  function banner(one) {
    const box = document.createElement("div");
    box.className = "call";
    const text = document.createElement("p");
    const head = document.createElement("strong");
    head.textContent = `SOS: ${one.name}`;
    const rest = `${one.message ?? ""} (${when(one.recorded_at)}${one.seen ? ", acknowledged" : ", not acknowledged yet"})`;
    const who = document.createElement("span");
    who.className = "quiet";
    who.textContent = " Members of this person's circles acknowledge and resolve it on their own page or phone.";
    text.append(head, ` ${rest}`, who);
    box.append(text);
    if (one.lat != null) {
      const near = document.createElement("button");
      near.type = "button";
      near.className = "small";
      near.textContent = `Show ${one.name} on the map`;
      near.addEventListener("click", () => map.fit([[one.lat, one.lng]]));
      box.append(near);
    }
    return box;
  }

  function crossed({ type, data }) {
    const line = document.createElement("li");
    line.textContent = `${nameOf(data.user_id)} ${type === "place.entered" ? "arrived at" : "left"} ${data.name ?? "a place"}, ${when(data.recorded_at)}`;
    const list = find("#arrivals");
    list.prepend(line);
    while (list.children.length > 50) list.lastElementChild.remove();
  }

  /** What was before this page: lines of a feed. */
  async function before(path, take) {
    const answer = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(20_000) });
    if (!answer.ok) return;
    const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await lines.read();
      if (done) return;
      const some = (rest + value).split("\n");
      rest = some.pop();
      for (const line of some) if (line) take(JSON.parse(line));
    }
  }

  new LiveChannels("/dashboard/ws", ["locations", "places", "sos"], {
    heard: (channel, event, snapshot) => {
      if (channel === "locations") {
        for (const fix of snapshot ?? [event.data]) fixed(fix);
        if (snapshot) map.fit();
        map.draw();
      } else if (event && channel === "sos") called(event, true);
      else if (event && channel === "places") crossed(event);
    },
    state: (now) => {
      find("#live").textContent = { live: "Live.", away: "Connecting again…", ended: "Your session has ended. Reload the page to sign in." }[now];
    },
  });
  const open = before("/dashboard/api/v1/events?types=sos.*", (event) => {
    if (Date.now() - Date.parse(event.time) < DAY) called(event, false);
  });
  open.catch(() => tell(find("#notice"), new Error("Calls for help from before could not be read. Reload the page.")));

  for (const [id, line] of members) {
    find("[data-near]", line).addEventListener("click", () => {
      const { lat, lng } = map.persons.get(id);
      map.fit([[lat, lng]]);
    });
  }
  const keys = { in: () => map.zoomBy(1), out: () => map.zoomBy(-1), fit: () => map.fit() };
  for (const button of all("[data-map]")) button.addEventListener("click", keys[button.dataset.map]);
}
