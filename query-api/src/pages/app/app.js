"use strict";

// A person's page: where their circles are, and how they are found. The token stays in this tab.
{
  const KEEP = "waypost-person";
  const HOLD = 2_000;
  // As often as the smallest tier allows.
  const EVERY = 125_000;
  // A dead connection may go unnoticed for minutes: calls for help are polled, too.
  const AGAIN = 300_000;
  const state = { session: null, map: null, live: null, circles: [], calls: new Map(), resolved: new Set(), waiting: [], names: new Map() };
  const saved = sessionStorage.getItem(KEEP);
  if (saved) state.session = JSON.parse(saved);

  class Refused extends Error {
    constructor(answer, message) {
      super(message);
      this.status = answer.status;
      this.wait = Number(answer.headers.get("Retry-After") || 0);
    }
  }

  /** Sends a request as the person; reads see the latest write. */
  async function ask(method, path, body, once) {
    const headers = {};
    if (state.session) headers.Authorization = `Bearer ${state.session.access_token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (once) headers["Idempotency-Key"] = once;
    if (method === "GET" && state.position) headers["Waypost-Min-Position"] = state.position;
    let answer;
    try {
      answer = await fetch(path, { method, headers, credentials: "omit", body: body && JSON.stringify(body) });
    } catch {
      throw new Error("Waypost does not answer. Check your connection, then try again.");
    }
    const text = await answer.text();
    const read = text ? JSON.parse(text) : {};
    if (!answer.ok) {
      if (answer.status === 401 && state.session && path !== "/auth/delete") signOut("Your sign-in has ended. Sign in again.");
      throw new Refused(answer, read.error || "Something went wrong. Try again.");
    }
    state.position = (path !== "/location/update" && answer.headers.get("Waypost-Position")) || state.position;
    return read;
  }

  const make = (tag, text, set = {}) => Object.assign(document.createElement(tag), { textContent: text ?? "", ...set });
  const when = (time) => new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" }).format(new Date(time));
  const say = (text) => { find("#app-said").textContent = text; };
  const nameOf = (id) => (id === state.session?.user.id ? "You" : state.names.get(id) ?? "Somebody in your circle");

  function submit(selector, doing) {
    const form = find(selector);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      attempt(find("[type=submit]", form), find(".fault", form), () => doing(Object.fromEntries(new FormData(form)), form));
    });
  }

  /** Makes a button do something and show on the page what went wrong. */
  function doing(button, what) {
    button.addEventListener("click", () => attempt(button, find("#app-fault"), what));
    return button;
  }

  function enter(session) {
    const { access_token, expires_in, user } = session;
    state.session = { access_token, user, ends: Date.now() + expires_in * 1_000 };
    sessionStorage.setItem(KEEP, JSON.stringify(state.session));
    for (const form of all("#app-sign form")) form.reset();
    begin();
  }

  function signOut(why) {
    stopSharing();
    state.live?.close();
    clearTimeout(open.next);
    state.session = null;
    sessionStorage.removeItem(KEEP);
    if (!why) return location.reload();
    find("#app-home").hidden = true;
    find("#app-sign").hidden = false;
    tell(find("#app-why"), { message: why });
  }

  async function begin() {
    if (!state.session) {
      find("#app-sign").hidden = false;
      return;
    }
    if (state.session.ends < Date.now()) return signOut("Your sign-in has ended. Sign in again.");
    tell(find("#app-why"));
    find("#app-sign").hidden = true;
    find("#app-home").hidden = false;
    find("#app-who").textContent = state.session.user.name;
    state.map ??= new WaypostMap(find("#app-map"));
    try {
      await Promise.all([circles(), fixes(), trails()]);
    } catch (error) {
      tell(find("#app-fault"), error);
    }
    if (!state.session) return;
    state.live?.close();
    state.live = new LiveChannels("/ws", ["locations", "sos", "places"], {
      token: state.session.access_token,
      heard,
      state: (now) => {
        if (now === "ended") return signOut("Your sign-in has ended. Sign in again.");
        find("#app-live").textContent = now === "live" ? "Live." : "Connecting again…";
        if (now === "live") open();
      },
    });
    open();
  }

  function heard(channel, event, snapshot) {
    if (channel === "locations") {
      for (const fix of snapshot ?? [event.data]) {
        const known = state.map.persons.get(fix.user_id);
        state.map.follow(fix.user_id, [fix]);
        if (known && known.recorded_at > fix.recorded_at) continue;
        state.map.persons.set(fix.user_id, { ...fix, name: fix.name ?? nameOf(fix.user_id) });
      }
      showPeople(Boolean(snapshot));
    } else if (channel === "sos" && event) {
      call(event);
    } else if (channel === "places" && event) {
      const { user_id, name, recorded_at } = event.data;
      const did = event.type === "place.entered" ? "arrived at" : "left";
      say(`${nameOf(user_id)} ${did} ${name ?? "a place"} (${when(recorded_at)}).`);
    }
  }

  function showPeople(fit) {
    const list = find("#app-people");
    const persons = [...state.map.persons.values()];
    list.replaceChildren(...persons.map((fix) => {
      const line = make("li");
      const where = fix.place_name ?? `${fix.lat.toFixed(4)}, ${fix.lng.toFixed(4)}`;
      const near = make("button", "Show on the map", { type: "button", className: "small plain" });
      near.append(make("span", `: ${nameOf(fix.user_id)}`, { className: "hidden" }));
      near.addEventListener("click", () => {
        state.map.fit([[fix.lat, fix.lng]]);
        find("#app-map").focus();
      });
      line.append(make("strong", nameOf(fix.user_id)), make("span", where), make("span", when(fix.recorded_at), { className: "quiet" }), near);
      return line;
    }));
    find("#app-nobody").hidden = persons.length > 0;
    if (fit) state.map.fit();
    state.map.draw();
  }

  function call({ type, data }) {
    if (type === "sos.resolved") {
      state.calls.delete(data.sos_id);
      state.resolved.add(data.sos_id);
    } else {
      const known = state.calls.get(data.sos_id);
      state.calls.set(data.sos_id, { ...known, ...data, seen: type === "sos.acknowledged" || known?.seen });
    }
    showCalls();
    if (type === "sos.triggered" && data.user_id !== state.session.user.id) navigator.vibrate?.([400, 200, 400, 200, 400]);
  }

  /** Polls the open calls. What arrives live may be newer. */
  async function open() {
    clearTimeout(open.next);
    const { session } = state;
    let next = AGAIN;
    try {
      const { data } = await ask("GET", "/sos");
      if (state.session !== session) return;
      const known = new Set(data.map(({ sos_id }) => sos_id));
      for (const [id, one] of state.calls) if (one.read && !known.has(id)) state.calls.delete(id);
      for (const one of data.filter(({ sos_id }) => !state.resolved.has(sos_id))) {
        state.calls.set(one.sos_id, { ...one, seen: one.acknowledged || state.calls.get(one.sos_id)?.seen, read: true });
      }
      showCalls();
    } catch (error) {
      if (state.session !== session || error.status === 401) return;
      say("Open calls for help could not be loaded. Trying again in a minute.");
      next = Math.max(60, error.wait || 0) * 1_000;
    }
    clearTimeout(open.next);
    open.next = setTimeout(open, next);
  }
  document.addEventListener("visibilitychange", () => {
    if (state.session && document.visibilityState === "visible") open();
  });

  function showCalls() {
    const calls = [...state.calls.values()];
    state.map.show({ calls });
    document.title = calls.length ? `SOS! ${nameOf(calls[0].user_id)}` : "Your circle · Waypost";
    // Redrawn calls would be read out again.
    const told = JSON.stringify(calls.map(({ sos_id, seen, message }) => [sos_id, seen, message]));
    if (showCalls.told !== told) find("#app-calls").replaceChildren(...calls.map(showCall));
    showCalls.told = told;
  }

  function showCall(one) {
    const box = make("div", "", { className: "call" });
    const text = make("p");
    text.append(make("strong", `SOS: ${nameOf(one.user_id)}`), ` ${one.message ?? ""} (${when(one.recorded_at)}${one.seen ? ", acknowledged" : ""})`);
    const answer = (what, label) => doing(make("button", label, { type: "button", className: "small" }), () => ask("POST", `/sos/${one.sos_id}/${what}`));
    box.append(text);
    if (!one.seen && one.user_id !== state.session.user.id) box.append(answer("acknowledge", "I have seen it"));
    box.append(answer("resolve", "Resolved"));
    return box;
  }

  async function circles() {
    const { data } = await ask("GET", "/circles?limit=100");
    state.circles = data;
    for (const { members } of data) for (const one of members) state.names.set(one.id, one.name);
    const places = await Promise.all(data.map(async ({ id }) => (await ask("GET", `/circles/${id}/places`)).data));
    state.map.show({ places: places.flat() });
    find("#app-circles").replaceChildren(...data.map((circle, nth) => showCircle(circle, places[nth])));
    find("#app-alone").hidden = data.length > 0;
  }

  function showCircle(circle, places) {
    const box = make("div", "", { className: "card" });
    box.append(make("h3", circle.name ?? "Circle"));
    if (circle.organization) box.append(make("p", `${circle.organization} sees where this circle's members are.`, { className: "warn" }));
    box.append(make("p", circle.members.map((one) => nameOf(one.id)).join(", ")));
    const list = make("ul", "", { className: "app-list" });
    list.append(...places.map((place) => {
      const line = make("li", `${place.name} (${Math.round(place.radius_m)} m)`);
      const path = `/circles/${circle.id}/places/${place.id}`;
      line.append(doing(make("button", "Remove", { type: "button", className: "small danger", ariaLabel: `Remove ${place.name}` }), async () => {
        await ask("DELETE", path);
        await circles();
      }));
      return line;
    }));
    const code = make("p", "", { role: "status" });
    const actions = make("div", "", { className: "actions app-own" });
    const button = (text, what) => doing(make("button", text, { type: "button", className: "small plain" }), what);
    const name = make("input", "", { id: `place-${circle.id}`, maxLength: 100, placeholder: "Home" });
    actions.append(
      button("Invite", async () => {
        const made = await ask("POST", `/circles/${circle.id}/invites`);
        code.textContent = `Code: ${made.code} (until ${when(made.expires_at)})`;
      }),
      button("Add a place where I am", async () => {
        if (!name.value.trim()) throw new Error("Place: write what it is called, then add it.");
        const { coords } = await here();
        const place = { name: name.value.trim(), lat: coords.latitude, lng: coords.longitude, radius_m: 150 };
        await ask("POST", `/circles/${circle.id}/places`, place);
        await circles();
      }),
      button("Leave", async () => {
        await ask("DELETE", `/circles/${circle.id}/members/me`);
        state.map.persons.clear();
        await begin();
      }),
    );
    box.append(list, make("label", "A new place is called", { htmlFor: name.id }), name, actions, code);
    return box;
  }

  async function fixes() {
    const { data } = await ask("GET", "/location/history?limit=10");
    find("#app-fixes").replaceChildren(...data.map((fix) =>
      make("li", `${when(fix.recorded_at)}: ${fix.place_name ?? `${fix.lat.toFixed(4)}, ${fix.lng.toFixed(4)}`}`)));
    find("#app-no-fixes").hidden = data.length > 0;
  }

  /** Loads where everybody went in the last hour. Those who hide or left are no longer shown. */
  async function trails() {
    const { data } = await ask("GET", "/location/trails");
    const { persons, trails } = state.map;
    const seen = new Set(data.map(({ user_id }) => user_id));
    for (const shown of [persons, trails]) for (const id of [...shown.keys()]) if (!seen.has(id)) shown.delete(id);
    for (const { user_id, fixes } of data) state.map.follow(user_id, fixes);
    showPeople();
  }

  const here = () => new Promise((done, failed) => {
    const no = () => failed(new Error("Your position is not known. Allow this page to see it in your browser, then try again."));
    if (!navigator.geolocation) return no();
    navigator.geolocation.getCurrentPosition(done, no, { enableHighAccuracy: true, timeout: 20_000, maximumAge: 10_000 });
  });

  /** Sends the position; what cannot be sent waits for the next time. */
  async function share() {
    const { coords, timestamp } = await here();
    const fix = { lat: coords.latitude, lng: coords.longitude, accuracy: coords.accuracy, recorded_at: new Date(timestamp).toISOString() };
    if (coords.speed >= 0 && coords.speed !== null) fix.speed = coords.speed;
    state.waiting = [...state.waiting, fix].slice(-100);
    if (Date.now() < (state.notBefore ?? 0)) return;
    const sent = state.waiting;
    try {
      await ask("POST", "/location/update", sent, sent[0].recorded_at);
      state.waiting = state.waiting.slice(sent.length);
      say(`Shared at ${when(fix.recorded_at)}.`);
      await fixes();
    } catch (error) {
      if (error.status !== 429) throw error;
      state.notBefore = Date.now() + error.wait * 1_000;
      say(`Your positions of this hour are used up; the next is sent in ${Math.ceil(error.wait / 60)} min.`);
    }
  }

  function stopSharing() {
    clearInterval(state.sharing);
    state.sharing = undefined;
    find("#app-share").setAttribute("aria-pressed", "false");
    find("#app-share").textContent = "Share my position";
  }

  doing(find("#app-share"), async () => {
    if (state.sharing) return stopSharing();
    await share();
    state.sharing = setInterval(() => share().catch((error) => tell(find("#app-fault"), error)), EVERY);
    find("#app-share").setAttribute("aria-pressed", "true");
    find("#app-share").textContent = "Sharing: tap to stop";
  });
  doing(find("#app-pause"), async () => {
    const until = new Date(Date.now() + find("#app-hours").value * 3_600_000);
    await ask("POST", "/location/pause", { until: until.toISOString() });
    stopSharing();
    say(`You are hidden until ${when(until)}.`);
  });
  doing(find("#app-resume"), async () => {
    await ask("POST", "/location/resume");
    say("Your circle sees you again.");
  });

  const sos = find("#app-sos");
  let held;
  let calling;
  const letGo = () => {
    clearTimeout(held);
    held = undefined;
    sos.classList.remove("held");
  };
  async function sendSos(message) {
    calling ??= crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    const body = { recorded_at: new Date().toISOString() };
    if (message) body.message = message;
    const last = state.map.persons.get(state.session.user.id);
    if (last) Object.assign(body, { lat: last.lat, lng: last.lng });
    const { audience } = await ask("POST", "/sos/trigger", body);
    calling = undefined;
    say(audience.length ? `SOS sent to ${audience.map((one) => one.name ?? "somebody").join(", ")}.` : "SOS sent, but nobody is in your circles yet.");
  }
  sos.addEventListener("pointerdown", () => {
    sos.classList.add("held");
    held = setTimeout(() => {
      letGo();
      state.justHeld = true;
      attempt(sos, find("#app-fault"), () => sendSos());
    }, HOLD);
  });
  for (const end of ["pointerup", "pointerleave", "pointercancel"]) sos.addEventListener(end, letGo);
  // A short press, a key or a screen reader: ask first.
  sos.addEventListener("click", () => {
    if (!state.justHeld) find("#app-sos-ask").showModal();
    state.justHeld = false;
  });
  submit("#app-sos-ask form", async ({ message }, form) => {
    await sendSos(message);
    form.reset();
    find("#app-sos-ask").close();
  });

  submit("#app-password", async (given) => enter(await ask("POST", "/auth/login", given)));
  submit("#app-register", async (given) => enter(await ask("POST", "/auth/register", given)));
  submit("#app-send-code", async (given) => {
    await ask("POST", "/auth/otp/send", given);
    state.phone = given.phone;
    find("#app-code").hidden = false;
    find("#app-digits").focus();
  });
  submit("#app-code", async ({ code }) => enter(await ask("POST", "/auth/otp/verify", { phone: state.phone, code })));
  submit("#app-make", async (given, form) => {
    await ask("POST", "/circles", given);
    form.reset();
    await circles();
  });
  submit("#app-join", async (given, form) => {
    await ask("POST", "/circles/join", given);
    form.reset();
    await begin();
  });
  submit("#app-end form", async ({ password }) => {
    await ask("POST", "/auth/delete", { password });
    find("#app-end").close();
    signOut("Your account is deleted.");
  });
  doing(find("#app-delete"), async () => find("#app-end").showModal());
  doing(find("#app-out"), async () => {
    await ask("POST", "/auth/logout");
    signOut();
  });
  doing(find("#app-export"), async () => {
    const answer = await fetch("/auth/export", { headers: { Authorization: `Bearer ${state.session.access_token}` } });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const link = make("a", "", { href: URL.createObjectURL(await answer.blob()), download: "waypost-account.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
  const keys = { in: () => state.map.zoomBy(1), out: () => state.map.zoomBy(-1), fit: () => state.map.fit() };
  for (const button of all("[data-map]")) button.addEventListener("click", keys[button.dataset.map]);
  begin();
}
