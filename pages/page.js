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
