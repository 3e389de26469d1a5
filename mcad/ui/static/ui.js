// What HTML and htmx do not: keys, ages of instants, and a word when the connection is lost.
"use strict";

(function () {
  const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

  function age(seconds) {
    const [size, unit] = UNITS.find(([size]) => seconds >= 2 * size) || [1, "s"];
    return Math.max(0, Math.floor(seconds / size)) + unit;
  }

  function writeAges() {
    for (const one of document.querySelectorAll("time[datetime]")) {
      const at = Date.parse(one.dateTime);
      if (!Number.isNaN(at)) {
        const text = age((Date.now() - at) / 1000) + " ago";
        if (one.textContent !== text) one.textContent = text;
        one.title = one.dateTime;
      }
    }
  }

  function rows() {
    return Array.from(document.querySelectorAll("a.row"));
  }

  function move(step) {
    const all = rows();
    const at = all.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step;
    if (all[next]) all[next].focus();
  }

  function closeDrawer() {
    const link = document.querySelector("#drawer a.close");
    if (!link) return false;
    history.pushState({}, "", link.href);
    shown = address();
    document.getElementById("drawer").replaceChildren();
    const row = opened && document.getElementById(opened);
    if (row) row.focus();
    return true;
  }

  // A jump within the page changes its history too, and what is shown stays true.
  function address() {
    return location.pathname + location.search;
  }

  let opened = "", shown = address();
  const MOVES = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else if (closeDrawer()) event.preventDefault();
    } else if (typing) {
      return;
    } else if (event.key === "/") {
      event.preventDefault();
      document.getElementById("filter-name").focus();
    } else if (event.key in MOVES && !(event.key.startsWith("Arrow") && event.target.closest("#drawer"))) {
      event.preventDefault();
      move(MOVES[event.key]);
    }
  });

  document.addEventListener("click", function (event) {
    const row = event.target.closest("a.row");
    if (row) opened = row.id;
    if (event.target.closest("a.close") && closeDrawer()) event.preventDefault();
  });

  document.addEventListener("change", function (event) {
    if (event.target.matches("#filters select")) event.target.form.requestSubmit();
  });

  document.addEventListener("submit", function (event) {
    for (const one of event.target.elements) one.disabled = one.name && !one.value;
  });

  document.addEventListener("htmx:afterSettle", function (event) {
    writeAges();
    if (event.detail.target && event.detail.target.id === "drawer") {
      const title = document.getElementById("drawer-title");
      if (title) title.focus();
    }
  });

  function lost(isLost) {
    const told = document.getElementById("lost");
    if (told) told.hidden = !isLost;
  }

  document.addEventListener("htmx:sseError", () => lost(true));
  document.addEventListener("htmx:sseOpen", () => lost(false));
  document.addEventListener("DOMContentLoaded", writeAges);
  document.addEventListener("htmx:pushedIntoHistory", () => { shown = address(); });
  window.addEventListener("popstate", () => address() !== shown && location.reload());
  // A page that the browser kept is one without a connection.
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());
  setInterval(writeAges, 1000);
})();
