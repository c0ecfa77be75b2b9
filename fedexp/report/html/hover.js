{
  const names = JSON.parse(document.getElementById("methods").textContent);
  const hidden = new Set();

  const told = (value) => {
    const size = Math.abs(value);
    if (size >= 1000 && size < 1e7) return Math.round(value).toLocaleString("en");
    return size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  };

  // Methods shown and hidden, in every drawing at once
  const setShown = (methods, shown) => {
    const chosen = new Set(methods);
    for (const method of chosen) shown ? hidden.delete(method) : hidden.add(method);
    for (const node of all("svg [data-m]")) {
      if (chosen.has(Number(node.dataset.m))) node.classList.toggle("gone", !shown);
    }
    for (const key of all(".legend button")) {
      if (chosen.has(Number(key.dataset.m))) key.setAttribute("aria-pressed", String(shown));
    }
  };
  const heat = (method, hot) => {
    for (const node of all(`path.line[data-m="${method}"]`)) node.classList.toggle("hot", hot);
  };
  for (const key of all(".legend button")) {
    const method = Number(key.dataset.m);
    key.addEventListener("click", () => setShown([method], hidden.has(method)));
    key.addEventListener("pointerenter", () => heat(method, true));
    key.addEventListener("pointerleave", () => heat(method, false));
  }
  for (const box of all(".chooser")) {
    const search = box.querySelector("input");
    const keys = all(".legend button", box);
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/);
      for (const key of keys) {
        const name = key.textContent.toLowerCase();
        key.classList.toggle("gone", !words.every((word) => name.includes(word)));
      }
    });
    for (const button of all("[data-all]", box)) {
      button.addEventListener("click", () => {
        const these = keys.filter((key) => !key.classList.contains("gone")).map((key) => Number(key.dataset.m));
        setShown(these, button.dataset.all === "true");
      });
    }
  }

  // Hovering: a pointer, a finger or the arrow keys choose a place; the tip says what is there
  const listen = (svg, at, step, leave) => {
    const place = (event) => {
      const box = svg.getBoundingClientRect();
      const wide = svg.viewBox.baseVal.width, tall = svg.viewBox.baseVal.height;
      at(((event.clientX - box.left) / box.width) * wide, ((event.clientY - box.top) / box.height) * tall);
    };
    svg.addEventListener("pointermove", place);
    svg.addEventListener("pointerdown", place);
    svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (event.key === "Escape") leave();
      if (!(event.key in moves)) return;
      event.preventDefault();
      step(...moves[event.key]);
    });
  };

  const put = (tip, svg, x, y) => {
    tip.hidden = false;
    const canvas = tip.parentElement.getBoundingClientRect();
    const scrolled = tip.parentElement.scrollLeft;
    const box = svg.getBoundingClientRect();
    const left = box.left - canvas.left + (x / svg.viewBox.baseVal.width) * box.width;
    const top = box.top - canvas.top + (y / svg.viewBox.baseVal.height) * box.height;
    const right = left + 14 + tip.offsetWidth <= canvas.width ? left + 14 : left - 14 - tip.offsetWidth;
    tip.style.left = `${scrolled + Math.max(0, Math.min(right, canvas.width - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(top, canvas.height - tip.offsetHeight))}px`;
  };

  // Between two known values of a line lies a straight line; beyond its ends there is nothing
  const between = (places, values, x) => {
    if (!values || x < places[0] || x > places[places.length - 1]) return null;
    let low = 0, high = places.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      places[middle] <= x ? (low = middle) : (high = middle);
    }
    if (places[high] === x || high === low) return values[high];
    const share = (x - places[low]) / (places[high] - places[low]);
    return values[low] + share * (values[high] - values[low]);
  };

  const nearest = (places, x) => {
    let low = 0, high = places.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      places[middle] <= x ? (low = middle) : (high = middle);
    }
    return x - places[low] <= places[high] - x ? places[low] : places[high];
  };

  const lines = (figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip"), cross = figure.querySelector(".cross");
    const [left, top, right, bottom] = data.box, [from, to, low, high] = data.range;
    const MOST = 9;
    let now = null, last = null, hot = null;
    const scale = (value) => (data.log ? Math.log10(value) : value);
    const across = (x) => left + ((x - from) / (to - from)) * (right - left);
    const up = (y) => bottom - ((scale(y) - scale(low)) / (scale(high) - scale(low))) * (bottom - top);
    const visible = () => data.lines.filter((line) => !hidden.has(line.m));
    const show = (x, pointed) => {
      now = x;
      last = pointed;
      const found = [];
      for (const line of visible()) {
        const y = between(data.x[line.x], line.y, x);
        if (y !== null) found.push({ line, y, far: Math.abs(up(y) - pointed) });
      }
      if (!found.length) return;
      const near = found.reduce((best, one) => (one.far < best.far ? one : best));
      const kept = [...found].sort((a, b) => a.far - b.far).slice(0, MOST).sort((a, b) => b.y - a.y);
      tip.replaceChildren(made("b", `${data.across} ${told(x)}`));
      for (const { line, y } of kept) {
        const row = made("div", undefined, line === near.line && found.length > 1 ? "near" : "");
        row.append(made("i", undefined, `c${line.m % 7}`), made("span", names[line.m]), made("em", told(y)));
        if (line.l) {
          const least = between(data.x[line.x], line.l, x), most = between(data.x[line.x], line.h, x);
          row.lastChild.append(made("small", ` ${told(least)} to ${told(most)}`));
        }
        tip.append(row);
      }
      if (found.length > kept.length) tip.append(made("small", `and ${found.length - kept.length} more`));
      cross.setAttribute("d", `M${across(x)} ${top}V${bottom}`);
      if (hot !== null && hot !== near.line.m) heat(hot, false);
      if (found.length > 1) heat((hot = near.line.m), true);
      put(tip, svg, across(x), Math.min(pointed, bottom - 20));
    };
    const leave = () => {
      tip.hidden = true;
      cross.removeAttribute("d");
      if (hot !== null) heat(hot, false);
      hot = now = null;
    };
    const at = (px, py) => {
      const x = from + ((px - left) / (right - left)) * (to - from);
      let best = null;
      for (const places of new Set(visible().map((line) => data.x[line.x]))) {
        const one = nearest(places, x);
        if (best === null || Math.abs(one - x) < Math.abs(best - x)) best = one;
      }
      if (best !== null) show(best, py);
    };
    const step = (sideways, downwards) => {
      const shown = visible();
      const places = [...new Set(shown.flatMap((line) => data.x[line.x]))].sort((a, b) => a - b);
      if (!places.length) return;
      const place = now === null ? (sideways > 0 ? 0 : places.length - 1) : places.indexOf(now) + sideways;
      const pointed = (last ?? (top + bottom) / 2) + 12 * downwards;
      show(places[Math.max(0, Math.min(places.length - 1, place))], Math.max(top, Math.min(bottom, pointed)));
    };
    listen(svg, at, step, leave);
  };

  const cells = (figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip"), mark = figure.querySelector(".cell");
    const [left, top, wide, tall] = data.box;
    let row = 0, column = -1;
    const leave = () => {
      tip.hidden = true;
      mark.removeAttribute("d");
    };
    const show = () => {
      const value = data.values[row][column];
      const said = value === null ? "none" : `${data.told} ${told(value)}`;
      const where = `${data.up} ${data.rows[row]}, ${data.across} ${data.columns[column]}`;
      tip.replaceChildren(made("b", said), made("span", where));
      mark.setAttribute("d", `M${left + column * wide} ${top + row * tall}h${wide}v${tall}h${-wide}z`);
      put(tip, svg, left + (column + 1) * wide, top + (row + 1) * tall);
    };
    const at = (px, py) => {
      const [r, c] = [Math.floor((py - top) / tall), Math.floor((px - left) / wide)];
      if (r < 0 || c < 0 || r >= data.rows.length || c >= data.columns.length) return leave();
      [row, column] = [r, c];
      show();
    };
    const step = (sideways, downwards) => {
      column = Math.max(0, Math.min(data.columns.length - 1, column + sideways));
      row = Math.max(0, Math.min(data.rows.length - 1, row + downwards));
      show();
    };
    listen(svg, at, step, leave);
  };

  // The numbers of a drawing are read when somebody first comes near it: a page of many opens at once
  const awaken = (figure, make) => {
    const once = () => {
      if (figure.dataset.awake) return;
      figure.dataset.awake = "true";
      make(figure);
    };
    figure.addEventListener("pointerenter", once, { capture: true });
    figure.addEventListener("pointerdown", once, { capture: true });
    figure.addEventListener("focusin", once);
  };
  for (const figure of all("figure.lines")) awaken(figure, lines);
  for (const figure of all("figure.heat")) awaken(figure, cells);
}
