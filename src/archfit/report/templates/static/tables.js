
// Long tables are sorted by a click on a heading, and filtered by the words of a field.
const valueOf = (row, at) => {
  const text = row.cells[at].textContent.trim(), number = Number(text.replaceAll(",", ""));
  return text === "" || Number.isNaN(number) ? text : number;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach(other => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => {
        const x = valueOf(a, at), y = valueOf(b, at);
        if (x === "" || y === "") return (x === "") - (y === "");  // what is not known comes last
        const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return down ? -order : order;
      }));
    });
  });
  const field = document.createElement("input"), label = document.createElement("label");
  field.type = "search";
  field.placeholder = "protein, albert, attention-bottleneck …";
  field.addEventListener("input", () => {
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(field.value.toLowerCase());
  });
  label.append("Show only rows with ", field);
  label.className = "filter";
  table.parentElement.before(label);
}
