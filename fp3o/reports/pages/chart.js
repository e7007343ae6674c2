// Interactive learning curves, drawn from the data embedded in the page, in its colours.
//
// Names come from run directories and may contain anything: they are inserted as text, never as HTML.
// Without this script the page shows static figures, which the charts replace.
(() => {
  "use strict";

  const source = document.getElementById("curves");
  if (!source) return;
  const { runs, metrics, charts } = JSON.parse(source.textContent);

  const KINDS = ["task", "sharing", "algorithm"];
  const SHOW = { bands: "95 % bands", seeds: "single seeds", whole: "full range" };
  const CROWDED = 3; // with more runs than this per chart, single seeds are hidden at first
  const PACKED = 8; // and with more than this, bands too
  const LISTED = 24; // rows of a tooltip
  const MARGIN = 3; // percent points beyond 0 and 100 % on the axis of a rate

  const state = {
    off: Object.fromEntries([...KINDS, "metric"].map((kind) => [kind, new Set()])),
    hidden: new Set(), // indices of runs whose name was clicked
    bands: charts.every((chart) => chart.curves.length <= PACKED),
    seeds: charts.every((chart) => chart.curves.length <= CROWDED),
    whole: false,
  };

  // Elements -----------------------------------------------------------------------------------

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // The browser provides SVG's namespace, so that the page contains no address.
  const template = document.createElement("template");
  template.innerHTML = "<svg></svg>";
  const namespace = template.content.firstChild.namespaceURI;

  function shape(parent, name, attributes, text = "") {
    const made = document.createElementNS(namespace, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  const tint = (made, curve) => made.style.setProperty("--hue", curve.colour);

  // Numbers ------------------------------------------------------------------------------------

  const minus = (text) => text.replace("-", "−");

  function countText(count) {
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(count) >= 0.9995 * size) return Number((count / size).toPrecision(3)) + unit;
    return String(Number(count.toPrecision(3)));
  }

  // A number with the digits that its spread supports; without a spread, three digits.
  function numberText(value, spread) {
    const known = spread > 0;
    const scale = known ? spread : Math.abs(value) / 10;
    const digits = scale > 0 ? 1 - Math.floor(Math.log10(scale)) : 2;
    const text = value.toFixed(Math.min(Math.max(digits, 0), 4));
    return minus(known ? text : String(Number(text)));
  }

  function valueText(curve, place, unit) {
    const [mean, low, high] = [curve.mean[place], curve.low[place], curve.high[place]];
    if (low === null || high === null) return numberText(mean) + unit;
    const [a, b, c] = [mean, low, high].map((value) => numberText(value, (high - low) / 2));
    return `${a}${unit} [${b}, ${c}]`;
  }

  // Round numbers between two ends, about `count` of them.
  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 2.5, 5, 10].find((size) => size * unit >= 0.999 * rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-6); k * step <= high + 1e-6 * step; k++)
      found.push(Number((k * step).toPrecision(8)));
    return found;
  }

  // Index of the element of ascending `values` nearest to `value`.
  function nearest(values, value) {
    let [low, high] = [0, values.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (values[middle] < value) low = middle;
      else high = middle;
    }
    return value - values[low] <= values[high] - value ? low : high;
  }

  // Visibility ---------------------------------------------------------------------------------

  const passes = (curve) => KINDS.every((kind) => !state.off[kind].has(runs[curve.run][kind]));
  const drawn = (curve) => passes(curve) && !state.hidden.has(curve.run) && curve.step.length > 0;
  const wanted = (chart) => !state.off.metric.has(chart.metric) && chart.curves.some(passes);
  const titleOf = (chart) => metrics[chart.metric].title + (chart.title && `, ${chart.title}`);

  // Charts of one task and metric share their scales.
  function kin(chart) {
    const same = (other) => other.task === chart.task && other.metric === chart.metric;
    return charts.filter(same).flatMap((other) => other.curves.filter(drawn));
  }

  // Limits of the value axis: the runs after the start of training, the baselines above them and
  // just below them; lower ones until one is so far below that it would compress the rest.
  function ends(chart, curves) {
    const fixed = metrics[chart.metric].ends;
    if (fixed) return [fixed[0] - MARGIN, fixed[1] + MARGIN];
    const spans = curves.map((curve) => (state.whole ? curve.whole : curve.late)).filter(Boolean);
    const marks = chart.baselines.map((mark) => mark[1]).sort((one, other) => other - one);
    const floor = Math.min(...spans.flat());
    let kept = [...spans.flat(), ...marks.filter((mark) => mark >= floor)];
    if (!kept.length) kept = marks.length ? marks.slice(0, 1) : [0, 1];
    let [low, high] = [Math.min(...kept), Math.max(...kept)];
    const below = marks.filter((mark) => mark < low);
    const far = low - 0.5 * (high - low);
    for (const [k, mark] of below.entries()) {
      const next = state.whole || (k === 0 && (below.length > 1 || marks.length === 1));
      if (!next && mark < far) break;
      low = mark;
    }
    const margin = 0.05 * (high - low) || 1;
    return [low - margin, high + margin];
  }

  // Geometry of a chart: `x` and `y` map steps and values to pixels.
  function layout(chart, width) {
    const curves = kin(chart);
    const [low, high] = ends(chart, curves);
    const longest = Math.max(1, ...curves.map((curve) => curve.step[curve.step.length - 1]));
    const labels = chart.baselines.map((mark) => markText(chart, mark, "↓ "));
    const beside = width >= 480 && labels.length > 0; // else the labels are inside
    const height = Math.round(Math.min(Math.max(0.62 * width, 230), 360));
    const box = { left: 46, top: 22, right: 10, bottom: 40 };
    if (beside) box.right = 10 + 6.8 * Math.max(...labels.map((text) => text.length));
    const across = width - box.left - box.right;
    const down = height - box.top - box.bottom;
    const right = 1.02 * longest;
    return {
      ...box, width, height, across, down, low, high, right, beside,
      x: (step) => box.left + (across * step) / right,
      y: (value) => box.top + (down * (high - value)) / (high - low),
    };
  }

  // Drawing ------------------------------------------------------------------------------------

  function draw(chart) {
    const width = chart.plot.clientWidth;
    if (!width || chart.place.hidden) return;
    const view = (chart.view = layout(chart, width));
    const svg = chart.svg;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
    svg.style.aspectRatio = `${view.width} / ${view.height}`;
    drawAxes(svg, chart, view);
    const window = { x: view.left, y: view.top, width: view.across, height: view.down };
    const inside = shape(svg, "svg", {
      ...window, viewBox: Object.values(window).join(" "), class: "inside",
    });
    const seen = chart.curves.filter(drawn);
    // The first curve of the legend is drawn last, on top.
    for (const curve of [...seen].reverse()) drawCurve(inside, curve, view, seen.length > CROWDED);
    drawBaselines(svg, chart, view);
    if (!seen.length) drawNothing(svg, view);
    chart.pointer = shape(svg, "g", { class: "pointer" });
    point(chart, chart.at);
  }

  function drawAxes(svg, chart, view) {
    const { left, top, across, down, x, y } = view;
    const { axis, ends: share } = metrics[chart.metric];
    const [bottom, right] = [top + down, left + across];
    for (const value of share ? [0, 20, 40, 60, 80, 100] : ticks(view.low, view.high, 5)) {
      shape(svg, "line", { class: "rule", x1: left, x2: right, y1: y(value), y2: y(value) });
      const text = share ? `${value} %` : minus(String(value));
      shape(svg, "text", { class: "right", x: left - 6, y: y(value) + 4 }, text);
    }
    for (const step of ticks(0, view.right, across < 330 ? 4 : 6)) {
      shape(svg, "line", { class: "rule", x1: x(step), x2: x(step), y1: bottom, y2: bottom + 4 });
      shape(svg, "text", { class: "middle", x: x(step), y: bottom + 17 }, countText(step));
    }
    shape(svg, "text", { x: 2, y: 11 }, axis);
    shape(svg, "text", { class: "right", x: right, y: bottom + 34 }, "environment steps");
  }

  function markText(chart, [name, value], arrow) {
    const short = name.length > 16 ? `${name.slice(0, 15)}…` : name;
    return `${arrow}${short} ${numberText(value)}${metrics[chart.metric].unit}`;
  }

  function drawBaselines(svg, chart, view) {
    const { left, top, across, down } = view;
    const marks = [...chart.baselines].sort((one, other) => other[1] - one[1]);
    const clip = (value) => Math.min(Math.max(view.y(value), top), top + down);
    const heights = spread(marks.map((mark) => clip(mark[1])), 13, top, top + down);
    const arrow = (value) => (value < view.low ? "↓ " : value > view.high ? "↑ " : "");
    for (const y of marks.filter((mark) => !arrow(mark[1])).map((mark) => view.y(mark[1])))
      shape(svg, "line", { class: "baseline", x1: left, x2: left + across, y1: y, y2: y });
    marks.forEach((mark, k) =>
      shape(svg, "text", labelPlace(view, heights[k]), markText(chart, mark, arrow(mark[1]))));
  }

  // Beside the chart, or inside in its upper left or lower right, which rising curves leave free.
  function labelPlace({ left, top, across, down, beside }, height) {
    if (beside) return { x: left + across + 6, y: height + 4 };
    const y = height + (height < top + 16 ? 12 : -4);
    return height < top + down / 2
      ? { x: left + 5, y, class: "halo" }
      : { x: left + across - 2, y, class: "halo right" };
  }

  // Moves ascending positions apart until neighbours are `gap` away, within two ends.
  function spread(places, gap, least, most) {
    const moved = [...places];
    for (let round = 0; round < 60; round++) {
      for (let k = 1; k < moved.length; k++) {
        const lack = gap - (moved[k] - moved[k - 1]);
        if (lack > 0) [moved[k - 1], moved[k]] = [moved[k - 1] - lack / 2, moved[k] + lack / 2];
      }
      for (let k = 0; k < moved.length; k++) moved[k] = Math.min(Math.max(moved[k], least), most);
    }
    return moved;
  }

  function drawCurve(parent, curve, view, crowded) {
    const group = shape(parent, "g", { class: "curve", "data-run": curve.run });
    tint(group, curve);
    // The interval of two seeds is 13 times their distance and would fill the chart.
    if (state.bands && curve.seeds.length > 2)
      shape(group, "path", { class: "band", d: bandPath(curve, view) });
    const seed = crowded ? "seed crowded" : "seed";
    for (const values of state.seeds ? curve.seeds : [])
      shape(group, "path", { class: seed, d: path(curve.step, values, view) });
    const d = path(curve.step, curve.mean, view);
    shape(group, "path", { class: "mean", d, "stroke-dasharray": dashes(curve, 2) });
    if (curve.step.length < 12)
      curve.mean.forEach((mean, k) => {
        if (mean !== null) dot(group, view.x(curve.step[k]), view.y(mean), 2.5);
      });
  }

  function drawNothing(svg, view) {
    const middle = { class: "middle", x: view.left + view.across / 2, y: view.top + view.down / 2 };
    shape(svg, "text", middle, "All runs are hidden: click a name below.");
  }

  // Dashes are in widths of the line.
  const dashes = (curve, width) => curve.dashes.map((dash) => width * dash).join(" ");
  const dot = (parent, cx, cy, r) => shape(parent, "circle", { class: "dot", cx, cy, r });

  const spot = (view, step, value) => `${view.x(step).toFixed(1)} ${view.y(value).toFixed(1)}`;

  // A line through the values; a missing one breaks it.
  function path(steps, values, view) {
    let [path, broken] = ["", true];
    values.forEach((value, k) => {
      if (value !== null) path += (broken ? "M" : "L") + spot(view, steps[k], value);
      broken = value === null;
    });
    return path;
  }

  function bandPath(curve, view) {
    const known = curve.step.map((_, k) => k).filter((k) => curve.low[k] !== null);
    const along = (values) => known.map((k) => spot(view, curve.step[k], values[k]));
    const [there, back] = [along(curve.low), along(curve.high).reverse()];
    return known.length ? `M${[...there, ...back].join("L")}Z` : "";
  }

  // Pointing -----------------------------------------------------------------------------------

  // Shows the values of the runs at a step; null hides them.
  function point(chart, step) {
    chart.at = step;
    chart.pointer.replaceChildren();
    const rows = step === null ? [] : rowsAt(chart, step);
    chart.tip.hidden = !rows.length;
    if (!rows.length) return;
    const { view } = chart;
    const [x, y1, y2] = [view.x(step), view.top, view.top + view.down];
    shape(chart.pointer, "line", { class: "cross", x1: x, x2: x, y1, y2 });
    for (const { curve, place } of rows) {
      const y = view.y(curve.mean[place]);
      if (y < y1 - 1 || y > y2 + 1) continue; // below the axis
      tint(dot(chart.pointer, view.x(curve.step[place]), y, 3.5), curve);
    }
    fillTip(chart, step, rows);
    placeTip(chart, x);
  }

  // The nearest point per run, highest value first; runs that ended before have none.
  function rowsAt(chart, step) {
    const found = [];
    for (const curve of chart.curves.filter(drawn)) {
      const place = nearest(curve.step, step);
      const gap = curve.step.length > 1 ? curve.step[1] - curve.step[0] : Infinity;
      if (curve.mean[place] !== null && Math.abs(curve.step[place] - step) <= gap)
        found.push({ curve, place });
    }
    return found.sort((one, other) => other.curve.mean[other.place] - one.curve.mean[one.place]);
  }

  function fillTip(chart, step, rows) {
    const { unit } = metrics[chart.metric];
    const lines = rows.slice(0, LISTED).map(({ curve, place }) =>
      element("tr", {}, element("td", {}, swatch(curve)), element("td", {}, curve.name),
        element("td", {}, valueText(curve, place, unit))));
    const head = `${countText(step)} steps: mean [95 % interval]`;
    const more = rows.length > LISTED ? [`and ${rows.length - LISTED} more`] : [];
    chart.tip.replaceChildren(element("p", {}, head), element("table", {}, ...lines), ...more);
  }

  // Beside the crosshair; in a narrow chart below or above it, where it covers no curve.
  function placeTip({ plot, tip, view }, x) {
    const { width: room, height: deep, top: above } = plot.getBoundingClientRect();
    tip.style.left = 0; // measure its full width
    const [wide, high, at] = [tip.offsetWidth, tip.offsetHeight, (x * room) / view.width];
    const narrow = wide > 0.4 * room;
    const left = narrow ? at - wide / 2 : at > room / 2 ? at - 14 - wide : at + 14;
    const lowest = window.innerHeight - above - high - 4; // keep it inside the window
    const top = !narrow ? 26 : deep > lowest && above >= high ? -high : deep;
    tip.style.left = `${Math.max(0, Math.min(left, room - wide))}px`;
    tip.style.top = `${Math.min(top, Math.max(lowest, -above))}px`;
  }

  const stepsOf = (chart) =>
    [...new Set(chart.curves.filter(drawn).flatMap((curve) => curve.step))].sort((a, b) => a - b);

  function pointAt(chart, event) {
    const { left, width } = chart.svg.getBoundingClientRect();
    const x = ((event.clientX - left) / width) * chart.view.width;
    const step = ((x - chart.view.left) / chart.view.across) * chart.view.right;
    const steps = stepsOf(chart);
    point(chart, steps.length ? steps[nearest(steps, step)] : null);
  }

  const MOVES = {
    ArrowLeft: (place) => place - 1,
    ArrowRight: (place) => place + 1,
    Home: () => 0,
    End: (place, last) => last,
  };

  function pointByKey(chart, event) {
    if (event.key === "Escape") return point(chart, null);
    if (!(event.key in MOVES)) return;
    const steps = stepsOf(chart);
    if (!steps.length) return;
    event.preventDefault();
    const last = steps.length - 1;
    const place = chart.at === null ? last : MOVES[event.key](nearest(steps, chart.at), last);
    point(chart, steps[Math.min(Math.max(place, 0), last)]);
  }

  function listen(chart) {
    const { svg } = chart;
    svg.addEventListener("pointermove", (event) => pointAt(chart, event));
    svg.addEventListener("pointerdown", (event) => pointAt(chart, event));
    // Lifting a finger is no reason to hide the values: they stay until the next tap elsewhere.
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") point(chart, null);
    });
    svg.addEventListener("keydown", (event) => pointByKey(chart, event));
    svg.addEventListener("focus", () => {
      const steps = stepsOf(chart);
      if (chart.at === null && svg.matches(":focus-visible") && steps.length)
        point(chart, steps[steps.length - 1]);
    });
    svg.addEventListener("blur", () => point(chart, null));
    document.addEventListener("pointerdown", (event) => {
      if (chart.at !== null && !svg.contains(event.target)) point(chart, null);
    });
  }

  // Legends ------------------------------------------------------------------------------------

  function swatch(curve) {
    const holder = element("span", { class: "swatch" });
    tint(holder, curve);
    const svg = shape(holder, "svg", { viewBox: "0 0 22 8", "aria-hidden": "true" });
    shape(svg, "path", { class: "mean", d: "M0 4H22", "stroke-dasharray": dashes(curve, 1.6) });
    return holder;
  }

  function legendEntry(chart, curve) {
    const button = element("button", { type: "button" }, swatch(curve), curve.name);
    button.addEventListener("click", () => {
      if (!state.hidden.delete(curve.run)) state.hidden.add(curve.run);
      refresh();
    });
    const light = (on) => () => {
      chart.svg.classList.toggle("dimmed", on);
      for (const group of chart.svg.querySelectorAll(`[data-run="${curve.run}"]`))
        group.classList.toggle("lit", on);
    };
    button.addEventListener("pointerenter", light(true));
    button.addEventListener("pointerleave", light(false));
    return { curve, button, item: element("li", {}, button) };
  }

  // Filters ------------------------------------------------------------------------------------

  function checkBox(text, checked, change) {
    const input = element("input", { type: "checkbox" });
    input.checked = checked;
    input.addEventListener("change", () => {
      change(input.checked);
      refresh();
    });
    const set = (on) => change((input.checked = on));
    return { label: element("label", {}, input, text), set };
  }

  function group(title, boxes) {
    const parts = [element("legend", {}, title), ...boxes.map((box) => box.label)];
    if (boxes.length > 3)
      parts.push(allButton("all", boxes, true), allButton("none", boxes, false));
    return element("fieldset", {}, ...parts);
  }

  function allButton(text, boxes, on) {
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      for (const box of boxes) box.set(on);
      refresh();
    });
    return button;
  }

  function choice(kind, values, title = (value) => value) {
    if (values.length < 2) return [];
    const off = state.off[kind];
    const boxes = values.map((value) =>
      checkBox(title(value), !off.has(value), (on) => (on ? off.delete(value) : off.add(value))));
    return [group(kind, boxes)];
  }

  function buildFilters() {
    const names = Object.keys(metrics);
    for (const name of names) if (!metrics[name].early) state.off.metric.add(name);
    const found = (kind) => [...new Set(runs.map((run) => run[kind]))];
    const groups = KINDS.flatMap((kind) => choice(kind, found(kind)));
    groups.push(...choice("metric", names, (name) => metrics[name].title));
    const shows = Object.entries(SHOW).filter(([key]) => key === "whole" || hasSeeds);
    const boxes = shows.map(([key, text]) => checkBox(text, state[key], (on) => (state[key] = on)));
    groups.push(group("show", boxes));
    const summary = element("summary", {}, "Filters: ", count);
    const holder = element("details", {}, summary, element("form", {}, ...groups));
    holder.open = window.innerWidth > 720;
    filters.append(holder);
    for (const part of [filters, ...document.querySelectorAll(".scripted")]) part.hidden = false;
  }

  // The page -----------------------------------------------------------------------------------

  const filters = document.getElementById("filters");
  const count = element("span", { role: "status" });
  const hasSeeds = charts.some((chart) => chart.curves.some((curve) => curve.seeds.length));

  function build(chart, place) {
    const svg = shape(element("div"), "svg", {
      role: "group", tabindex: "0", "aria-roledescription": "chart",
      "aria-label": `${titleOf(chart)} of ${chart.task} over environment steps. `
        + "The arrow keys read its values.",
    });
    const tip = element("div", { class: "tip", role: "status", hidden: "" });
    const plot = element("div", { class: "plot" }, svg, tip);
    Object.assign(chart, { place, svg, tip, plot, at: null });
    chart.legend = chart.curves.map((curve) => legendEntry(chart, curve));
    const names = element("ul", { class: "legend" }, ...chart.legend.map((entry) => entry.item));
    place.replaceChildren(element("h4", {}, titleOf(chart)), plot, names);
    chart.place.hidden = !wanted(chart);
    listen(chart);
    draw(chart);
    let before = plot.clientWidth;
    new ResizeObserver(() => {
      if (plot.clientWidth !== before) draw(chart);
      before = plot.clientWidth;
    }).observe(plot);
  }

  function refresh() {
    for (const chart of charts) {
      chart.place.hidden = !wanted(chart);
      for (const { curve, button, item } of chart.legend) {
        item.hidden = !passes(curve);
        button.setAttribute("aria-pressed", String(!state.hidden.has(curve.run)));
      }
      draw(chart);
    }
    for (const holder of document.querySelectorAll(".curves, .charts"))
      holder.hidden = !holder.querySelector(".chart:not([hidden])");
    const seen = charts.filter(wanted).flatMap((chart) => chart.curves.filter(drawn));
    const different = new Set(seen.map((curve) => curve.run));
    count.textContent = `${different.size} of ${runs.length} runs shown`;
  }

  buildFilters();
  document.querySelectorAll(".chart").forEach((place) => build(charts[place.dataset.chart], place));
  refresh();
})();
