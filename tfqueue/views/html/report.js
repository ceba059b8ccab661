"use strict";
(() => {
  const form = document.querySelector(".controls");
  if (!form) return;
  const list = document.getElementById("list");
  const records = Array.from(list.children);
  const filter = document.getElementById("filter");
  const kind = document.getElementById("kind");
  const sort = document.getElementById("sort");
  const count = document.getElementById("count");
  const views = ["reference", "candidate", "difference"];
  const words = new Map(records.map((record) => [record, record.textContent.toLowerCase()]));

  form.hidden = false;
  document.body.classList.add("scripted");
  form.addEventListener("submit", (event) => event.preventDefault());

  const shown = () => records.filter((record) => !record.hidden);

  function choose() {
    const wanted = filter.value.trim().toLowerCase();
    for (const record of records) {
      const fits = (!kind.value || record.dataset.kind === kind.value) && words.get(record).includes(wanted);
      record.hidden = !fits;
    }
    count.textContent = `${shown().length} of ${records.length} shown`;
  }

  function order() {
    const by = sort.value;
    const sign = by === "size" ? -1 : 1;
    records.sort((a, b) => sign * (a.dataset[by] - b.dataset[by]) || a.dataset.found - b.dataset.found);
    list.append(...records);
  }

  function view(name) {
    document.body.dataset.view = name;
    form.querySelector(`input[value="${name}"]`).checked = true;
  }

  function step(by) {
    const there = shown();
    if (!there.length) return;
    const here = there.indexOf(document.activeElement.closest(".record"));
    const next = here < 0 ? (by > 0 ? 0 : there.length - 1) : Math.min(Math.max(here + by, 0), there.length - 1);
    there[next].focus();
    there[next].scrollIntoView({ block: "nearest" });
  }

  filter.addEventListener("input", choose);
  kind.addEventListener("change", choose);
  sort.addEventListener("change", order);
  form.addEventListener("change", (event) => {
    if (event.target.name === "view") view(event.target.value);
  });
  list.addEventListener("click", (event) => {
    if (event.target.tagName !== "IMG") return;
    const now = document.body.dataset.view;
    const there = views.filter((name) => event.target.closest(".pictures").querySelector(`.${name}`));
    const own = there.find((name) => event.target.closest("figure").classList.contains(name));
    view(now === "all" ? own : there[(there.indexOf(now) + 1) % there.length]);
  });

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    s: () => view("all"),
    r: () => view("reference"),
    c: () => view("candidate"),
    d: () => view("difference"),
    "/": () => filter.focus(),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches('input[type="search"], select');
    if (typing && event.key === "Escape") event.target.blur();
    if (typing || event.ctrlKey || event.altKey || event.metaKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
})();
