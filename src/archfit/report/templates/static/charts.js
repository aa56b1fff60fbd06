// A chart keeps the size of its labels, and scrolls where it has no room. Expressions are
// interpreted (ast), so that no page need let text become code; styles are in our sheet.
window.drawChart = async (place, spec) => {
  await vegaEmbed(place, spec, {
    mode: "vega-lite", actions: false, renderer: "svg", ast: true, defaultStyle: false,
    tooltip: {disableDefaultStyle: true},
    config: {
      font: "system-ui, sans-serif", background: null,
      legend: {layout: {bottom: {anchor: "start", direction: "vertical"}}},
    },
  });
  place.querySelector("svg").setAttribute("aria-hidden", "true");  // its place has words for it
};
// A report has its charts in a JSON element, each for a wide and for a narrow window.
const ownCharts = JSON.parse(document.getElementById("charts")?.textContent || "{}");
const layout = matchMedia("(max-width: 700px)").matches ? "narrow" : "wide";
for (const [name, spec] of Object.entries(ownCharts)) drawChart(document.getElementById(name), spec[layout]);
