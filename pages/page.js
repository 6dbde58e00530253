// Frames that scroll can be reached by the keyboard, and say what they hold.
document.querySelectorAll(".scroll, .drawing").forEach(function (frame) {
  var caption = frame.querySelector("caption"), figure = frame.closest("figure"), section = frame.closest("section");
  var name = caption || (figure && figure.querySelector("figcaption")) || (section && section.querySelector("h2"));
  function reach() {
    if (frame.scrollWidth > frame.clientWidth + 1) {
      frame.tabIndex = 0;
      frame.setAttribute("role", "group");
      frame.setAttribute("aria-label", name ? name.textContent.trim() : "table");
    } else {
      ["tabindex", "role", "aria-label"].forEach(function (a) { frame.removeAttribute(a); });
    }
  }
  reach();
  addEventListener("resize", reach);
  var fold = frame.closest("details");
  if (fold) fold.addEventListener("toggle", reach);
});
// Sorts by exact values where a column has them, else by text; the first click of a numeric column is ascending too.
document.querySelectorAll("th").forEach(function (head) {
  function sort() {
    var table = head.closest("table"), body = table.tBodies[0];
    var column = Array.prototype.indexOf.call(head.parentNode.children, head);
    var down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach(function (other) { other.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    function value(row) {
      var cell = row.cells[column], exact = cell.getAttribute("data-value");
      return exact === null ? cell.textContent : exact === "null" ? NaN : Number(exact);
    }
    Array.prototype.slice.call(body.rows).sort(function (a, b) {
      var x = value(a), y = value(b);
      if (typeof x === "number" && typeof y === "number") {
        if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
        return down ? y - x : x - y;
      }
      return (down ? -1 : 1) * String(x).localeCompare(String(y), "en", { numeric: true });
    }).forEach(function (row) { body.appendChild(row); });
  }
  head.tabIndex = 0;
  head.addEventListener("click", sort);
  head.addEventListener("keydown", function (e) { if (e.key === "Enter") sort(); });
});
// Figures: a switch for each curve that the legend names, and values where the pointer is.
document.querySelectorAll("figure").forEach(function (figure) {
  var svg = figure.querySelector(".drawing svg");
  if (!svg) return;
  var axes = (svg.getAttribute("data-axes") || "").split(/\s+/).map(Number);
  var curves = [];
  svg.querySelectorAll("g.plot").forEach(function (g) {
    var text = g.querySelector("text"), shapes = g.querySelectorAll("path, polygon, use, rect, circle");
    if (text && shapes.length) curves.push({ g: g, name: text.textContent.trim(), shapes: shapes });
  });
  if (curves.length > 1) {
    var row = document.createElement("div");
    row.className = "switches";
    row.setAttribute("role", "group");
    row.setAttribute("aria-label", "curves shown");
    curves.forEach(function (c) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = c.name;
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", function () {
        var off = c.g.classList.toggle("off");
        button.setAttribute("aria-pressed", String(!off));
      });
      row.appendChild(button);
    });
    figure.insertBefore(row, figure.querySelector("figcaption"));
  }
  if (axes.length < 10 || axes.slice(0, 10).some(isNaN) || axes[10] > 1 || !curves.length) return;
  var x = { from: axes[0], to: axes[1], low: axes[2], high: axes[3], log: axes[4] > 0 };
  var y = { from: axes[5], to: axes[6], low: axes[7], high: axes[8], log: axes[9] > 0 };
  function value(axis, at) {
    var t = (at - axis.from) / (axis.to - axis.from);
    return axis.log ? axis.low * Math.pow(axis.high / axis.low, t) : axis.low + t * (axis.high - axis.low);
  }
  function inside(p) { return p[0] >= x.from - 1 && p[0] <= x.to + 1 && p[1] >= y.to - 1 && p[1] <= y.from + 1; }
  // Strokes of a shape inside the frame, as lists of points; those of the legend are left out.
  function strokes(shape) {
    if (shape.tagName === "use") {
      var place = /translate\(([-\d.]+),([-\d.]+)/.exec(shape.getAttribute("transform") || "");
      return place && inside([+place[1], +place[2]]) ? [[[+place[1], +place[2]]]] : [];
    }
    return (shape.getAttribute("points") || shape.getAttribute("d") || "").split("M").map(function (text) {
      return (text.match(/-?[\d.]+,-?[\d.]+/g) || []).map(function (pair) { return pair.split(",").map(Number); });
    }).filter(function (list) { return list.length && list.every(inside); });
  }
  // Where a vertical line through the pointer meets the edges of a shape.
  function crossings(list, at, closed) {
    var found = [];
    for (var i = closed ? 0 : 1; i < list.length; i++) {
      var a = list[(i + list.length - 1) % list.length], b = list[i];
      if ((a[0] <= at && b[0] > at) || (b[0] <= at && a[0] > at))
        found.push(a[1] + (b[1] - a[1]) * (at - a[0]) / (b[0] - a[0]));
    }
    return found.sort(function (p, q) { return p - q; });
  }
  function shown(v) { return Number(v.toPrecision(4)).toLocaleString("en"); }
  function reading(c, at) {
    var sum = 0, some = false;
    c.shapes.forEach(function (shape) {
      var area = shape.tagName === "polygon";
      c.strokes.get(shape).forEach(function (list) {
        if (list.length === 1 && Math.abs(list[0][0] - at) < 6) sum = value(y, list[0][1]), some = true;
        var cut = crossings(list, at, area);
        if (area && !y.log)
          for (var i = 0; i + 1 < cut.length; i += 2) sum += value(y, cut[i]) - value(y, cut[i + 1]), some = true;
        else if (!area && cut.length) sum = value(y, cut[0]), some = true;
      });
    });
    return some ? sum : null;
  }
  var box = document.createElement("div"), line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  box.className = "reading";
  box.hidden = true;
  box.setAttribute("aria-hidden", "true");
  figure.appendChild(box);
  line.setAttribute("class", "reading-line");
  svg.appendChild(line);
  svg.addEventListener("pointerleave", function () { box.hidden = true; line.style.display = "none"; });
  svg.addEventListener("pointermove", function (e) {
    var p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse()), rows = [];
    if (inside([p.x, p.y]))
      curves.forEach(function (c) {
        if (!c.strokes) {
          c.strokes = new Map();
          c.shapes.forEach(function (shape) { c.strokes.set(shape, strokes(shape)); });
        }
        var v = c.g.classList.contains("off") ? null : reading(c, p.x);
        if (v !== null) rows.push(c.name + ": " + shown(v));
      });
    box.hidden = !rows.length;
    line.style.display = rows.length ? "" : "none";
    if (!rows.length) return;
    box.textContent = (axes[10] ? [] : ["at " + shown(value(x, p.x))]).concat(rows).join("\n");
    [["x1", p.x], ["x2", p.x], ["y1", y.from], ["y2", y.to]].forEach(function (a) { line.setAttribute(a[0], a[1]); });
    var frame = figure.getBoundingClientRect();
    box.style.left = Math.min(e.clientX - frame.left + 14, frame.width - box.offsetWidth - 4) + "px";
    box.style.top = e.clientY - frame.top + 14 + "px";
  });
});
