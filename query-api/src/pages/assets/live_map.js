"use strict";

// The organization's circles, as they move.
{
  // How often to ask who may be seen at all: people who hide or leave are no longer shown.
  const AGAIN = 60_000;
  // The most persons in one answer; if it is full, those missing from it may still be there.
  const TOLD = 1_000;
  const map = new WaypostMap(find("#map"));
  const title = document.title;
  const calls = new Map();
  const resolved = new Set();
  const list = find("#member-list");
  const circle = list.dataset.circle;
  const members = new Map([...all("[data-member]")].map((line) => [Number(line.dataset.member), line]));
  const nameOf = (id) => members.get(id)?.dataset.name ?? "A member";
  const when = (time) => local.format(new Date(time));

  map.show({ places: [...all("[data-place]")].map(({ dataset }) => ({
    name: dataset.name, lat: Number(dataset.lat), lng: Number(dataset.lng), radius_m: Number(dataset.radius),
  })) });
  map.fit();

  function fixed(fix) {
    // For one circle, members of others are not shown.
    if (circle && !members.has(fix.user_id)) return;
    const known = map.persons.get(fix.user_id);
    map.follow(fix.user_id, [fix]);
    if (known && known.recorded_at > fix.recorded_at) return;
    map.persons.set(fix.user_id, { ...fix, name: fix.name ?? nameOf(fix.user_id) });
    const line = members.get(fix.user_id);
    if (!line) return;
    const where = fix.place_name ?? `${fix.lat.toFixed(4)}, ${fix.lng.toFixed(4)}`;
    find("[data-where]", line).textContent = `${where}, ${when(fix.recorded_at)}`;
    find("[data-near]", line).hidden = false;
  }

  function unseen(id) {
    map.persons.delete(id);
    map.trails.delete(id);
    const line = members.get(id);
    if (!line) return;
    find("[data-where]", line).textContent = "no position to show";
    find("[data-near]", line).hidden = true;
  }

  /** Loads what happened before, and who may be seen now. */
  async function before() {
    const answer = await fetch(`/dashboard/map/now${circle ? `?circle=${encodeURIComponent(circle)}` : ""}`, {
      credentials: "same-origin", signal: AbortSignal.timeout(20_000),
    });
    if (!answer.ok) throw new Error();
    const now = await answer.json();
    const seen = new Set(now.trails.map(({ user_id }) => user_id));
    if (seen.size < TOLD) for (const id of [...map.persons.keys()]) if (!seen.has(id)) unseen(id);
    for (const { user_id, name, fixes } of now.trails) {
      if (!members.has(user_id)) joined(user_id, name);
      map.follow(user_id, fixes);
    }
    took(now.calls);
    map.draw();
  }

  async function follow() {
    try {
      await before();
      tell(find("#notice"));
    } catch {
      tell(find("#notice"), new Error("Trails and open calls for help could not be loaded and may be missing. Trying again in a minute."));
    }
    clearTimeout(follow.next);
    follow.next = setTimeout(follow, AGAIN);
  }

  /** Merges in the open calls. A live one may be newer than what was read. */
  function took(open) {
    const known = new Set(open.map(({ sos_id }) => sos_id));
    for (const [id, one] of calls) if (one.read && !known.has(id)) calls.delete(id);
    for (const one of open) {
      if (resolved.has(one.sos_id)) continue;
      calls.set(one.sos_id, { ...one, seen: one.acknowledged || calls.get(one.sos_id)?.seen, read: true });
    }
    showCalls();
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

  function called({ type, data }) {
    if (type === "sos.resolved") {
      calls.delete(data.sos_id);
      resolved.add(data.sos_id);
    } else {
      const known = calls.get(data.sos_id);
      calls.set(data.sos_id, { ...known, ...data, seen: type === "sos.acknowledged" || known?.seen });
    }
    if (type === "sos.triggered") beep();
    showCalls();
  }

  function showCalls() {
    const open = [...calls.values()].map((one) => ({ ...one, name: one.name ?? nameOf(one.user_id) }));
    map.show({ calls: open });
    // Redrawn calls would be read out again.
    const told = JSON.stringify(open.map(({ sos_id, seen, message }) => [sos_id, seen, message]));
    if (showCalls.told !== told) {
      const held = document.activeElement.closest("[data-call]")?.dataset.call;
      find("#calls").replaceChildren(...open.map(banner));
      if (held) (find(`[data-call="${held}"] button`) ?? find("#main")).focus();
    }
    showCalls.told = told;
    document.title = open.length ? `SOS (${open.length}) · ${title}` : title;
  }

  function banner(one) {
    const box = document.createElement("div");
    box.className = "call";
    box.dataset.call = one.sos_id;
    const text = document.createElement("p");
    const head = document.createElement("strong");
    head.textContent = `SOS: ${one.name}`;
    const rest = `${one.message ?? ""} (${when(one.recorded_at)}${one.seen ? ", acknowledged" : ", not acknowledged yet"})`;
    text.append(head, ` ${rest}`);
    const answers = document.createElement("p");
    answers.className = "row";
    if (!one.seen) answers.append(answer(one, "acknowledge", "Acknowledge"));
    answers.append(answer(one, "resolve", "Resolve"));
    box.append(text, answers);
    if (one.lat != null) {
      const near = document.createElement("button");
      near.type = "button";
      near.className = "small plain";
      near.textContent = `Show ${one.name} on the map`;
      near.addEventListener("click", () => map.fit([[one.lat, one.lng]]));
      answers.append(near);
    }
    return box;
  }

  /** Makes the organization's answer button: the whole circle is notified. */
  function answer(one, what, word) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: word });
    button.append(Object.assign(document.createElement("span"), { className: "hidden", textContent: ` the SOS of ${one.name}` }));
    button.addEventListener("click", () => attempt(button, find("#notice"), async () => {
      await send("POST", `/dashboard/sos/${encodeURIComponent(one.sos_id)}/${what}`);
      called({ type: what === "resolve" ? "sos.resolved" : "sos.acknowledged", data: one });
    }));
    return button;
  }

  function crossed({ type, data }) {
    if (circle && data.circle_id !== circle) return;
    const line = document.createElement("li");
    line.textContent = `${nameOf(data.user_id)} ${type === "place.entered" ? "arrived at" : "left"} ${data.name ?? "a place"}, ${when(data.recorded_at)}`;
    const arrivals = find("#arrivals");
    arrivals.prepend(line);
    while (arrivals.children.length > 50) arrivals.lastElementChild.remove();
  }

  /** Adds a member who joined since the page loaded. */
  function joined(id, name) {
    const line = Object.assign(document.createElement("li"), { className: "" });
    Object.assign(line.dataset, { member: id, name });
    const where = Object.assign(document.createElement("span"), { className: "quiet", textContent: "no position to show" });
    where.dataset.where = "";
    const near = Object.assign(document.createElement("button"), { type: "button", className: "small plain", textContent: "Show", hidden: true });
    near.append(Object.assign(document.createElement("span"), { className: "hidden", textContent: ` ${name} on the map` }));
    near.dataset.near = "";
    line.append(Object.assign(document.createElement("strong"), { textContent: name }), " ", where, " ", near);
    list.append(line);
    members.set(id, line);
  }

  new LiveChannels("/dashboard/ws", ["locations", "places", "sos"], {
    heard: (channel, event, snapshot) => {
      if (channel === "locations") {
        for (const fix of snapshot ?? [event.data]) fixed(fix);
        if (snapshot) map.fit();
        map.draw();
      } else if (event && channel === "sos") called(event);
      else if (event && channel === "places") crossed(event);
    },
    state: (now) => {
      find("#live").textContent = { live: "Live.", away: "Connecting again…", ended: "Your session has ended. Reload the page to sign in." }[now];
      if (now === "live") follow();
      if (now === "ended") clearTimeout(follow.next);
    },
  });
  follow();

  list.addEventListener("click", ({ target }) => {
    const line = target.closest("[data-near]")?.closest("[data-member]");
    const fix = line && map.persons.get(Number(line.dataset.member));
    if (fix) map.fit([[fix.lat, fix.lng]]);
  });
  const keys = { in: () => map.zoomBy(1), out: () => map.zoomBy(-1), fit: () => map.fit() };
  for (const button of all("[data-map]")) button.addEventListener("click", keys[button.dataset.map]);

  const form = find("#circle-form");
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(find("button", form), find(".fault", form), async () => {
      const { id, position } = await send("POST", "/dashboard/api/v1/circles", { name: find("#circle-name").value });
      showAgain(position, `/dashboard/map?circle=${encodeURIComponent(id)}`);
    });
  });
  find("#circle-invite")?.addEventListener("click", ({ target }) => attempt(target, find("#notice"), async () => {
    const { code, expiresAt } = await send("POST", `/dashboard/api/v1/circles/${encodeURIComponent(target.dataset.circle)}/invites`, {});
    find("#circle-code").textContent = `Code: ${code} (until ${when(expiresAt)}). Whoever joins agrees that your organization sees where they are.`;
  }));
}
