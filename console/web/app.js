// Keeps the page as it is now: puts in what the server has written anew, and lets
// clocks run. Without it the page is the same, as old as its last load.
"use strict";
(() => {
  const most = 4; // streams of one browser: it has six connections to a server, over all tabs
  const again = 5000; // ms between questions, where there is no stream
  const byId = (id) => document.getElementById(id);
  const rows = byId("rows"), box = byId("q");
  document.documentElement.classList.add("has-script");

  // The server's clock is the one that counts.
  let ahead = Date.parse(document.body.dataset.at) - Date.now();
  let query = location.search || "?";
  let stream = null;
  let timer = 0;
  let asked = 0; // the last question; older answers come too late
  let typing = 0;

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

  const drop = (node) => {
    const next = node.nextSibling;
    node.remove();
    return next;
  };

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
    const b = [...fresh.childNodes];
    const ids = new Set(b.map((n) => n.id).filter(Boolean));
    const known = new Set([...old.childNodes].map((n) => n.id).filter(Boolean));
    let at = old.firstChild;
    for (const n of b) {
      // What has an id stays itself when others come before it or go.
      if (n.id && known.has(n.id)) while (at && at.id !== n.id) at = drop(at);
      else if (!n.id) while (at && at.id && !ids.has(at.id)) at = drop(at);
      if (!at || (at.id || "") !== (n.id || "")) {
        old.insertBefore(n, at);
        continue;
      }
      const next = at.nextSibling;
      morph(at, n);
      at = next;
    }
    while (at) at = drop(at);
  };

  // Rows in order. An element that is moved loses the focus and the selection: the row
  // that has them stays, and the others are put around it.
  const arrange = (order) => {
    const wanted = new Set(order.map((slug) => byId("p-" + slug)));
    wanted.delete(null);
    for (const row of [...rows.children]) if (!wanted.has(row)) row.remove();
    const held = (node) => [...wanted].find((row) => row.contains(node));
    const stays = held(document.activeElement) || held(getSelection().anchorNode);
    let at = rows.firstElementChild;
    for (const row of wanted) {
      while (row === stays && at !== row) {
        const next = at.nextElementSibling;
        rows.append(at);
        at = next;
      }
      if (row === at) at = at.nextElementSibling;
      else rows.insertBefore(row, at);
    }
  };

  const parse = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html.trim();
    return t.content.firstElementChild;
  };

  // Read aloud, where it is another text than before.
  let said = "";
  const say = (text) => write(byId("news"), text);

  const asOf = ({ at }) => {
    ahead = Date.parse(at) - Date.now();
    const time = byId("at");
    time.dateTime = at;
    write(time, at.slice(11, 19));
    tick();
  };

  const show = (m) => {
    for (const [id, html] of Object.entries(m.parts)) {
      const old = byId(id), fresh = parse(html);
      if (old) morph(old, fresh);
      else if (id.startsWith("p-")) rows.append(fresh);
    }
    arrange(m.order);
    const headline = byId("headline").textContent;
    if (headline !== said) say((said = headline));
    asOf(m);
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

  // ask shows the answer to the question and tells whether there is one; refused: there
  // is, but not what was asked for (whoever is logged out is led elsewhere).
  let refused = false;
  const ask = async () => {
    const n = ++asked;
    refused = false;
    try {
      const res = await fetch("rows" + query, { cache: "no-store", headers: { Accept: "application/json" }, signal: AbortSignal.timeout(10000) });
      refused = true;
      if (!res.ok) throw new Error(String(res.status));
      const m = await res.json();
      refused = false;
      if (n === asked) show(m);
      return true;
    } catch {
      return false;
    }
  };

  const poll = async () => {
    clearTimeout(timer);
    if (await ask()) mode("poll", "Every 5 s");
    else {
      mode("lost", "No answer since");
      say((said = "No answer from the server. The page shows its last state."));
    }
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
    s.addEventListener("beat", ({ data }) => {
      if (s !== stream) return;
      hear(s);
      asOf(JSON.parse(data));
    });
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
    clearTimeout(typing);
    if (!keep) box.value = params().get("q") || "";
    turn++;
    stop();
    const answered = await ask();
    if (to !== query) return;
    if (refused) return location.reload();
    if (!answered) return poll(); // and when there is an answer again it is to this question
    if (keep) say(byId("pager").textContent.trim()); // how many are found
    follow();
  };

  const params = () => new URLSearchParams(query);
  const address = (p) => {
    for (const [name, value] of [...p]) if (!value) p.delete(name);
    p.sort();
    return "?" + p.toString();
  };

  document.addEventListener("click", (e) => {
    let a = e.target.closest("a");
    if (!a && getSelection().isCollapsed) a = e.target.closest(".line")?.querySelector(".toggle"); // beside the name
    if (!a || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const href = a.getAttribute("href");
    if (!href.startsWith("?")) return;
    e.preventDefault();
    go(href.split("#")[0]);
  });

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
