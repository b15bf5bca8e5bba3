"""A search does not take many times as long as the barest walk of the same tree."""

import pytest

from tests.bench import sysmcp_files
from tests.bench.timing import least
from tmkb.sysmcp.files import beneath

pytestmark = pytest.mark.full


@pytest.mark.skipif(not beneath.IS_SUPPORTED, reason="files are served on Linux only")
def test_a_search_beside_the_barest_walk(tmp_path):
    sysmcp_files.plant(str(tmp_path), folders=200, files=5000)
    files = sysmcp_files.Files({**sysmcp_files.SETTINGS, "roots": {"root": str(tmp_path)}}, None)
    floor = least(lambda: sysmcp_files.floor(str(tmp_path)))

    assert least(lambda: sysmcp_files.driven(files.search(pattern="*7.log"))) < 8 * floor
    assert least(lambda: sysmcp_files.driven(files.search(pattern="**/*7.log"))) < 16 * floor
