/* A figure as a picture: the boxes, texts and drawings of its elements at their places, as SVG
   or, drawn from that, as PNG. */

import { download, h, populate, svg } from "./elements.js";
import { abs, max, min, round } from "./numbers.js";

const NOT_IN_PICTURE = ".hidden, .picked, input, select";

/* Boxes that scroll on the page; a picture shows all that is in them. */
const SCROLLING = ".matrix-box, .tree-scroll, .heads, .scroll, .scroll-x, .formula";

/* Properties of the style sheet that the elements of a drawing get as attributes. */
const DRAWN_PROPERTIES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "visibility",
  "text-anchor",
  "font-size",
  "font-weight",
  "font-family",
];

const PNG_SCALE = 2;

/** Return a figure as an SVG element, in the colours of the page, without its controls.
    @type {(section: HTMLElement) => Element} */
function pictureOf(section) {
  const scrolling = [...section.querySelectorAll(SCROLLING)].map((box) => ({
    box,
    left: box.scrollLeft,
    top: box.scrollTop,
    hidden: box.scrollWidth - box.clientWidth,
  }));
  const hidden = max(0, ...scrolling.map((box) => box.hidden));
  section.style.width = `${section.offsetWidth + hidden}px`;
  section.classList.add("saving");
  const picture = drawFigure(section);
  section.classList.remove("saving");
  section.style.width = "";
  for (const { box, left, top } of scrolling) box.scrollTo(left, top);
  return picture;
}

/** Draw a figure as it is laid out now.
    @type {(section: HTMLElement) => Element} */
function drawFigure(section) {
  const origin = section.getBoundingClientRect();
  const size = { width: origin.width, height: 0 };
  const root = svg("svg", { "aria-hidden": false });
  const fills = svg("defs");

  /** Return the place of a box in the picture, and make the picture large enough for it.
      @type {(box: DOMRect) => { x: number, y: number, width: number, height: number }} */
  function place({ left, top, width, height }) {
    const [x, y] = [left - origin.left, top - origin.top];
    Object.assign(size, {
      width: max(size.width, x + width),
      height: max(size.height, y + height),
    });
    return { x, y, width, height };
  }

  /** Return the fill of an element: its colour, or a gradient or hatching of the colours of its
      background image.
      @type {(style: CSSStyleDeclaration) => string} */
  function fillOf({ backgroundColor, backgroundImage }) {
    const colours = backgroundImage.match(/rgba?\([^)]*\)|color\([^)]*\)/g);
    if (!colours) return backgroundColor;
    const id = `fill${fills.childElementCount}`;
    fills.append(
      backgroundImage.startsWith("repeating")
        ? svg(
            "pattern",
            {
              id,
              width: 6,
              height: 6,
              patternUnits: "userSpaceOnUse",
              patternTransform: "rotate(45)",
            },
            svg("rect", { width: 2, height: 6, fill: colours[0] }),
          )
        : svg(
            "linearGradient",
            { id },
            colours.map((colour, i) =>
              svg("stop", { offset: i / (colours.length - 1), "stop-color": colour }),
            ),
          ),
    );
    return `url(#${id})`;
  }

  /** Return the background and the borders of an element.
      @type {(element: Element, style: CSSStyleDeclaration) => Element[]} */
  function boxOf(element, style) {
    const box = place(element.getBoundingClientRect());
    const fill = fillOf(style);
    /** @type {(side: "Top" | "Right" | "Bottom" | "Left") => { width: number, colour: string }} */
    const border = (side) => ({
      width: parseFloat(style[`border${side}Width`]),
      colour: style[`border${side}Color`],
    });
    const [top, right, bottom, left] = [
      border("Top"),
      border("Right"),
      border("Bottom"),
      border("Left"),
    ];
    const isFrame = top.width > 0 && left.width > 0;
    const isClear = /^rgba\(.* 0\)$|\/ 0\)$|^transparent$/.test(fill);
    const isDouble = style.borderTopStyle === "double";
    const [x, y, end, base] = [box.x, box.y, box.x + box.width, box.y + box.height];
    const lines = /** @type {const} */ ([
      [top, x, y, end, y],
      [right, end, y, end, base],
      [bottom, x, base, end, base],
      [left, x, y, x, base],
    ]);
    const thickness = isDouble ? top.width / 3 : top.width;
    /** @type {(inset: number, fill: string) => Element} */
    const frame = (inset, fill) =>
      svg("rect", {
        x: x + inset,
        y: y + inset,
        width: max(0, box.width - 2 * inset),
        height: max(0, box.height - 2 * inset),
        rx: min(parseFloat(style.borderRadius) || 0, box.height / 2),
        fill,
        stroke: isFrame && top.colour,
        "stroke-width": thickness,
        "stroke-dasharray": style.borderTopStyle === "dashed" && "4 3",
      });
    return [
      ...(isFrame || !isClear ? [frame(thickness / 2, isClear ? "none" : fill)] : []),
      ...(isDouble ? [frame(2.5 * thickness, "none")] : []),
      ...(isFrame
        ? []
        : lines
            .filter(([{ width }]) => width > 0)
            .map(([{ width, colour }, x1, y1, x2, y2]) =>
              svg("line", { x1, y1, x2, y2, stroke: colour, "stroke-width": width }),
            )),
    ];
  }

  /** Return the lines of a text as they are broken on the page.
      @type {(node: Text, style: CSSStyleDeclaration) => Element[]} */
  function textOf(node, style) {
    const fontSize = parseFloat(style.fontSize);
    if (!fontSize || !node.data.trim()) return [];
    /** @type {{ text: string, box: DOMRect }[]} */
    const lines = [];
    // Turned, as the style sheet does: the text begins below.
    const isUpright = style.writingMode === "vertical-rl";
    const part = document.createRange();
    for (const { 0: letter, index } of node.data.matchAll(/\S\p{M}*|\s+/gu)) {
      part.setStart(node, index);
      part.setEnd(node, index + letter.length);
      const box = part.getBoundingClientRect();
      const line = lines.at(-1);
      if (line && (!box.width || abs(line.box.top - box.top) < fontSize / 2 || isUpright)) {
        line.text += letter.trim() ? letter : " ";
      } else if (letter.trim()) lines.push({ text: letter, box });
      if (letter.trim()) place(box);
    }
    return lines.map(({ text, box }) => {
      const { x, y, width, height } = place(box);
      const [left, base] = isUpright
        ? [x + width / 2 + fontSize * 0.35, y + height]
        : [x, y + height / 2 + fontSize * 0.35];
      return svg(
        "text",
        {
          x: left,
          y: base,
          fill: style.color,
          "font-size": fontSize,
          "font-family": style.fontFamily,
          "font-weight": style.fontWeight,
          "font-style": style.fontStyle,
          "text-decoration": style.textDecorationLine,
          transform: isUpright && `rotate(-90 ${left} ${base})`,
        },
        text,
      );
    });
  }

  /** Return a copy of a drawing, with its style as attributes.
      @type {(drawing: Element) => Element} */
  function copyOf(drawing) {
    const copy = /** @type {Element} */ (drawing.cloneNode(true));
    const copies = [copy, ...copy.querySelectorAll("*")];
    [drawing, ...drawing.querySelectorAll("*")].forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of DRAWN_PROPERTIES) {
        copies[i].setAttribute(name, style.getPropertyValue(name));
      }
      for (const name of ["class", "href", "tabindex", "aria-label"]) {
        copies[i].removeAttribute(name);
      }
    });
    return populate(copy, { ...place(drawing.getBoundingClientRect()), overflow: "visible" }, []);
  }

  /** Return the bar of a fraction or the sign of a root of a formula, which the browser draws
      itself.
      @type {(element: Element, style: CSSStyleDeclaration) => Element[]} */
  function signOf(element, { color }) {
    const { x, y, width, height } = place(element.getBoundingClientRect());
    const line = { stroke: color, "stroke-width": 1, fill: "none" };
    if (element.localName === "msqrt") {
      return [
        svg("path", {
          ...line,
          d: `M${x} ${y + height * 0.6}L${x + 4} ${y + height}L${x + 9} ${y + 1}H${x + width}`,
        }),
      ];
    }
    return [
      svg("path", {
        ...line,
        d: `M${x} ${place(element.children[1].getBoundingClientRect()).y - 1}h${width}`,
      }),
    ];
  }

  /** @type {(node: Node) => Element[]} */
  function draw(node) {
    const parent = node.parentElement;
    if (node instanceof Text) return parent ? textOf(node, getComputedStyle(parent)) : [];
    if (
      !(node instanceof Element) ||
      node.matches(NOT_IN_PICTURE) ||
      !node.getClientRects().length
    ) {
      return [];
    }
    const style = getComputedStyle(node);
    if (style.visibility === "hidden") return [];
    if (node instanceof SVGSVGElement) return [copyOf(node)];
    if (node instanceof HTMLCanvasElement) {
      return [
        svg("image", {
          ...place(node.getBoundingClientRect()),
          href: node.toDataURL(),
          preserveAspectRatio: "none",
          "image-rendering": "pixelated",
        }),
      ];
    }
    return [
      svg(
        "g",
        { opacity: style.opacity !== "1" && style.opacity },
        boxOf(node, style),
        /^m(sqrt|frac)$/.test(node.localName) && signOf(node, style),
        [...node.childNodes].map(draw),
      ),
    ];
  }
  const drawn = draw(section);
  return populate(root, { ...size, viewBox: `0 0 ${size.width} ${size.height}` }, [
    fills,
    svg("rect", { ...size, fill: getComputedStyle(section).backgroundColor }),
    drawn,
  ]);
}

/** Save a figure as a picture, "svg" or "png".
    @type {(section: HTMLElement, key: string, format: "svg" | "png") => Promise<void>} */
export async function savePicture(section, key, format) {
  const picture = pictureOf(section);
  const text = new XMLSerializer().serializeToString(picture);
  if (format === "svg") return download(`${key}.svg`, "image/svg+xml", text);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", {
    width: round(PNG_SCALE * image.width),
    height: round(PNG_SCALE * image.height),
  });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    if (blob) download(`${key}.png`, "image/png", blob);
  });
}
