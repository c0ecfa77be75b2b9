"use strict";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const made = (tag, content, kind) => {
  const node = document.createElement(tag);
  if (content !== undefined) node.textContent = content;
  if (kind) node.className = kind;
  return node;
};

// Tabs
for (const box of all(".tabs")) {
  const panes = all(":scope > .pane", box);
  const choice = made("div", undefined, "choice");
  choice.setAttribute("role", "tablist");
  const choose = (chosen) => panes.forEach((pane, number) => {
    pane.style.display = number === chosen ? "" : "none";
    choice.children[number].setAttribute("aria-selected", String(number === chosen));
    choice.children[number].tabIndex = number === chosen ? 0 : -1;
  });
  panes.forEach((pane, number) => {
    const tab = made("button", pane.dataset.name);
    tab.type = "button";
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => choose(number));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      const next = (number + by + panes.length) % panes.length;
      choose(next);
      choice.children[next].focus();
    });
    pane.setAttribute("role", "tabpanel");
    pane.setAttribute("aria-label", pane.dataset.name);
    choice.append(tab);
  });
  box.prepend(choice);
  box.classList.add("scripted");
  choose(0);
}

// Tables: sorted by a heading, copied by a button
const amount = (text) => {
  const found = text.replace(/,/g, "").match(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?/i);
  return found ? Number(found[0]) : NaN;
};
for (const table of all("table")) {
  const heads = all("thead th", table), body = table.tBodies[0];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const falling = head.getAttribute("aria-sort") === "ascending";
    const rows = [...body.rows].map((row) => ({ row, text: row.cells[column].textContent }));
    const numbers = rows.some(({ text }) => !Number.isNaN(amount(text))) && head.className === "number";
    rows.sort((a, b) => {
      const [one, other] = [amount(a.text), amount(b.text)];
      if (!numbers) return a.text.localeCompare(b.text, "en", { numeric: true }) * (falling ? -1 : 1);
      if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other);
      return (one - other) * (falling ? -1 : 1);
    });
    body.append(...rows.map(({ row }) => row));
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  }));
}
const copied = async (source) => {
  try {
    await navigator.clipboard.writeText(source.value);
  } catch {
    source.hidden = false;
    source.select();
    document.execCommand("copy");
    source.hidden = true;
  }
};
for (const button of all("button.copy")) {
  const name = button.textContent;
  button.addEventListener("click", async () => {
    await copied(button.nextElementSibling);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 1500);
  });
}

// What is larger than its frame is scrolled by the keyboard, too
const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  target.toggleAttribute("tabindex", false);
  if (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight) target.tabIndex = 0;
}));
all(".canvas, .doubts ul").forEach((frame) => watch.observe(frame));

// Methods shown and hidden, in every drawing at once
const hidden = new Set();
const setShown = (methods, shown) => {
  const chosen = new Set(methods);
  for (const method of chosen) shown ? hidden.delete(method) : hidden.add(method);
  for (const node of all(".canvas [data-m]")) {
    if (chosen.has(node.dataset.m)) node.classList.toggle("gone", !shown);
  }
  for (const key of all(".legend button")) {
    if (chosen.has(key.dataset.m)) key.setAttribute("aria-pressed", String(shown));
  }
};
for (const key of all(".legend button")) {
  const method = key.dataset.m;
  const heat = (hot) => {
    document.body.classList.toggle("dimmed", hot);
    all(`.canvas [data-m="${method}"]`).forEach((node) => node.classList.toggle("hot", hot));
  };
  key.addEventListener("click", () => setShown([method], hidden.has(method)));
  key.addEventListener("pointerenter", () => heat(true));
  key.addEventListener("pointerleave", () => heat(false));
}
for (const box of all(".chooser")) {
  const search = box.querySelector("input"), keys = all(".legend button", box);
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const key of keys) {
      const name = key.textContent.toLowerCase();
      key.classList.toggle("gone", !words.every((word) => name.includes(word)));
    }
  });
  for (const button of all("[data-all]", box)) {
    button.addEventListener("click", () => {
      const these = keys.filter((key) => !key.classList.contains("gone")).map((key) => key.dataset.m);
      setShown(these, button.dataset.all === "true");
    });
  }
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.style.colorScheme = dark === "dark" ? "light" : "dark";
});
addEventListener("beforeprint", () => all("details.doubts").forEach((one) => { one.open = true; }));
