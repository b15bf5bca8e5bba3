"""What somebody sees who edits our files: yaml-language-server, which editors use, finds no fault in those of the tree,
tells what each key is, offers keys and values, and marks a slip.

    python -m tests.editor.run
"""

import glob
import os
import re
import sys

from tests.editor.lsp import Editor
from tests.support import packages
from tmkb.schema import export, metaschema, reader
from tmkb.server import sources

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.path.join("node_modules", "yaml-language-server", "bin", "yaml-language-server")
FOLDERS = ("schemas/*", "schemas/lifecycle/*", "schemas/protocol/*", "schemas/servers/**/*", "patterns/**/*")
FOLDERS += ("conformance/*/*", "conformance/requirements", "docs/examples/**/*")  # templates have holes
NEW = "schemas/servers/tmkb/tools/new.yaml"
TEXT = """\
# yaml-language-server: $schema=../../../editor/tool.json
kind: tool
descripton: Slip
task: {support: }
provider: HERE
input:
  type: object
""".replace("HERE", "")


def address(path):
    """The address of a file of the tree."""
    return f"file://{packages.ROOT}/{path}"


def faults(editor):
    """Whatever is wrong with a file of the tree; and those files, each with its address."""
    paths = [path for form in FOLDERS for path in glob.glob(f"{form}.yaml", root_dir=packages.ROOT, recursive=True)]
    own = os.path.join("examples", "provider")  # names a provider that only its own package has
    paths = [path for path in paths if own not in path]
    texts = {address(path): packages.read(os.path.join(packages.ROOT, path)) for path in paths}
    told = editor.opened(texts)
    return [f"{uri}: {sentence}" for uri, said in told.items() for sentence in said], list(texts.items())


def untold(editor, files):
    """Each key at the top of a file whose description is not shown; and how many were looked at."""
    missing, count = [], 0
    for uri, text in files:
        lines = text.splitlines()
        schema = os.path.join(os.path.dirname(uri.removeprefix("file://")), lines[0].removeprefix(metaschema.POINTER))
        keys = reader.read(schema).mapping()["properties"]
        for number, line in enumerate(lines):
            if said := keys.get(line.partition(":")[0], {}).get("description"):
                count += 1
                if words(said) not in words(editor.hover(uri, number, 1)):
                    missing.append(f"{uri}:{number + 1}: the description is not shown")
    return missing, count


def words(text):
    """``text`` without what its Markdown adds."""
    return " ".join(re.findall(r"\w+", text.replace("\\", "")))


def slips(editor):
    """What is not as it has to be while a new tool is written."""
    (told,) = editor.opened({address(NEW): TEXT}).values()
    keys = editor.offers(address(NEW), 2, 3)
    values = editor.offers(address(NEW), 3, TEXT.splitlines()[3].index("}"))
    operations = editor.offers(address(NEW), 4, len("provider: "))
    return [
        *(["the slip is not marked"] if not any("descripton" in sentence for sentence in told) else []),
        *(["keys are not offered"] if not {"description", "annotations", "log"} <= set(keys) else []),
        *(["values are not offered"] if not {"optional", "required"} <= set(values) else []),
        *(["operations are not offered"] if not {"script.steps", "knowledge.query"} <= set(operations) else []),
    ]


def main():
    """Print what is wrong; 1 where anything is."""
    place = packages.for_node(HERE)
    export.write(export.EDITOR, sources.names())
    with Editor([packages.node(), os.path.join(place, SERVER), "--stdio"], packages.with_node(os.environ)) as editor:
        wrong, files = faults(editor)
        missing, keys = untold(editor, files)
        wrong += [*missing, *slips(editor)]
    print("".join(f"{line}\n" for line in wrong) + f"{len(files)} files, {keys} keys, {len(wrong)} faults.")
    return 1 if wrong or not files or not keys else 0


if __name__ == "__main__":
    sys.exit(main())
