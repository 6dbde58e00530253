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
// Exact values where the pointer is.
document.querySelectorAll("[data-value]").forEach(function (cell) { cell.title = cell.getAttribute("data-value"); });
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
  var curves = [];
  svg.querySelectorAll("g.plot").forEach(function (g) {
    var text = g.querySelector("text"), shapes = g.querySelectorAll("path, polygon, use, rect, circle");
    if (shapes.length) curves.push({ g: g, name: text ? text.textContent.trim() : "", shapes: shapes });
  });
  // What has no name among others that have is a guide; alone it is the value.
  var named = curves.filter(function (c) { return c.name; });
  if (named.length) curves = named;
  else curves.forEach(function (c) { c.name = "value"; });
  if (named.length > 1) {
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
  // Of each frame of the figure: ends of x and y in pixels and values, whether they are logarithmic, and what x or y
  // names (1: x, 2: nothing is to be read off, 3: y, whose rows are boxes, 4: the same without labels).
  var frames = (svg.getAttribute("data-axes") || "").split(";").map(function (text) {
    var n = text.trim().split(/\s+/).map(Number);
    return {
      x: { from: n[0], to: n[1], low: n[2], high: n[3], log: n[4] > 0 },
      y: { from: n[5], to: n[6], low: n[7], high: n[8], log: n[9] > 0 },
      names: n.length < 10 || n.slice(0, 10).some(isNaN) ? 2 : n[10] || 0
    };
  }).filter(function (frame) { return frame.names !== 2; });
  if (!frames.length || !curves.length) return;
  var frame = frames[0];  // where the pointer is
  function value(axis, at) {
    var t = (at - axis.from) / (axis.to - axis.from);
    return axis.log ? axis.low * Math.pow(axis.high / axis.low, t) : axis.low + t * (axis.high - axis.low);
  }
  function inside(p) {
    return p[0] >= frame.x.from - 1 && p[0] <= frame.x.to + 1 && p[1] >= frame.y.to - 1 && p[1] <= frame.y.from + 1;
  }
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
  // Of a curve at the pointer: the sum of its areas, the height of its line, or whether one of its boxes is there.
  function reading(c, at, row) {
    var sum = 0, some = false, y = frame.y;
    c.shapes.forEach(function (shape) {
      var area = shape.tagName === "polygon";
      c.strokes.get(frame).get(shape).forEach(function (list) {
        var cut = crossings(list, at, area || frame.names > 2);
        if (frame.names > 2) {
          for (var k = 0; k + 1 < cut.length; k += 2) some = some || (cut[k] <= row && row <= cut[k + 1]);
          return;
        }
        if (list.length === 1 && Math.abs(list[0][0] - at) < 6) sum = value(y, list[0][1]), some = true;
        if (area && !y.log)
          for (var i = 0; i + 1 < cut.length; i += 2) sum += value(y, cut[i]) - value(y, cut[i + 1]), some = true;
        else if (!area && cut.length) sum = value(y, cut[0]), some = true;
      });
    });
    return some ? sum : null;
  }
  // The name of the row at a height: the nearest label left of the frame.
  function row_name(at) {
    var best = "", near = 12;
    svg.querySelectorAll("text").forEach(function (text) {
      var place = /translate\(([-\d.]+),([-\d.]+)/.exec((text.parentNode.getAttribute("transform") || ""));
      if (!place || +place[1] > frame.x.from || Math.abs(+place[2] - at) > near) return;
      near = Math.abs(+place[2] - at);
      best = text.textContent.trim();
    });
    return best;
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
    var here = frames.filter(function (f) { frame = f; return inside([p.x, p.y]); });
    frame = here[0] || frame;
    if (here.length)
      curves.forEach(function (c) {
        c.strokes = c.strokes || new Map();
        if (!c.strokes.has(frame)) {
          c.strokes.set(frame, new Map());
          c.shapes.forEach(function (shape) { c.strokes.get(frame).set(shape, strokes(shape)); });
        }
        var v = c.g.classList.contains("off") ? null : reading(c, p.x, p.y);
        if (v !== null && frame.names > 2) rows = [c.name];  // drawn over those before it
        else if (v !== null) rows.push(c.name + ": " + shown(v));
      });
    if (frame.names > 2 && rows.length)
      rows.unshift(frame.names === 3 ? row_name(p.y) : "job " + (Math.round(value(frame.y, p.y)) + 1));
    box.hidden = !rows.length;
    line.style.display = rows.length ? "" : "none";
    if (!rows.length) return;
    box.textContent = (frame.names === 1 ? [] : ["at " + shown(value(frame.x, p.x))]).concat(rows).join("\n");
    [["x1", p.x], ["x2", p.x], ["y1", frame.y.from], ["y2", frame.y.to]].forEach(function (a) { line.setAttribute(a[0], a[1]); });
    var edge = figure.getBoundingClientRect();
    box.style.left = Math.min(e.clientX - edge.left + 14, edge.width - box.offsetWidth - 4) + "px";
    box.style.top = e.clientY - edge.top + 14 + "px";
  });
});
