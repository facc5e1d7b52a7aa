// Keeps the page as it is now: puts in what the server has written anew, and lets
// clocks run. Without it the page is the same, as old as its last load.
"use strict";
(() => {
  const most = 4; // streams of one browser: it has six connections to a server, over all tabs
  const again = 5000; // ms between questions, where there is no stream
  const byId = (id) => document.getElementById(id);
  const rows = byId("rows");
  document.documentElement.classList.add("has-script");

  // The server's clock is the one that counts.
  let ahead = Date.parse(document.body.dataset.at) - Date.now();
  let query = location.search || "?";
  let stream = null;
  let timer = 0;
  let asked = 0; // the last question; older answers come too late

  // Clocks

  const two = (a, ua, b, ub) => (b && a < 10 ? `${a} ${ua} ${b} ${ub}` : `${a} ${ua}`);
  const span = (s) => {
    if (s < 60) return `${s} s`;
    if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
    if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
    return two(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h");
  };
  const write = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
  };
  const tick = () => {
    const now = Date.now() + ahead;
    for (const t of document.querySelectorAll("time[data-in], time[data-ago]")) {
      const at = Date.parse(t.dateTime);
      if ("in" in t.dataset) {
        const left = Math.ceil((at - now) / 1000);
        write(t, left > 0 ? `in ${span(left)}` : "now");
      } else {
        write(t, `${span(Math.max(0, Math.floor((now - at) / 1000)))} ago`);
      }
    }
  };

  // Putting in what is new, and leaving alone what is not: focus, selection and what
  // is being typed stay.

  const morph = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
      old.replaceWith(fresh);
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const a = [...old.childNodes], b = [...fresh.childNodes];
    for (let i = 0; i < b.length; i++) {
      if (i < a.length) morph(a[i], b[i]);
      else old.append(b[i]);
    }
    for (let i = b.length; i < a.length; i++) a[i].remove();
  };

  const parse = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html.trim();
    return t.content.firstElementChild;
  };

  const show = (m) => {
    ahead = Date.parse(m.at) - Date.now();
    for (const [id, html] of Object.entries(m.parts)) {
      const old = byId(id), fresh = parse(html);
      if (old) morph(old, fresh);
      else if (id.startsWith("p-")) rows.append(fresh);
    }
    let at = rows.firstElementChild;
    for (const slug of m.order) {
      const row = byId("p-" + slug);
      if (row === at) at = at.nextElementSibling;
      else if (row) rows.insertBefore(row, at);
    }
    while (at) {
      const next = at.nextElementSibling;
      at.remove();
      at = next;
    }
    const time = byId("at");
    time.dateTime = m.at;
    write(time, m.at.slice(11, 19));
    write(byId("news"), byId("headline").textContent); // read aloud only where it has changed
    tick();
  };

  // Where news comes from: a stream where there may be one more, else a question every
  // few seconds. A tab that nobody sees has neither.

  const mode = (name, word) => {
    byId("live").dataset.live = name;
    write(byId("live").querySelector(".word"), word);
  };

  // A stream holds a connection, and a browser has six to a server, over all its tabs: so
  // they share a few places for streams. Where there are no locks (without TLS there are
  // none) each asks who has one; some may do so at once, which is why most is no more.
  const name = "headgate" + location.pathname;
  const tabs = !navigator.locks && "BroadcastChannel" in window ? new BroadcastChannel(name) : null;
  let others = 0;
  if (tabs) {
    tabs.onmessage = ({ data }) => {
      if (data === "who" && stream) tabs.postMessage("me");
      if (data === "me") others++;
    };
  }
  let give = null; // gives the place back
  const take = async () => {
    if (tabs) {
      others = 0;
      tabs.postMessage("who");
      await new Promise((done) => setTimeout(done, 400));
      return others < most;
    }
    for (let i = 0; navigator.locks && i < most; i++) {
      const got = await new Promise((done) => {
        navigator.locks.request(name + "#" + i, { ifAvailable: true }, (lock) => {
          if (!lock) return done(false);
          return new Promise((release) => {
            const before = give;
            give = () => {
              if (before) before();
              release();
            };
            done(true);
          });
        });
      });
      if (got) return true;
    }
    return !navigator.locks;
  };

  // The server says something every 15 s. Where it hangs, or the network has gone, no
  // error tells so.
  let silence = 0;
  const hear = (s) => {
    clearTimeout(silence);
    silence = setTimeout(() => s === stream && s.onerror(), 40000);
  };

  const stop = () => {
    clearTimeout(timer);
    clearTimeout(silence);
    if (stream) stream.close();
    if (give) give();
    stream = give = null;
  };

  const ask = async () => {
    const n = ++asked;
    try {
      const res = await fetch("rows" + query, { cache: "no-store", headers: { Accept: "application/json" }, signal: AbortSignal.timeout(10000) });
      if (!res.ok) throw new Error(String(res.status));
      const m = await res.json();
      if (n === asked) show(m);
      return true;
    } catch {
      return false;
    }
  };

  const poll = async () => {
    clearTimeout(timer);
    if (await ask()) mode("poll", "Every 5 s");
    else mode("lost", "No answer since");
    if (!stream && !document.hidden) timer = setTimeout(follow, again);
  };

  let turn = 0; // a later call of follow or stop makes this one void
  const follow = async () => {
    const mine = ++turn;
    stop();
    if (document.hidden) return;
    const may = "EventSource" in window && (await take());
    if (mine !== turn) return; // stop gives the place back when its turn comes
    if (!may) return poll();
    const s = new EventSource("events" + query);
    stream = s;
    hear(s);
    s.addEventListener("beat", () => hear(s));
    s.onmessage = ({ data }) => {
      if (s !== stream) return;
      hear(s);
      const m = JSON.parse(data);
      if (m.gone) return fail();
      mode("stream", "Live");
      show(m);
    };
    const fail = () => {
      if (s !== stream) return;
      stop();
      poll();
    };
    s.onerror = fail;
  };

  // Links, search and panels change the question, not the page.

  const go = async (to, keep) => {
    if (to === query) return;
    query = to;
    history[keep ? "replaceState" : "pushState"](null, "", to);
    turn++;
    stop();
    if (!(await ask())) return location.reload();
    if (to === query) follow();
  };

  const params = () => new URLSearchParams(query);
  const address = (p) => {
    for (const [name, value] of [...p]) if (!value) p.delete(name);
    p.sort();
    return "?" + p.toString();
  };

  document.addEventListener("click", (e) => {
    const a = e.target.closest("a");
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const href = a.getAttribute("href");
    if (!href.startsWith("?")) return;
    e.preventDefault();
    go(href.split("#")[0]);
  });

  const box = byId("q");
  let typing = 0;
  const search = () => {
    const p = params();
    p.set("q", box.value.trim());
    p.delete("page");
    go(address(p), true);
  };
  box.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, 150);
  });
  box.form.addEventListener("submit", (e) => {
    e.preventDefault();
    search();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.nodeName)) {
      e.preventDefault();
      box.focus();
    }
  });
  window.addEventListener("popstate", () => {
    query = location.search || "?";
    box.value = params().get("q") || "";
    ask().then(follow);
  });
  document.addEventListener("visibilitychange", follow);

  query = address(params());
  tick();
  setInterval(tick, 1000);
  follow();
})();
