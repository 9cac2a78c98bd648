// Draws entities and relationships. The lists beside it say the same for those who do not see it.
import { t } from "../texts.js";
import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { Graph, Sigma, forceAtlas2 } from "../vendor/graph.js";

// Colours that differ for most kinds of colour blindness, on light and dark ground.
const COLOURS = ["#4477aa", "#cc6677", "#228833", "#b8860b", "#aa4499", "#44aabb"];
// The colour of all further types, and of entities without one.
export const OTHERS = "#7a7a7a";
// A click on a line is looked for among all lines, so large graphs go without.
const MOST_CLICKED = 300;
// With more entities, fewer names are shown, so that they can be read.
const MOST_NAMED = 100;
// Layout runs between two frames, for this many milliseconds of each.
const LAYOUT_MS = 6;
const ROUNDS = 250;

export const colourOf = (types, type) => COLOURS[types.indexOf(type)] ?? OTHERS;

export const hasColour = (types, type) => colourOf(types, type) !== OTHERS;

// `chosen` is the name of the entity in the middle. `onEntity` gets a name, `onRelationship` the two ends.
export function GraphCanvas({ graph, types, chosen, onEntity, onRelationship }) {
  const place = useRef(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let drawn;
    try {
      drawn = draw(place.current, graph, types, chosen);
    } catch {
      setFailed(true); // no WebGL
      return undefined;
    }
    drawn.on("clickNode", ({ node }) => onEntity(node));
    drawn.on("clickEdge", ({ edge }) => onRelationship(...drawn.getGraph().extremities(edge)));
    const stop = settle(drawn);
    return () => {
      stop();
      drawn.kill();
    };
    // The types may be known later than the graph.
  }, [graph, chosen, types.join("\n")]);
  if (failed) return html`<p>${t("graph.no_webgl")}</p>`;
  return html`<div class="graph" ref=${place} role="img" aria-label=${t("graph.picture", { n: graph.entities.length })}></div>`;
}

function draw(container, { entities, relationships }, types, chosen) {
  const ink = getComputedStyle(container).color;
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  const picture = new Graph({ multi: false, type: "undirected" });
  entities.forEach(({ name, type, mentions }, index) => {
    // A spiral: every start is the same, and no two nodes share a place.
    const angle = index * 2.4;
    const radius = Math.sqrt(index + 1);
    picture.mergeNode(name, {
      label: name,
      x: radius * Math.cos(angle),
      y: radius * Math.sin(angle),
      size: Math.min(14, (name === chosen ? 8 : 3) + Math.sqrt(mentions)),
      color: colourOf(types, type),
      highlighted: name === chosen,
    });
  });
  for (const { source, target } of relationships) {
    if (source !== target && picture.hasNode(source) && picture.hasNode(target)) picture.mergeEdge(source, target);
  }
  return new Sigma(picture, container, {
    enableEdgeEvents: entities.length <= MOST_CLICKED,
    labelColor: { color: ink },
    defaultDrawNodeHover: (canvas, node, settings) => drawChosen(canvas, node, settings, ground),
    defaultEdgeColor: "#a8a8a8",
    // One name in each part of the picture that is as large as a name is long: that of the largest entity there.
    labelRenderedSizeThreshold: 0,
    labelDensity: 1,
    labelGridCellSize: entities.length > MOST_NAMED ? 120 : 100,
    // A name at the edge is not cut.
    stagePadding: 60,
    hideEdgesOnMove: entities.length > 500,
    zIndex: false,
    // The place has no size for a moment while the panel changes.
    allowInvalidContainer: true,
  });
}

// The label of an entity that is pointed at, or in the middle, covers what is behind it. Sigma's own ground is white.
function drawChosen(canvas, node, settings, ground) {
  const height = settings.labelSize + 8;
  canvas.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`;
  canvas.fillStyle = ground;
  canvas.beginPath();
  canvas.arc(node.x, node.y, node.size + 3, 0, 2 * Math.PI);
  canvas.rect(node.x, node.y - height / 2, node.size + canvas.measureText(node.label ?? "").width + 8, height);
  canvas.fill();
  settings.defaultDrawNodeLabel(canvas, node, settings);
}

// Lets the layout settle a little in each frame, so that the page stays responsive. Returns a way to stop it.
function settle(drawn) {
  const picture = drawn.getGraph();
  const settings = { ...forceAtlas2.inferSettings(picture), barnesHutOptimize: picture.order > 300 };
  let left = ROUNDS;
  let frame = requestAnimationFrame(function round() {
    const begun = performance.now();
    do {
      forceAtlas2.assign(picture, { iterations: 1, settings });
      left -= 1;
    } while (left > 0 && performance.now() - begun < LAYOUT_MS);
    if (left > 0) frame = requestAnimationFrame(round);
  });
  return () => cancelAnimationFrame(frame);
}
