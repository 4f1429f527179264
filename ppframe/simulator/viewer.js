"use strict";
// Lays a drawing out anew when it is zoomed, scrolled or changed, and links an action to others.
(function () {
  const view = document.getElementById("view");
  const svg = view.querySelector("svg.drawing");
  const plot = svg.querySelector(".plot");
  const detail = document.getElementById("detail");
  const needs = JSON.parse(document.getElementById("needs").textContent);
  const given = svg.dataset;
  const NAMES = +given.names, TOP = +given.top, GAP = +given.gap, BETWEEN = +given.between;
  const RIGHT = +given.right, START = +given.start, PER_UNIT = +given.perUnit;
  const WIDTH = +given.width, END = START + WIDTH / PER_UNIT;
  const SMALLEST = 6.5, LARGEST = 12, LETTER = 0.62, MOST_ZOOM = 400, MOST_HOPS = 6000;

  const make = (name, attributes, parent) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return parent ? parent.appendChild(element) : element;
  };
  const all = (selector, root) => Array.from((root || svg).querySelectorAll(selector));

  // What is drawn.
  const rows = all(".row").map((row, rank) => ({
    group: row,
    tags: all(".tags")[rank],
    lanes: all(".lane", row).map(lane => ({
      group: lane,
      name: lane.classList[1],
      height: +lane.dataset.height,
      tag: all(".tag." + lane.classList[1], all(".tags")[rank])[0],
      y: 0,
    })),
  }));
  const boxes = [];
  rows.forEach((row, rank) => row.lanes.forEach(lane => all(".box", lane.group).forEach(group => {
    const rects = all("rect", group).filter(rect => !/chain|pair/.test(rect.className.baseVal));
    const numbers = group.dataset.action.match(/\d+(?=[;)]|$)/g);
    boxes.push({
      group, rank, lane,
      index: boxes.length,
      action: group.dataset.action,
      start: +group.dataset.start,
      end: +group.dataset.end,
      about: group.querySelector("title").textContent,
      labels: rects.map((rect, half) => ({
        text: numbers[half],
        look: rect.className.baseVal,
        y: +rect.getAttribute("y") + +rect.getAttribute("height") / 2,
      })),
    });
    group.dataset.number = boxes.length - 1;
  })));
  const needing = boxes.map(() => []);
  needs.forEach((list, index) => list.forEach(need => needing[need].push(index)));
  const peaks = all(".peak").map(peak => ({
    time: +peak.dataset.time,
    text: "\u25bc " + peak.textContent,
    y: +peak.getAttribute("y"),
    row: rows[+peak.closest(".row").dataset.rank],
  }));

  // What a still drawing has and a moving one draws itself.
  all(".n, .peak, .mark, .arrows").forEach(element => element.remove());
  const overlay = make("g", {class: "overlay"});
  svg.insertBefore(overlay, svg.querySelector(".names"));
  const texts = make("g", {}, overlay), links = make("g", {}, overlay);
  const patterns = all("pattern").map(pattern => ({
    pattern, turn: pattern.getAttribute("patternTransform"),
  }));

  let zoom = 1, chosen = null, height = 0;
  const x = time => (Math.min(Math.max(time, START), END) - START) * PER_UNIT * zoom;
  const shown = name => { const box = document.getElementById("show-" + name); return !box || box.checked; };

  // Places.
  function stack() {
    let y = TOP;
    for (const row of rows) {
      const moved = "translate(0 " + y + ")";
      row.group.setAttribute("transform", moved);
      row.tags.setAttribute("transform", moved);
      let inside = 0;
      for (const lane of row.lanes) {
        const visible = lane.name === "predicted" ? shown("predicted") || rows[0].lanes.length < 3
          : lane.name === "memory" ? shown("memory") : shown("measured");
        lane.visible = visible;
        lane.y = y + inside;
        lane.group.style.display = visible ? "" : "none";
        lane.group.setAttribute("transform", "translate(0 " + inside + ")");
        if (lane.tag) {
          // The name of the rank stays; beside it there is no room for a second one.
          const hidden = lane.name === "measured" ? !visible || !inside : !visible;
          lane.tag.style.display = hidden && lane.name !== "predicted" ? "none" : "";
          lane.tag.setAttribute("transform", "translate(12 " + inside + ")");
        }
        if (visible) inside += lane.height + GAP;
      }
      y += Math.max(inside - GAP, 30) + BETWEEN;
    }
    const foot = y;
    svg.querySelector(".axis").setAttribute("transform", "translate(" + NAMES + " " + foot + ")");
    svg.querySelector(".axis-name").setAttribute("transform", "translate(12 " + foot + ")");
    const legend = svg.querySelector(".legend");
    const before = legend.dataset.foot === undefined ? foot : +legend.dataset.foot;
    legend.dataset.foot = before;
    legend.dataset.y = foot - before;
    height = foot + +legend.dataset.height + 38;
  }

  function resize() {
    const width = Math.max(NAMES + WIDTH * zoom + RIGHT, view.clientWidth);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    plot.setAttribute("transform", "translate(" + NAMES + " 0) scale(" + zoom + " 1)");
    overlay.setAttribute("transform", "translate(" + NAMES + " 0)");
    for (const {pattern, turn} of patterns) {
      pattern.setAttribute("patternTransform", "scale(" + 1 / zoom + " 1) " + turn);
    }
    ticks();
  }

  const clock = time => {
    const shown = +time.toPrecision(8), factor = time >= 1 || !time ? 1 : time >= 1e-3 ? 1e3 : 1e6;
    if (given.second !== "1") return shown;
    return +(shown * factor).toPrecision(8) + {1: " s", 1e3: " ms", 1e6: " \u00b5s"}[factor];
  };

  function ticks() {
    const least = 64 / (PER_UNIT * zoom), power = Math.pow(10, Math.floor(Math.log10(least)));
    const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= least);
    const axis = svg.querySelector(".axis"), grid = svg.querySelector(".grid");
    axis.replaceChildren();
    grid.replaceChildren();
    make("path", {d: "M0 0h" + WIDTH * zoom}, axis);
    const foot = height - 38 - +svg.querySelector(".legend").dataset.height;
    for (let i = Math.ceil(START / step); i * step <= END * (1 + 1e-12); i++) {
      const at = x(i * step);
      make("path", {d: "M" + at + " 0v4"}, axis);
      make("text", {x: at, y: 16}, axis).textContent = clock(i * step);
      make("path", {d: "M" + at / zoom + " " + (TOP - 4) + "V" + foot}, grid);
    }
  }

  // Numbers are drawn anew for what is in sight, in the size that fits.
  function letter() {
    const first = view.scrollLeft - NAMES - 40, last = view.scrollLeft + view.clientWidth + 40;
    const drawn = document.createDocumentFragment();
    for (const box of boxes) {
      if (!box.lane.visible) continue;
      const left = x(box.start), right = x(box.end);
      if (right < first || left > last) continue;
      for (const label of box.labels) {
        const size = Math.min(LARGEST, (right - left - 1.5) / (LETTER * label.text.length));
        if (size < SMALLEST) continue;
        const text = make("text", {
          class: "n " + label.look, x: (left + right) / 2, y: box.lane.y + label.y + size * 0.36,
          "font-size": size,
        });
        text.textContent = label.text;
        if (svg.classList.contains("focus") && !box.lit) text.style.opacity = 0.3;
        drawn.appendChild(text);
      }
    }
    for (const peak of peaks) {
      const lane = peak.row.lanes.find(other => other.name === "memory");
      if (!lane || !lane.visible) continue;
      const text = make("text", {class: "peak", x: x(peak.time) - 4, y: lane.y + peak.y});
      text.textContent = peak.text;
      drawn.appendChild(text);
    }
    texts.replaceChildren(drawn);
    svg.querySelector(".names").setAttribute("transform", "translate(" + view.scrollLeft + " 0)");
    svg.querySelector(".head").setAttribute("transform", "translate(" + view.scrollLeft + " 0)");
    const legend = svg.querySelector(".legend");
    legend.setAttribute("transform", "translate(" + view.scrollLeft + " " + legend.dataset.y + ")");
  }

  // Arrows.
  function link(from, to, look) {
    if (!from.lane.visible || !to.lane.visible) return;
    const down = from.lane.y <= to.lane.y, same = from.rank === to.rank;
    const x1 = x(from.end), x2 = x(to.start);
    const y1 = from.lane.y + (same ? 0 : down ? from.lane.height : 0);
    const y2 = to.lane.y + (same ? 0 : down ? 0 : to.lane.height);
    const bend = same ? -16 : 0, middle = (y1 + y2) / 2 + bend;
    const path = same
      ? "M" + x1 + " " + y1 + "Q" + (x1 + x2) / 2 + " " + (y1 - 22) + " " + x2 + " " + y2
      : "M" + x1 + " " + y1 + "C" + x1 + " " + middle + " " + x2 + " " + middle + " " + x2 + " " + y2;
    make("path", {class: "link " + look, d: path}, links);
    const back = down || same ? -7 : 7;
    make("path", {class: "tip " + look, d: "M" + x2 + " " + y2 + "l-3.5 " + back + "h7z"}, links);
  }

  function connect() {
    links.replaceChildren();
    if (document.getElementById("show-transfers").checked) {
      const first = view.scrollLeft - NAMES, last = view.scrollLeft + view.clientWidth;
      let drawn = 0;
      for (const box of boxes) {
        if (x(box.start) < first || x(box.start) > last || drawn > MOST_HOPS) continue;
        for (const need of needs[box.index]) {
          if (boxes[need].rank === box.rank) continue;
          link(boxes[need], box, "message");
          drawn++;
        }
      }
    }
    if (chosen) {
      needs[chosen.index].forEach(need => link(boxes[need], chosen, "needed"));
      needing[chosen.index].forEach(other => link(chosen, boxes[other], "needing"));
    }
  }

  function choose(box) {
    for (const other of boxes) {
      if (other.lit) other.group.classList.remove("chosen", "needed", "needing");
      other.lit = false;
    }
    chosen = box;
    svg.classList.toggle("focus", box !== null);
    if (box) {
      const light = (other, look) => { other.lit = true; other.group.classList.add(look); };
      light(box, "chosen");
      needs[box.index].forEach(need => light(boxes[need], "needed"));
      needing[box.index].forEach(other => light(boxes[other], "needing"));
    }
    tell();
    letter();
    connect();
  }

  function tell() {
    if (!chosen) {
      detail.textContent = detail.dataset.hint;
      return;
    }
    const names = list => list.map(i => boxes[i].action + " (rank " + boxes[i].rank + ")").join(", ");
    const line = (look, word, list) => {
      const bold = document.createElement("b");
      bold.className = look;
      bold.textContent = "\n" + word + ": ";
      detail.append(bold, list.length ? names(list) : "nothing");
    };
    detail.replaceChildren(chosen.about.split("\n").join("  \u00b7  "));
    line("needed", "needs", needs[chosen.index]);
    line("needing", "is needed by", needing[chosen.index]);
  }

  function draw() {
    stack();
    resize();
    letter();
    connect();
  }

  // Zoom around a place of the view, in pixels from its left.
  function zoomBy(factor, at) {
    const place = at === undefined ? view.clientWidth / 2 : at;
    const time = (view.scrollLeft + place - NAMES) / zoom;
    zoom = Math.min(MOST_ZOOM, Math.max(fitting() / 4, zoom * factor));
    resize();
    view.scrollLeft = time * zoom + NAMES - place;
    letter();
    connect();
  }
  const fitting = () => Math.max(0.01, (view.clientWidth - NAMES - RIGHT) / WIDTH);
  function fit() {
    zoom = fitting();
    draw();
  }

  const step = offset => {
    const lane = boxes.filter(box => box.lane === chosen.lane);
    const next = lane[lane.indexOf(chosen) + offset];
    if (next) {
      choose(next);
      const left = x(next.start) + NAMES;
      if (left < view.scrollLeft + NAMES || left > view.scrollLeft + view.clientWidth - 60) {
        view.scrollLeft = left - view.clientWidth / 2;
      }
    }
  };

  const click = (id, act) => document.getElementById(id).addEventListener("click", act);
  click("zoom-in", () => zoomBy(1.4));
  click("zoom-out", () => zoomBy(1 / 1.4));
  click("zoom-fit", fit);
  click("zoom-one", () => zoomBy(1 / zoom));
  all("input", document).forEach(input => input.addEventListener("change", () => {
    svg.classList.toggle("show-critical", document.getElementById("show-critical").checked);
    draw();
  }));
  let waiting = false;
  view.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; letter(); connect(); });
  });
  view.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 300), event.clientX - view.getBoundingClientRect().left);
  }, {passive: false});
  let grip = null, moved = false;
  view.addEventListener("pointerdown", event => {
    grip = event.button === 0 ? {x: event.clientX, left: view.scrollLeft} : null;
    moved = false;
  });
  window.addEventListener("pointermove", event => {
    if (!grip) return;
    moved = moved || Math.abs(event.clientX - grip.x) > 4;
    view.classList.toggle("dragging", moved);
    if (moved) view.scrollLeft = grip.left + grip.x - event.clientX;
  });
  window.addEventListener("pointerup", () => { grip = null; view.classList.remove("dragging"); });
  svg.addEventListener("click", event => {
    if (moved) return;
    const group = event.target.closest(".box");
    const box = group && group.dataset.number !== undefined ? boxes[+group.dataset.number] : null;
    choose(box === chosen ? null : box);
  });
  window.addEventListener("keydown", event => {
    if (event.target.matches("input, button") && event.key === " ") return;
    const acts = {
      "+": () => zoomBy(1.4), "=": () => zoomBy(1.4), "-": () => zoomBy(1 / 1.4), "0": fit,
      Escape: () => choose(null),
      ArrowLeft: () => (chosen ? step(-1) : view.scrollBy(-80, 0)),
      ArrowRight: () => (chosen ? step(1) : view.scrollBy(80, 0)),
    };
    if (acts[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      acts[event.key]();
    }
  });
  window.addEventListener("resize", draw);
  detail.textContent = detail.dataset.hint;
  if (fitting() < 1 && WIDTH * fitting() > 500 && boxes.length < 300) fit();
  draw();
})();
