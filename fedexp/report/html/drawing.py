"""A picture as a drawing of the page: matplotlib's SVG, made small, in the colours of the page, its methods marked."""

import io
import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

from fedexp.report.draw import style
from fedexp.report.draw.section import Picture

_INKS = {style.INK: "ink", style.QUIET: "quiet", style.RULE: "rule", style.PAPER: "card"} | {
    color.lower(): f"c{number}" for number, color in enumerate(style.COLORS)
}
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # in XML; a name may hold them
_BLANKS, _DECIMALS = re.compile(r"(?<=[A-Za-z]) |\s*\n\s*"), re.compile(r"(\.\d)\d+")
_COLOR, _FONT = re.compile("#[0-9a-f]{6}"), re.compile("font-family: [^;]*;? ?")
_SMALLEST, _LARGEST = 0.74, 1.15  # of the size that is meant; the usual 5.4 inches fit a phone of 390 pixels so
_PIXELS, _POINTS = 96, 72  # an inch


def svg(picture: Picture) -> str:
    """The drawing for an HTML page; what bears the `gid` of a method is a group with `data-m` and its label as title.

    Example:
        `<g data-m="3"><title>fedprox</title><path .../></g>`
    """
    root = ElementTree.fromstring(_FORBIDDEN.sub("", _raw_svg(picture)))
    root.remove(root[0])  # the style of matplotlib, which would hold for the whole page
    methods = {style.gid(method): method for method in picture.methods}
    used = set(re.findall(r"#(\w+)", " ".join(value for node in root.iter() for value in node.attrib.values())))
    for node in list(root.iter()):
        method = methods.get(node.get("id", ""))
        _trim(node, used)
        if method is not None:
            title = ElementTree.Element("title")
            title.text = method.label
            node.insert(0, title)
            node.set("data-m", str(method.position))
    root.attrib = {"viewBox": root.attrib["viewBox"], **_frame_attributes(picture)}
    root.extend(_tips(picture))
    return _FORBIDDEN.sub("", ElementTree.tostring(root, encoding="unicode"))


def _raw_svg(picture: Picture) -> str:
    """What matplotlib writes, the same for the same picture; ids in it are those of no other picture."""
    import matplotlib

    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.hashsalt": picture.name}):
        picture.figure.savefig(file, format="svg", metadata=nothing)
    return file.getvalue()


def _trim(node: ElementTree.Element, used: set[str]) -> None:
    """Removes namespaces, blanks, fonts, extra digits and unused ids; colours become the page's variables."""
    node.tag, node.tail = node.tag.rpartition("}")[2], None
    if node.tag != "text":
        node.text = None
    attributes = {name.rpartition("}")[2]: value for name, value in node.attrib.items()}
    if attributes.get("id") not in used:
        attributes.pop("id", None)
    if "style" in attributes:
        attributes["style"] = _COLOR.sub(lambda color: _ink(color[0]), _FONT.sub("", attributes["style"]))
    for name in () if node.tag == "image" else ("d", "x", "y", "transform"):
        if name in attributes:
            attributes[name] = _DECIMALS.sub(r"\1", _BLANKS.sub("", attributes[name]))
    node.attrib = attributes


def _ink(color: str) -> str:
    return f"var(--{_INKS[color]})" if color in _INKS else color


def _tips(picture: Picture) -> Iterator[ElementTree.Element]:
    """A strip over the first axes for each text of `picture.data.tips`, as wide as the way to its neighbours."""
    if not picture.data.tips:
        return
    axes, scale = picture.figure.axes[0], _POINTS / picture.figure.dpi
    centres = [scale * axes.transData.transform((x, axes.get_ylim()[0]))[0] for x, _ in picture.data.tips]
    box = axes.bbox
    edges = [scale * box.x0, *(sum(pair) / 2 for pair in pairwise(centres)), scale * box.x1]
    top = scale * (picture.figure.bbox.height - box.y1)
    for (start, end), (_, text) in zip(pairwise(edges), picture.data.tips, strict=True):
        numbers = {"x": start, "y": top, "width": end - start, "height": scale * box.height}
        strip = ElementTree.Element("rect", {name: f"{number:.1f}" for name, number in numbers.items()})
        strip.set("class", "tip")
        ElementTree.SubElement(strip, "title").text = text
        yield strip


def _frame_attributes(picture: Picture) -> dict[str, str]:
    """The name of a drawing for who cannot see it, and how far it may shrink and grow."""
    width = picture.figure.get_figwidth() * _PIXELS
    return {
        "role": "img",
        "aria-label": f"{picture.title}. {picture.caption} {picture.data.text}".replace("  ", " "),
        "style": f"min-width: {_SMALLEST * width:.0f}px; max-width: {_LARGEST * width:.0f}px",
    }
