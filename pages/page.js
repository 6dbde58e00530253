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
