import json

from tartree import cli, zoo
from tests.cli.conftest import succeed


def test_the_table_names_every_model():
    text = succeed("zoo").stdout
    names = {line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")}
    assert set(zoo.PRESETS) <= names
    assert 'zoo.make("sdt")' in text


def test_json():
    found = json.loads(succeed("zoo", "--json").stdout)["models"]
    assert found == zoo.table()
    lr = next(row for row in found if row["name"] == "lr")
    assert (lr["D"], lr["L"], lr["H"]) == (0, 1, None)


def test_fit_knows_every_name():
    assert tuple(zoo.PRESETS) == cli.PRESETS
