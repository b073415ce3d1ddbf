"""The page in a real browser: it computes what Python computes, and does what a reader asks of it."""

import re

import numpy as np
import pandas as pd
import pytest

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain.page import Validation, report_data, write_report
from tartree.explain.text.number_text import at_most

pytestmark = pytest.mark.browser

EVIL = "<script>alert(1)</script>"
EVIL_CLASS = "</script><img src=x onerror=alert(2)>"
ODD = "a \"quoted\" & 'odd' \u2028 name 🫀"


def measurements(n_rows=160, seed=0):
    """Three columns of numbers, and a class that follows from them."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(draw.normal([50, 5, 100], [12, 3, 30], (n_rows, 3)), columns=["age", "crp", "height"])
    score = (table.age - 50) / 12 + (table.crp - 5) / 3
    return table, np.where(score > 1, "ill", np.where(score < -1, "fit", "well"))


def patients(n_rows=160, seed=0):
    """Numbers, whole numbers, levels, truth values and dates, with gaps in most, and two classes."""
    draw = np.random.default_rng(seed)
    table, _ = measurements(n_rows, seed)
    table["children"] = draw.integers(0, 4, n_rows)
    table["ward"] = draw.choice(["A", "B", "C", "rare"], n_rows, p=[0.5, 0.3, 0.19, 0.01])
    table["smoker"] = draw.choice([True, False], n_rows)
    table["visit"] = pd.Timestamp("2023-05-01") + pd.to_timedelta(draw.integers(0, 300, n_rows), unit="D")
    table.loc[::7, "crp"] = np.nan
    table.loc[::11, "ward"] = None
    table.loc[::13, "visit"] = pd.NaT
    sick = (table.age > 52) ^ (table.ward == "B")
    return table, np.where(sick, "malignant", "benign")


def many_measurements(n_rows=160, seed=0):
    """Twelve columns, so that a node has more terms than stand in one column of its card."""
    table, y = measurements(n_rows, seed)
    noise = np.random.default_rng(seed + 1).normal(size=(n_rows, 9))
    return table.join(pd.DataFrame(noise, columns=[f"property {k}" for k in range(9)])), y


def fitted(estimator, data):
    table, y = data
    if isinstance(estimator, TartRegressor):
        y = table["age"].to_numpy() * 3 + np.arange(len(table)) % 5
    return estimator.set_params(epochs=8, random_state=0).fit(table, y), table, y


MODELS = {
    "soft tree": lambda: fitted(TartClassifier(readable=False), measurements()),
    "shared children": lambda: fitted(TartClassifier(depth=3, window=3, stride=2), measurements()),
    "31 shared leaves": lambda: fitted(TartClassifier(depth=4, window=3, stride=2), measurements()),
    "64 leaves": lambda: fitted(TartClassifier(depth=6), many_measurements()),
    "members": lambda: fitted(TartClassifier(depth=2, members=3), measurements()),
    "networks": lambda: fitted(TartClassifier(depth=2, decision_layers=2, leaf_layers=3, hidden=6), measurements()),
    "constant leaves": lambda: fitted(TartClassifier(depth=2, leaf_layers=0, window=4, stride=3), measurements()),
    "sparse branching": lambda: fitted(TartClassifier(depth=2, window=3, branching="entmax15"), measurements()),
    "depth 0": lambda: fitted(TartClassifier(depth=0), measurements()),
    "mixed table": lambda: fitted(TartClassifier(depth=3), patients()),
    "quantile": lambda: fitted(TartClassifier(depth=2, numeric="quantile"), patients()),
    "regression": lambda: fitted(TartRegressor(depth=2), patients()),
    "readable": lambda: fitted(TartClassifier(readable=True), patients()),
    "readable, three classes": lambda: fitted(TartClassifier(readable=True, max_features=2), measurements()),
    "readable regression": lambda: fitted(TartRegressor(readable=True), patients()),
    "single leaf regression": lambda: fitted(TartRegressor(depth=2, members=2, selection="single"), measurements()),
}


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """A function that writes the report of a model once: (path, model, table, y)."""
    folder, done = tmp_path_factory.mktemp("reports"), {}

    def make(name):
        if name not in done:
            model, table, y = MODELS[name]()
            path = folder / f"{name.replace(' ', '-')}.html"
            write_report(model, table, y, path, rows=100, sizes=())
            done[name] = path, model, table, y
        return done[name]

    return make


def computed(page, place, model=0):
    found = page.evaluate(f"window.tartree.predictRow({place}, {model})")
    if isinstance(found[0], dict):
        return [target[name] for target in found for name in ("value", "std", "low", "high")]
    return found


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_python(report, visit, name):
    path, model, table, _ = report(name)
    page = visit(path)
    places = page.evaluate("window.tartree.report.rows.numbers")
    assert len(places) == 100
    rows = table.iloc[places]
    found = np.array([computed(page, place) for place in range(100)])
    if isinstance(model, TartRegressor):
        mean, std = model.predict(rows, return_std=True)
        wanted = np.column_stack([mean, std, model.predict_quantiles(rows, [0.05, 0.95])])
        wanted, found = wanted / model.target_scale_, found / model.target_scale_
    else:
        wanted = model.predict_proba(rows)
    np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=0)


def shown_share(page):
    return float(re.search(r"\(([\d.]+)%\)", page.locator("#prediction .answer").inner_text())[1]) / 100


def test_click_a_node(report, visit):
    page = visit(report("soft tree")[0])
    page.locator("[role=treeitem]", has_text="Leaf 3").first.click()
    panel = page.locator("#node-details")
    assert panel.locator("h3").inner_text() == "Leaf 3"
    assert "of 160 have their most probable path here" in panel.inner_text()
    page.locator("[role=treeitem]").first.click()
    assert panel.locator("h3").inner_text() == "Decision 1"
    assert "Upper branch when" in panel.inner_text()
    assert panel.locator(".terms li").count() == 3
    assert page.locator("[aria-selected=true]").count() == 1


def test_choose_a_row(report, visit):
    path, model, table, y = report("soft tree")
    page = visit(path)
    assert page.locator(".row-links path").count() == 0
    page.fill("#row-number", "14")  # rows count from 1
    page.press("#row-number", "Enter")
    number = page.evaluate("window.tartree.report.rows.numbers.indexOf(13)")
    if number < 0:
        assert page.get_attribute("#row-number", "aria-invalid") == "true"
        assert page.locator("#row-state").inner_text() == "no such row on this page"
        page.click("[aria-label='Next row']")
    place = int(page.input_value("#row-number")) - 1
    probabilities = model.predict_proba(table.iloc[[place]])[0]
    assert page.locator("#answer").inner_text() == model.classes_[probabilities.argmax()]
    assert shown_share(page) == pytest.approx(probabilities.max(), abs=0.006)
    assert f"In the data: {y[place]}" in page.locator("#prediction").inner_text()
    assert page.locator(".row-links path").count() >= 4  # a path lights up
    assert page.input_value("#value-0") == str(table["age"].iloc[place])
    page.click("#row-none")
    assert page.locator(".row-links path").count() == 0


def test_type_values_and_gaps(report, visit):
    _, model, table, _ = report("mixed table")
    page = visit(report("mixed table")[0])
    page.click("#row-typical")
    changed = dict(zip(table.columns, page.evaluate("window.tartree.report.columns.map(c => c.typical)"), strict=True))
    changed["visit"] = pd.Timestamp(changed["visit"], unit="s")
    names = list(table.columns)

    def check(**values):
        changed.update(values)
        frame = pd.DataFrame([changed]).astype({"crp": float})
        wanted = model.predict_proba(frame)[0]
        assert page.locator("#answer").inner_text() == model.classes_[wanted.argmax()]
        assert shown_share(page) == pytest.approx(wanted.max(), abs=0.006)

    check()
    page.fill(f"#value-{names.index('age')}", "71.5")
    check(age=71.5)
    page.fill(f"#value-{names.index('crp')}", "")
    check(crp=np.nan)
    page.select_option(f"#value-{names.index('ward')}", label="B")
    check(ward="B")
    page.select_option(f"#value-{names.index('ward')}", label="missing")
    check(ward=None)
    page.select_option(f"#value-{names.index('ward')}", label="(another level)")
    check(ward="a level that fit did not see")
    page.select_option(f"#value-{names.index('smoker')}", label="true")
    check(smoker=True)
    page.fill(f"#value-{names.index('visit')}", "2023-11-30")
    check(visit=pd.Timestamp("2023-11-30"))
    before = page.locator("#prediction").inner_text()
    page.fill(f"#value-{names.index('age')}", "old")
    assert "not a number" in page.locator("#values").inner_text()
    assert page.locator("#prediction").inner_text() == before
    page.fill(f"#value-{names.index('age')}", "71,5")  # a decimal comma
    assert page.locator("#prediction").inner_text() == before
    page.fill(f"#value-{names.index('age')}", "700")
    assert "outside the data's range" in page.locator("#values").inner_text()
    assert "changed" in page.locator("#row-state").inner_text()


def test_keyboard(report, visit):
    page = visit(report("soft tree")[0])
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "treeitem":
            break

    def focused():
        return page.evaluate("document.activeElement.getAttribute('aria-label')").split(",")[0]

    assert focused() == "Decision 1"
    heads = []
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "End", "Home"):
        page.keyboard.press(key)
        heads.append(focused())
        assert page.locator("#node-details h3").inner_text() == focused()
    assert heads == ["Decision 2", "Decision 3", "Decision 6", "Decision 5", "Decision 2", "Leaf 16", "Decision 1"]
    n_nodes = page.locator("[role=treeitem]").count()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")  # folds
    assert page.locator("[role=treeitem]").count() == n_nodes - 14
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.keyboard.press("Enter")  # opens
    assert page.locator("[role=treeitem]").count() == n_nodes
    scale = "document.querySelector('.tree > g').getAttribute('transform')"
    before = page.evaluate(scale)
    page.keyboard.press("+")
    assert page.evaluate(scale) != before
    assert page.locator("[role=treeitem][tabindex='0']").count() == 1


def test_zoom_and_pan(report, visit):
    page = visit(report("soft tree")[0])
    where = "document.querySelector('.tree > g').getAttribute('transform')"
    box = page.locator("#canvas").bounding_box()
    start = page.evaluate(where)
    page.click("#zoom-in")
    zoomed = page.evaluate(where)
    assert zoomed != start
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 60, steps=4)
    page.mouse.up()
    moved = page.evaluate(where)
    assert moved != zoomed
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(
        "before => document.querySelector('.tree > g').getAttribute('transform') !== before", arg=moved
    )
    page.click("#zoom-fit")
    assert page.evaluate(where) == start


def test_simplify(visit, tmp_path, monkeypatch):
    model, table, y = fitted(TartClassifier(depth=2), measurements())
    small = explain.simplification_path(model, table, [2, 1])  # once, for it takes seconds
    monkeypatch.setattr(report_data, "simplification_path", lambda *given: [smaller.model_ for smaller in small])
    write_report(model, table, y, tmp_path / "page.html", rows=100, sizes=[2, 1])
    page = visit(tmp_path / "page.html")
    assert "The whole model: 4 leaves" in page.locator("#certificate").inner_text()
    page.click("[aria-label='Next row']")
    slider = page.locator("#simplify")
    slider.focus()
    rows = table.iloc[page.evaluate("window.tartree.report.rows.numbers")]
    for place, smaller in enumerate(small, start=1):
        page.keyboard.press("ArrowLeft")
        n_leaves = smaller.get_n_leaves()
        assert slider.get_attribute("aria-valuetext") == ("1 leaf of 4" if n_leaves == 1 else f"{n_leaves} leaves of 4")
        said = page.locator("#certificate").inner_text()
        assert f"{n_leaves} of 4" in said
        assert at_most(smaller.certificate_.measured, 4) in said
        assert f"up to {at_most(smaller.certificate_.sampled, 4)}" in said
        bound = smaller.certificate_.bound
        assert ("no bound below 1" if bound >= 1 else f"≤ {at_most(bound, 4)}") in said
        assert page.locator("[role=treeitem].leaf").count() == n_leaves
        found = np.array([computed(page, row, place) for row in range(100)])
        np.testing.assert_allclose(found, smaller.predict_proba(rows), atol=1e-5)
        wanted = smaller.predict_proba(rows.iloc[[0]])[0]
        assert page.locator("#answer").inner_text() == model.classes_[wanted.argmax()]
        assert shown_share(page) == pytest.approx(wanted.max(), abs=0.006)
        assert "The whole model" in page.locator("#prediction").inner_text()
    slider.evaluate("slider => { slider.value = slider.max; slider.dispatchEvent(new Event('input')); }")
    assert page.locator("[role=treeitem].leaf").count() == 4


def test_members(report, visit):
    page = visit(report("members")[0])
    page.click("[aria-label='Next row']")
    before, title = page.locator("#prediction .bars").inner_text(), page.locator(".terms").inner_text()
    page.select_option("#member", label="2 of 3")
    assert page.locator(".terms").inner_text() != title
    assert page.locator("#prediction .bars").inner_text() == before  # the mean of all members


def test_rows_of_a_cell(report, visit):
    path, model, table, y = report("soft tree")
    page = visit(path)
    page.locator(".cell.good button").first.click()
    chosen = page.locator("#row-filter option:checked").inner_text()
    label = model.classes_[0]
    assert chosen.startswith(f"True {label}, predicted {label}")
    row = int(page.input_value("#row-number")) - 1
    assert y[row] == label
    assert model.predict(table.iloc[[row]])[0] == label


def test_shared_children_and_several_branches(report, visit):
    page = visit(report("shared children")[0])
    assert page.locator("#tree-head").inner_text() == "The graph"
    assert page.locator("[role=treeitem]").count() == 1 + 3 + 7 + 15
    page.click("[aria-label='Next row']")
    assert page.locator("#node-details details").count() == 3  # one sum a branch
    assert page.locator("[aria-label*='2 parents']").count() == 2 + 6


@pytest.mark.parametrize(
    ("name", "width"), [("soft tree", 1280), ("31 shared leaves", 1280), ("64 leaves", 1280), ("64 leaves", 800)]
)
def test_the_first_view_shows_all_that_is_drawn(report, visit, name, width):
    """Nothing is cut off, the width is used, and the letters are legible."""
    page = visit(report(name)[0], width=width)
    canvas = page.locator("#canvas").bounding_box()
    boxes = [item.bounding_box() for item in page.locator("[role=treeitem] .card-box").all()]
    left, right = min(box["x"] for box in boxes), max(box["x"] + box["width"] for box in boxes)
    top, bottom = min(box["y"] for box in boxes), max(box["y"] + box["height"] for box in boxes)
    assert canvas["x"] <= left < canvas["x"] + 20
    assert canvas["x"] + canvas["width"] - 20 < right <= canvas["x"] + canvas["width"]
    assert canvas["y"] <= top
    assert bottom <= canvas["y"] + canvas["height"]
    assert page.locator(".tree.illegible").count() == 0
    before = page.evaluate("document.querySelector('.tree > g').getAttribute('transform')")
    page.click("#zoom-fit")
    assert page.evaluate("document.querySelector('.tree > g').getAttribute('transform')") == before


# The free height between each line of a node and the one above it, or the bar below the last, in units of the drawing.
GAPS_BETWEEN_LINES = """() => {
  const pen = document.createElement("canvas").getContext("2d");
  const size = (item, text) => {
    const style = getComputedStyle(item);
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    return pen.measureText(text);
  };
  return [...document.querySelectorAll(".tree .node")].map((node) => {
    const lines = [...node.querySelectorAll("text")].map((item) => {
      const y = Number(item.getAttribute("y"));
      return [y - size(item, "Hdb8").actualBoundingBoxAscent, y + size(item, "gjpqy").actualBoundingBoxDescent];
    });
    const tops = [...new Set(lines.map(([top]) => top))].sort((a, b) => a - b);
    const bottoms = [...new Set(lines.map(([, bottom]) => bottom))].sort((a, b) => a - b);
    const bar = Math.min(...[...node.querySelectorAll(".mix")].map((item) => Number(item.getAttribute("y"))));
    return Math.min(...[...tops.slice(1), bar].map((top, place) => top - bottoms[place]));
  });
}"""


@pytest.mark.parametrize(
    ("name", "width"), [("soft tree", 1280), ("31 shared leaves", 1280), ("64 leaves", 1280), ("64 leaves", 360)]
)
def test_lines_of_a_node_do_not_touch(report, visit, name, width):
    page = visit(report(name)[0], width=width)
    for _ in range(2):  # all rows, then one of them
        gaps = page.evaluate(GAPS_BETWEEN_LINES)
        assert len(gaps) > 20
        assert min(gaps) > 0.5
        page.click("[aria-label='Next row']")


def test_columns_of_a_node_cut_nothing_in_two(report, visit):
    page = visit(report("64 leaves")[0])
    page.click("[aria-label='Next row']")
    for node in ("decision", "leaf"):
        page.locator(f"[role=treeitem].{node}").first.click()
        panel = page.locator("#node-details")
        assert panel.locator(".terms li").count() >= 6
        places = panel.locator("h3, p, li, dl").evaluate_all("all => all.map((item) => item.getClientRects().length)")
        assert set(places) <= {0, 1}  # 0 within what is folded
        columns = panel.locator(".terms li").evaluate_all("all => all.map((item) => item.getBoundingClientRect().x)")
        assert len(set(columns)) > 1
        sides = panel.locator(".sides").first.bounding_box()
        assert sides["x"] == pytest.approx(panel.locator(".terms li").first.bounding_box()["x"], abs=1)


def test_regression(report, visit):
    path, model, table, _ = report("regression")
    page = visit(path)
    page.locator(".plot .dot").nth(7).dispatch_event("click")
    row = int(page.input_value("#row-number")) - 1
    low, high = model.predict_quantiles(table.iloc[[row]], [0.05, 0.95])[0]
    found = page.locator("#prediction").inner_text()
    numbers = [float(text.replace(",", "")) for text in re.search(r"interval: ([\d.,]+) to ([\d.,]+);", found).groups()]
    np.testing.assert_allclose(numbers, [low, high], rtol=1e-3)
    assert float(page.locator("#answer").inner_text()) == pytest.approx(model.predict(table.iloc[[row]])[0], rel=1e-3)
    assert "In the data" in found


@pytest.mark.parametrize("name", ["soft tree", "shared children", "mixed table", "regression"])
def test_narrow_window(report, visit, name):
    page = visit(report(name)[0], width=360, height=700)
    page.click("[aria-label='Next row']")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".tree.outline").count() == 1
    boxes = [item.bounding_box() for item in page.locator("[role=treeitem] .card-box").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 360 for box in boxes)
    assert all(upper["y"] + upper["height"] <= lower["y"] for upper, lower in zip(*_sorted_pairs(boxes), strict=True))
    page.locator("[role=treeitem]").nth(1).click()
    page.locator("#values-card summary").click()
    page.locator("#value-0").fill("60")
    assert "changed" in page.locator("#row-state").inner_text()


def _sorted_pairs(boxes):
    boxes = sorted(boxes, key=lambda box: box["y"])
    return boxes[:-1], boxes[1:]


def test_dark_mode(report, visit):
    page = visit(report("soft tree")[0], color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.select_option("#theme", "light")
    light = page.evaluate(colour)
    assert brightness(dark) < 60 < 200 < brightness(light)
    assert brightness(page.evaluate("getComputedStyle(document.body).color")) < 100
    page.select_option("#theme", "dark")
    assert page.evaluate(colour) == dark
    assert brightness(page.evaluate("getComputedStyle(document.body).color")) > 200


def brightness(colour):
    return max(map(float, re.findall(r"[\d.]+", colour)[:3]))


def test_printing(report, visit):
    page = visit(report("soft tree")[0], color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#toolbar").is_visible()
    assert page.locator("#canvas svg").is_visible()
    assert brightness(page.evaluate("getComputedStyle(document.body).color")) < 100


# Of A4 in pixels, within margins of 12 mm.
SHEET = (703, 1031)
# Right and bottom ends of what is printed and does not scroll, in pixels of the page.
ENDS = """() => [...document.querySelectorAll("main *, header *")]
  .filter((item) => item.checkVisibility({ visibilityProperty: true }) && !item.closest(".unseen, title"))
  .map((item) => ({ name: `${item.tagName} ${item.getAttribute("class")}`, box: item.getBoundingClientRect() }))
  .filter(({ box }) => box.width)
  .map(({ name, box }) => ({ name, left: box.left, right: box.right, height: box.height }))"""


def credits():
    """A table with long names and levels, as on loans."""
    table, y = measurements()
    levels = ["purchase of a used car, financed by the dealer", "radio, television and other domestic appliances"]
    table["purpose of the loan as stated in the application"] = np.random.default_rng(0).choice(levels, len(table))
    return table.rename(columns={"age": "balance of the existing checking account"}), np.where(
        y == "ill", "bad: was not paid back in time", "good"
    )


@pytest.mark.parametrize(
    ("estimator", "data", "width"),
    [
        (TartClassifier(depth=2), credits, 1280),
        (TartClassifier(depth=4), credits, 1280),
        (TartClassifier(depth=6), credits, 1280),
        (TartClassifier(depth=6), credits, 1920),
        (TartClassifier(depth=4, window=3, stride=2), measurements, 1280),
        (TartRegressor(depth=3), patients, 1280),
    ],
    ids=["depth 2", "depth 4", "depth 6", "depth 6, wide", "shared children", "regression"],
)
def test_nothing_is_cut_off_on_paper(visit, tmp_path, estimator, data, width):
    """A sheet is laid out without a script: what was drawn for the screen must fit it as it is."""
    model, table, y = fitted(estimator, data())
    write_report(model, table, y, tmp_path / "page.html", sizes=())
    page = visit(tmp_path / "page.html", width=width, without_resizing=True)
    page.click("[aria-label='Next row']")
    page.click("#zoom-in")  # what is out of sight on the screen is on paper, too
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": SHEET[0], "height": SHEET[1]})
    found = page.evaluate(ENDS)
    assert len(found) > 100
    outside = [own for own in found if own["left"] < -0.5 or own["right"] > SHEET[0] + 0.5]
    assert not outside
    leaves = page.locator("[role=treeitem] .card-box").evaluate_all(
        "all => all.map((item) => item.getBoundingClientRect()).map((own) => [own.x, own.right, own.y, own.bottom])"
    )
    canvas = page.locator("#canvas svg").bounding_box()
    assert len(leaves) == page.locator("[role=treeitem]").count() >= 7
    for left, right, top, bottom in leaves:
        assert canvas["x"] - 1 <= left < right <= canvas["x"] + canvas["width"] + 1
        assert canvas["y"] - 1 <= top < bottom <= canvas["y"] + canvas["height"] + 1
    assert canvas["height"] < SHEET[1] - 80
    assert max(right for _, right, _, _ in leaves) - min(left for left, *_ in leaves) > 0.5 * SHEET[0]
    assert page.locator(".card-title").first.is_visible()
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert re.match(rf"0 0 {page.locator('#canvas').evaluate('own => own.clientWidth')} ", viewbox(page))
    assert page.pdf(format="A4").startswith(b"%PDF")


def viewbox(page):
    return page.locator("#canvas svg").get_attribute("viewBox")


def test_data_is_text(visit, tmp_path):
    """Names and levels from the data never become markup, script or the end of one."""
    table, y = patients(80)
    table = table.rename(columns={"age": EVIL, "crp": "</script>", "height": ODD})
    table["ward"] = table["ward"].map({"A": EVIL, "B": EVIL_CLASS, "C": ODD})
    labels = np.where(y == "malignant", EVIL_CLASS, "\u2029<!--<script>")
    model = TartClassifier(depth=2, epochs=3, random_state=0).fit(table, labels)
    model.target_name_ = "<b>target</b>"
    path = tmp_path / "odd.html"
    write_report(model, table, labels, path, sizes=())
    page = visit(path)
    page.click("[aria-label='Next row']")
    for item in page.locator("[role=treeitem]").all():
        item.click()
    assert page.title() == "A tree for <b>target</b>"
    labels = page.locator(".field label").all_inner_texts()
    assert labels[:2] == [EVIL, "</script>"]
    assert "🫀" in labels[2]
    assert page.locator("#answer").inner_text().strip("\u2029") in {EVIL_CLASS, "<!--<script>"}
    assert EVIL_CLASS in page.locator(".confusion").inner_html().replace("&lt;", "<").replace("&gt;", ">")
    assert page.evaluate("document.scripts.length") == 2
    assert page.locator("img").count() == 0
    found = np.array([computed(page, place) for place in range(80)])
    np.testing.assert_allclose(found, model.predict_proba(table), atol=1e-5)


def test_a_large_tree_folds_small_branches(visit, tmp_path):
    table, y = measurements()
    model = TartClassifier(depth=8, epochs=2, random_state=0).fit(table, y)
    path = tmp_path / "large.html"
    write_report(model, table, y, path, rows=100, sizes=())
    page = visit(path)
    shown = page.locator("[role=treeitem]").count()
    assert 20 <= shown <= 80
    folded = page.locator("[role=treeitem].folded").first
    folded.click()
    page.locator("#node-details .fold").click()
    assert page.locator("[role=treeitem]").count() == shown + 2
    page.click("[aria-label='Next row']")  # the row's own path is opened
    leaf = page.locator("#prediction .path li").last.locator("button").inner_text()
    assert page.locator(f"[role=treeitem][aria-label^='{leaf},']").count() == 1
    page.select_option("#budget", "256")
    assert page.locator("[role=treeitem]").count() == 511
    page.click("#zoom-fit")  # everything
    canvas, drawn = page.locator("#canvas").bounding_box(), page.locator(".tree > g").bounding_box()
    assert canvas["y"] <= drawn["y"] + 1
    assert drawn["y"] + drawn["height"] <= canvas["y"] + canvas["height"] + 1


@pytest.mark.parametrize("name", ["soft tree", "regression"])
def test_without_rows_and_truth(report, visit, tmp_path, name):
    """Values can still be typed."""
    _, model, table, y = report(name)
    for truth in (y, None):
        path = tmp_path / f"{truth is None}.html"
        write_report(model, table, truth, path, rows=0, sizes=())
        page = visit(path)
        page.click("[aria-label='Next row']")
        page.fill("#value-0", "60")
        assert page.locator("#answer").inner_text()
        assert page.locator("#charts .card").count() == (1 if truth is None else 3)


def test_a_model_with_code_of_its_own(visit, tmp_path):
    """Drawn and described, but not computed."""
    from tests.explain.page.test_report_data import opaque_model

    model, table, y = opaque_model()
    path = tmp_path / "opaque.html"
    write_report(model, table, y, path)
    page = visit(path)
    assert "cannot be computed here" in page.locator("#prediction").inner_text()
    assert not page.locator("#values-card").is_visible()
    page.locator("[role=treeitem]").nth(1).click()
    assert page.locator("#node-details h3").inner_text() == "Decision 2"


def test_held_out_rows_are_said_first(browser, tmp_path):
    model, table, y = fitted(TartClassifier(depth=1), measurements())
    said = Validation(
        "accuracy", 0.688, 0.021, 4, "Chosen: the best.", ("leaves", "structure"), (("1", "a"), ("2", EVIL)), 1
    )
    write_report(model, table, y, tmp_path / "page.html", sizes=(), validation=said)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    tiles = page.locator("#summary-tiles .tile").all_inner_texts()
    assert tiles[0].split("\n")[:2] == ["Cross-validated accuracy", "0.688"]
    assert "± 0.021" in tiles[0]
    assert next(tile for tile in tiles if "Accuracy" in tile).startswith("Accuracy on training rows")
    assert "accuracy 0.688 ± 0.021" in page.locator("#validation-words").inner_text()
    assert page.locator("#validation-table tr[aria-current]").inner_text().split("\t") == ["2", EVIL]
    write_report(model, table, y, tmp_path / "page.html", sizes=())
    page.reload()
    assert page.locator("#summary-tiles .tile").first.inner_text().startswith("Accuracy\n")
    assert not page.locator("#validation").is_visible()
    page.close()


def test_fields_of_times_stay_within_their_place(browser, tmp_path):
    table, y = measurements()
    table["when"] = pd.Timestamp("2020-05-09 01:02:03") + pd.to_timedelta(np.arange(len(table)) * 86_401, unit="s")
    model = TartClassifier(depth=1, epochs=2, random_state=0).fit(table[["when", "age", "crp"]], y)
    write_report(model, table[["when", "age", "crp"]], y, tmp_path / "page.html", sizes=())
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    wider = "[...document.querySelectorAll('.field')].map((field) => field.scrollWidth - field.clientWidth)"
    assert page.evaluate(wider) == [0, 0, 0]
    page.close()


def test_the_model_for_all_rows_is_shown_once(report, visit):
    path, model, _, _ = report("readable")
    page = visit(path)
    root = explain.view(model, max_terms=40).members[0].corrections[0][0]
    figures = page.locator("#shared figure")
    assert figures.count() == len(root.effects)
    drawn = page.locator("#shared figcaption").all_inner_texts()
    assert sorted(drawn) == sorted(effect.name for effect in root.effects)
    for effect in root.effects:
        figure = figures.nth(drawn.index(effect.name))
        spoken = figure.locator("svg").get_attribute("aria-label")
        assert spoken.startswith(f"{effect.name}: ")
        assert spoken.count(" for ") == len(effect.levels) + (effect.missing is not None)
        assert spoken.count(" at ") == len(effect.points)
        assert figure.locator(".rows").count() >= 2
        assert figure.locator("path.effect-line").count() == (1 if effect.points else 0)


@pytest.mark.parametrize("name", ["readable", "readable, three classes", "readable regression"])
def test_details_show_what_leaves_change(report, visit, name):
    path, model, table, y = report(name)
    page = visit(path)
    tree = explain.view(model, table, y, max_terms=40)
    page.locator("#row-choice input").first.fill("3")
    page.locator("#row-choice input").first.press("Enter")
    corrections = tree.members[0].corrections
    functions = 3 if name == "readable, three classes" else 1
    for leaf in tree.leaves:
        page.locator(f"[role=treeitem][aria-label^='Leaf {leaf.leaf + 1},']").click()
        number, path_numbers = leaf.number, []
        while number:
            path_numbers.append(number)
            number = tree.nodes[number].parents[0]
        changed = {e.column for n in path_numbers for e in corrections[n][0].effects}
        details = page.locator("#node-details")
        if not any(f.n_effects or f.constant for n in path_numbers for f in corrections[n]):
            assert "Predicts as the model for all rows." in details.inner_text()
        elif functions == 1:
            assert details.locator("figure").count() == min(6, len(changed))
    page.locator("[role=treeitem][aria-level='1']").click()
    condition = tree.members[0].conditions[0]
    text = page.locator("#node-details .conditions").inner_text()
    if condition.functions[0].is_one_column:
        assert condition.texts[0] in text
    else:
        assert "when the sum below is above" in text
        assert page.locator("#node-details figure").count() == 2


@pytest.mark.parametrize("width", [360, 1280])
def test_charts_of_columns_stay_within_their_cards(report, visit, width):
    page = visit(report("readable")[0], width=width)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) <= 0
    outside = """() => [...document.querySelectorAll("#shared svg")].filter((svg) => {
      const card = svg.closest(".card").getBoundingClientRect();
      const box = svg.getBoundingClientRect();
      return box.left < card.left || box.right > card.right;
    }).length"""
    assert page.evaluate(outside) == 0


def test_other_models_have_no_shared_model(report, visit):
    assert visit(report("soft tree")[0]).locator("#shared").is_hidden()
