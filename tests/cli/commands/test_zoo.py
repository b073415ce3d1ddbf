import json

from tartree import zoo
from tartree.cli.commands.fit import PRESETS
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
    assert tuple(zoo.PRESETS) == PRESETS


def test_no_word_is_cut():
    """In a pipe, lines are as long as they must be; on a narrow screen each model has lines of its own."""
    import io

    from rich.console import Console

    from tartree.cli.commands.zoo import show_models

    piped = succeed("zoo").stdout
    for row in zoo.table():
        assert sum(row["purpose"] in line and row["source"] in line for line in piped.splitlines()) == 1
    for width in (60, 80, 400):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=True, width=width, markup=False, color_system=None)
        show_models(console, zoo.table())
        text = " ".join(screen.getvalue().split())
        assert "\u2026" not in text
        for row in zoo.table():
            assert row["purpose"] in text
            assert row["source"] in text
        assert max(map(len, screen.getvalue().splitlines()[:-2])) <= width


def test_a_named_model_that_takes_few_steps_is_noted(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,c\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 7 > 3]}\n" for i in range(60)))
    options = ("--out", str(tmp_path / "m"), "--force", "--no-compare", "--members", "1", "--depth", "1")
    said = succeed("fit", str(table), "--target", "c", "--preset", "dndf", *options)
    assert "the 60 epochs of dndf are 60 steps of training on 60 rows, which is few" in said.stderr
    assert "--epochs 150 takes more" in said.stderr
    assert "which is few" not in succeed("fit", str(table), "--target", "c", "--preset", "tree-1", *options).stderr
