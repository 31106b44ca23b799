"""Flow charts in Mermaid become pictures by Graphviz, while the site is built.

Mermaid itself is JavaScript that would have to come from the network. flow_charts.py reads the part of its language
that the pages use; a line of any other form is an error of the build.
"""

from __future__ import annotations

from docutils import nodes
from flow_charts import dot_of
from sphinx.ext.graphviz import graphviz
from sphinx.transforms import SphinxTransform


class Pictures(SphinxTransform):
    default_priority = 200

    def apply(self) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") == "mermaid":
                picture = graphviz()
                picture["code"], picture["options"], picture["alt"] = dot_of(block.astext()), {}, "flow chart"
                block.replace_self(picture)


def setup(app):
    app.setup_extension("sphinx.ext.graphviz")
    app.add_transform(Pictures)
    return {"parallel_read_safe": True}
